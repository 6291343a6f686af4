"""Real stacks of the real Pulumi engine, each with a folder of its own for settings and state."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pulumi
import pytest
import yaml
from pulumi import automation

from infra.resources import Provider
from tests.conftest import SERVER_KEY, SERVER_URL
from tools.pulumi_cli import find

ROOT = Path(__file__).resolve().parents[2]
Program = Callable[[pulumi.ResourceOptions], None]


@dataclass
class Outcome:
    """What one run of the CLI did: its text, whether it ended well, and how many resources met which fate."""

    text: str
    ok: bool
    changes: dict[str, int] = field(default_factory=dict)

    def errors(self) -> list[str]:
        """The distinct error sentences, as the CLI prints them."""
        lines = (line.strip() for line in self.text.splitlines())
        return list(dict.fromkeys(line.removeprefix("error: ") for line in lines if line.startswith("error: ")))


class Deployment:
    """A stack whose program a test replaces between runs."""

    def __init__(
        self,
        cli: Path,
        folder: Path,
        *,
        url: str | pulumi.Output[str],
        api_key: str | None = None,
        stack: str = "test",
        timeout: float | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder, self.url, self.api_key, self.timeout = folder, url, api_key, timeout
        self.program: Program = lambda _: None
        folder.mkdir(parents=True, exist_ok=True)
        project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
        del project["main"]
        for provider in project["plugins"]["providers"]:
            provider["path"] = str(ROOT / provider["path"])
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        (folder / "state").mkdir(exist_ok=True)
        self.environment = {
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "correct horse",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            **(environment or {}),
        }
        self.stack = automation.create_or_select_stack(
            stack_name=stack,
            project_name="comemory",
            program=self._run,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder),
                pulumi_command=automation.PulumiCommand(root=str(cli.parent.parent)),
                env_vars=self.environment,
            ),
        )

    def _run(self) -> None:
        url = self.url() if callable(self.url) else self.url
        provider = Provider("qdrant", url=url, api_key=self.api_key, timeout=self.timeout)
        self.program(pulumi.ResourceOptions(provider=provider))

    def up(self) -> Outcome:
        return self._call(
            lambda say: dict(self.stack.up(on_output=say, color="never").summary.resource_changes or {})
        )

    def preview(self) -> Outcome:
        def call(say: Callable[[str], None]) -> dict[str, int]:
            result = self.stack.preview(on_output=say, color="never")
            return {str(getattr(kind, "value", kind)): count for kind, count in result.change_summary.items()}

        return self._call(call)

    def refresh(self) -> Outcome:
        return self._call(
            lambda say: dict(self.stack.refresh(on_output=say, color="never").summary.resource_changes or {})
        )

    def destroy(self) -> Outcome:
        return self._call(
            lambda say: dict(self.stack.destroy(on_output=say, color="never").summary.resource_changes or {})
        )

    def everything_written(self) -> bytes:
        """All files of the stack, its state and its settings among them."""
        return b"\n".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())

    def _call(self, run: Callable[[Callable[[str], None]], dict[str, int]]) -> Outcome:
        lines: list[str] = []
        try:
            changes = run(lines.append)
        except automation.CommandError as error:
            return Outcome("\n".join([*lines, str(error)]), ok=False)
        return Outcome("\n".join(lines), ok=True, changes=changes)


@pytest.fixture(scope="session")
def pulumi_cli() -> Path:
    """The Pulumi CLI, or a skip that says how to get one."""
    cli = find()
    if cli is None:
        pytest.skip("there is no Pulumi CLI on PATH or in the cache; `make up` gets one")
    return cli


@pytest.fixture(scope="module")
def deploy(
    pulumi_cli: Path, qdrant_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Deployment]:
    """Make a stack on the shared endpoint: `deploy()`, or with any argument of `Deployment`."""
    key = SERVER_KEY if SERVER_URL else None

    def make(**arguments: object) -> Deployment:
        folder = arguments.pop("folder", None) or tmp_path_factory.mktemp("stack")
        return Deployment(pulumi_cli, folder, **{"url": qdrant_url, "api_key": key, **arguments})  # type: ignore[arg-type]

    return make


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider under test gets its address and key from the test alone."""
    for name in [name for name in os.environ if name.startswith("QDRANT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def memory_name(qdrant) -> Iterator[str]:
    """A name of the convention for four dimensions that no other test uses."""
    name = f"cm_t{uuid.uuid4().hex[:20]}_4_v1"
    yield name
    for suffix in ("_v1", "_v2"):
        qdrant.delete_collection(name.removesuffix("_v1") + suffix)
