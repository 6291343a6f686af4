"""The worked example of docs/migration.md is run: every command, and what it prints.

`WRITE_DOCS=1 pytest tests/docs/test_migration_page.py` writes the outputs into the page anew.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

from comemory.migration.rules import Rule, RuleSet
from comemory.migration.shapes import SHAPES
from ops.migrate.sides import BLOCKING
from tests.conftest import ROOT, Endpoint

PAGE = ROOT / "docs" / "migration.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RULES = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
VARIES = re.compile(r"\d+ requests, \d+\.\d s|\([0-9a-f]{16}\)")
"""What another run or processor gives otherwise: how long it took, and the digests of normalised vectors."""


def run(command: str, folder: Path, url: str) -> str:
    """What a command of the page prints, its errors last."""
    line, _, code = command.partition("; echo ")
    words = shlex.split(line)
    program = [sys.executable, "-m", "ops"] if words[0] == "comemory" else [sys.executable]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COMEMORY_", "QDRANT_"))}
    environment |= {"COMEMORY_QDRANT__URL": url, "QDRANT_URL": url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*program, *words[1:]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    said = "".join(f"{one.rstrip()}\n" for one in (done.stdout + done.stderr).splitlines())
    return said + (f"{done.returncode}\n" if code else "")


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
    made = text
    for block in CONSOLE.finditer(text):
        written = ""
        for command in re.findall(r"^\$ (.*)$", block[1], re.MULTILINE):
            written += f"$ {command}\n{run(command, tmp_path, endpoint.url)}"
        made = made.replace(block[0], f"```console\n{written}```")
    client.close()
    endpoint.stop()
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")
        return
    assert VARIES.sub("…", made) == VARIES.sub("…", text)


def test_the_page_names_every_shape_and_key_of_a_rule() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in (*SHAPES, *Rule.model_fields, *RuleSet.model_fields, *BLOCKING):
        assert f"`{name}`" in text, name
