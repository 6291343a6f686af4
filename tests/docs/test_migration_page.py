"""The worked example of docs/migration.md is run: every command, and what it prints.

`WRITE_DOCS=1 pytest tests/docs/test_migration_page.py` writes the outputs into the page anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

from comemory.migration.rules import Rule, RuleSet
from comemory.migration.shapes import SHAPES
from ops.migrate.sides import BLOCKING
from tests.conftest import ROOT, Endpoint
from tests.support.worked_example import demand, run

PAGE = ROOT / "docs" / "migration.md"
RULES = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
VARIES = re.compile(r"\d+ requests, \d+\.\d s|\([0-9a-f]{16}\)")
"""What another run or processor gives otherwise: how long it took, and the digests of normalised vectors."""


@pytest.mark.embedded_only("makes collections of the names that the page has")
def test_the_worked_example_prints_what_the_page_says(
    start_endpoint: Callable[..., Endpoint], tmp_path: Path
) -> None:
    endpoint = start_endpoint()
    client = QdrantClient(url=endpoint.url, timeout=60, check_compatibility=False)
    dense = models.VectorParams(size=1024, distance=models.Distance.COSINE)
    client.create_collection("cm_text_1024_v1", {"dense": dense})
    text = PAGE.read_text(encoding="utf-8")
    found = RULES.search(text)
    assert found is not None
    (tmp_path / "legacy.yaml").write_text(found[1], encoding="utf-8")
    demand(PAGE, VARIES, lambda command: run(command, tmp_path, endpoint.url))
    client.close()
    endpoint.stop()


def test_the_page_names_every_shape_and_key_of_a_rule() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in (*SHAPES, *Rule.model_fields, *RuleSet.model_fields, *BLOCKING):
        assert f"`{name}`" in text, name
