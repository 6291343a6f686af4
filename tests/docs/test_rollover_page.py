"""The worked example of docs/rollover.md is run: every command, and what it prints.

`WRITE_DOCS=1 pytest tests/docs/test_rollover_page.py` writes the outputs into the page anew.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from qdrant_client import QdrantClient, models

from comemory.indexes import PAYLOAD_INDEXES
from comemory.rollover import MARKER, READERS, Step
from infra.settings import load
from ops.cli.rollover import app
from ops.rollover.catch_up import HELD_BACK, NO_TEXT
from tests.conftest import ROOT, Endpoint
from tests.support.worked_example import demand, run

PAGE = ROOT / "docs" / "rollover.md"
STACK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRAM = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
VARIES = re.compile(r"\d+ requests, \d+\.\d s|\d{4}-\d\d-\d\d \d\d:\d\d")
"""What another run gives otherwise: how long it took, and the sample's own dates."""


def declared(text: str) -> list[tuple[str, int, str, str | None]]:
    """The collections of the page's stack: name, size, model, alias."""
    found = STACK.search(text)
    assert found is not None
    entries = yaml.safe_load(found[1])["config"]["comemory:collections"]
    settings = load({"comemory:collections": json.dumps(entries)})
    return [(one.name, one.dimension, one.embedding_model, one.alias) for one in settings.collections]


@pytest.mark.embedded_only("makes collections of the names that the page has")
def test_the_worked_example_prints_what_the_page_says(
    start_endpoint: Callable[..., Endpoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    endpoint = start_endpoint()
    client = QdrantClient(url=endpoint.url, timeout=60, check_compatibility=False)
    text = PAGE.read_text(encoding="utf-8")
    for name, size, model, alias in [*declared(text), ("cm_text_1024_v1", 1024, "hashing-v1", None)]:
        dense = models.VectorParams(size=size, distance=models.Distance.COSINE)
        client.create_collection(name, {"dense": dense}, metadata={"embedding_model": model})
        for index in PAYLOAD_INDEXES:
            client.create_payload_index(name, index.field, index.field_schema(), wait=True)  # type: ignore[arg-type]
        if alias is not None:
            create = models.CreateAlias(collection_name=name, alias_name=alias)
            client.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])
    for name, program in PROGRAM.findall(text):
        (tmp_path / name).write_text(program, encoding="utf-8")
    demand(PAGE, VARIES, lambda command: run(command, tmp_path, endpoint.url).lstrip())
    client.close()
    endpoint.stop()


def test_the_page_explains_every_command_and_every_word_of_a_report() -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = {one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands}
    assert commands
    for name in (*commands, *READERS, MARKER):
        assert f"`{name}`" in text, name
    for reason in (*Step, NO_TEXT, HELD_BACK):
        assert reason == Step.SAME or f"| {reason} |" in text, reason
