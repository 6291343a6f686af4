"""The worked example of docs/tenant.md is run: every command, and what it prints.

`WRITE_DOCS=1 pytest tests/docs/test_tenant_page.py` writes the outputs into the page anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

from comemory.indexes import PAYLOAD_INDEXES
from ops.settings import TenantSettings
from sample.content import COLLECTIONS, DIMENSIONS
from tests.conftest import ROOT, Endpoint
from tests.support.worked_example import demand, run

PAGE = ROOT / "docs" / "tenant.md"
VARIES = re.compile(r"\d+ requests, \d+\.\d s|\b[0-9a-f]{64}\b|\d{4}-\d\d-\d\d \d\d:\d\d")
"""What another run gives otherwise: how long it took, the digest of the record, and the sample's own dates."""


@pytest.mark.embedded_only("makes collections of the names that the page has")
def test_the_worked_example_prints_what_the_page_says(
    start_endpoint: Callable[..., Endpoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    endpoint = start_endpoint()
    client = QdrantClient(url=endpoint.url, timeout=60, check_compatibility=False)
    for kind, name in COLLECTIONS.items():
        dense = models.VectorParams(size=DIMENSIONS[kind], distance=models.Distance.COSINE)
        client.create_collection(name, {"dense": dense})
        for index in PAYLOAD_INDEXES:
            client.create_payload_index(name, index.field, index.field_schema(), wait=True)  # type: ignore[arg-type]
    demand(
        PAGE,
        VARIES,
        lambda command: run(command, tmp_path, endpoint.url).replace(str(tmp_path), "/home/ops").lstrip(),
    )
    client.close()
    endpoint.stop()


def test_the_page_has_the_default_of_the_record() -> None:
    assert f"`{TenantSettings().log_file}`" in PAGE.read_text(encoding="utf-8")
