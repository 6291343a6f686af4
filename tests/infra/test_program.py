"""The program run inline and as a file: the same resources, readable errors, no key in any file."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi import automation
from qdrant_client import QdrantClient

from comemory.indexes import PAYLOAD_INDEXES
from infra.program import program
from tests.infra.conftest import ROOT

KEY = "k3y-that-must-not-appear"


@dataclass
class Project:
    """A project folder of the test with the committed Pulumi.yaml, and the stack in it."""

    folder: Path
    stack: automation.Stack

    def configure(self, key: str, value: Any, *, secret_path: str | None = None, secret: str = "") -> None:
        file = self.folder / f"Pulumi.{self.stack.name}.yaml"
        settings = yaml.safe_load(file.read_text()) if file.exists() else {}
        settings.setdefault("config", {})[f"comemory:{key}"] = value
        file.write_text(yaml.safe_dump(settings))
        if secret_path:
            self.stack.set_config(secret_path, automation.ConfigValue(secret, secret=True), path=True)

    def written(self) -> bytes:
        return b"\n".join(
            path.read_bytes() for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()
        )


@pytest.fixture
def project(pulumi_cli: Path, tmp_path: Path) -> Callable[..., Project]:
    def make(url: str | None, **environment: str) -> Project:
        text = (ROOT / "Pulumi.yaml").read_text().replace("path: infra", f"path: {ROOT}/infra")
        (tmp_path / "Pulumi.yaml").write_text(text)
        (tmp_path / "infra").symlink_to(ROOT / "infra")
        (tmp_path / "state").mkdir()
        stack = automation.create_or_select_stack(
            "local",
            project_name="comemory",
            program=program,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(tmp_path),
                pulumi_command=automation.PulumiCommand(root=str(pulumi_cli.parent.parent)),
                env_vars={
                    "PULUMI_BACKEND_URL": f"file://{tmp_path / 'state'}",
                    "PULUMI_CONFIG_PASSPHRASE": "correct horse",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                    **environment,
                },
            ),
        )
        made = Project(tmp_path, stack)
        made.configure("endpoint", {"url": url} if url else {})
        return made

    return make


@pytest.mark.pulumi
@pytest.mark.embedded_only("uses an endpoint with a key")
def test_the_program_runs_with_a_key_that_no_file_shows(
    project: Callable[..., Project], start_endpoint: Callable[..., Any]
) -> None:
    endpoint = start_endpoint(api_key=KEY)
    one = project(endpoint.url)
    one.configure("types", ["toy"])
    one.configure(
        "collections",
        [{"name": "cm_toy_4_v1", "embedding_model": "m", "dimension": 4, "profile": "small", "alias": "toy"}],
    )
    one.configure("endpoint", {"url": endpoint.url}, secret_path="comemory:endpoint.api_key", secret=KEY)
    lines: list[str] = []
    result = one.stack.up(on_output=lines.append, color="never", show_secrets=False)
    assert {name: output.value for name, output in result.outputs.items()} == {
        "url": endpoint.url, "collections": ["cm_toy_4_v1"], "indexes": len(PAYLOAD_INDEXES),
    }  # fmt: skip
    client = QdrantClient(url=endpoint.url, api_key=KEY, check_compatibility=False)
    assert len(client.get_collection("toy").payload_schema) == len(PAYLOAD_INDEXES)
    client.close()
    assert KEY not in "\n".join(lines)
    assert KEY.encode() not in one.written()
    assert b"ciphertext" in one.written()


@pytest.mark.pulumi
def test_a_wrong_configuration_is_told_by_key_without_a_traceback(project: Callable[..., Project]) -> None:
    one = project("http://127.0.0.1:9")
    one.configure("collections", [{"name": "cm_text_8_v1", "embedding_model": "m", "dimension": 9}])
    lines: list[str] = []
    with pytest.raises(automation.CommandError):
        one.stack.preview(on_output=lines.append, on_error=lines.append, color="never")
    text = "\n".join(lines)
    assert "comemory:collections[0].dimension: 9 is not the dimension in the name cm_text_8_v1" in text
    assert "Traceback" not in text


@pytest.mark.pulumi
@pytest.mark.embedded_only("looks at an empty endpoint")
def test_both_ways_declare_the_same_resources(
    project: Callable[..., Project], start_endpoint: Callable[..., Any]
) -> None:
    """The language plugin runs the folder `infra` as a file; inline, the function is called."""
    one = project(start_endpoint().url)
    seen: list[set[str]] = []
    for run in (program, lambda: runpy.run_path(str(ROOT / "infra"), run_name="__main__")):
        urns: set[str] = set()

        def see(event: Any, urns: set[str] = urns) -> None:
            if event.resource_pre_event:
                urns.add(event.resource_pre_event.metadata.urn)

        one.stack.preview(program=run, on_event=see)
        seen.append(urns)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 2 + 3 * (2 + len(PAYLOAD_INDEXES))


def test_the_folder_runs_as_a_file_from_anywhere(tmp_path: Path) -> None:
    """Nothing but the file's own line puts the checkout on the path; the engine is missing, so it fails there."""
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, ROOT / "infra"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        env={key: value for key, value in os.environ.items() if not key.startswith(("PYTHONPATH", "PULUMI"))},
    )  # fmt: skip
    assert "in declare_stack" in done.stderr, "the program itself was reached"
