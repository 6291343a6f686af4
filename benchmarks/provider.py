"""What Pulumi costs: `up` of 20 collections with all their indexes, against the same REST calls from a bare script.

The bare script is as plain as it can be: one connection, one call after the other, no check of anything. Both
run against a fresh embedded endpoint on this machine; `up` is timed from the start of the command to its end,
with Pulumi's own work in it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pulumi
import yaml
from pulumi import automation

from benchmarks.report import Row
from comemory.catalog import CollectionSpec
from comemory.indexes import PAYLOAD_INDEXES
from comemory.profiles import declare
from infra.resources import Collection, PayloadIndex, Provider
from tools.pulumi_cli import ensure

ROOT = Path(__file__).resolve().parent.parent
COLLECTIONS = 20
TIMES_BARE = 3.0
NO_OP_SECONDS = 15.0


def rows() -> list[Row]:
    """Both figures: `up` as a multiple of the bare calls, and a second `up` that changes nothing in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _endpoint(folder / "bare") as url:
            bare = _seconds(lambda: _bare_calls(url))
        with _endpoint(folder / "pulumi") as url:
            stack = _stack(folder / "stack", url)
            first = _seconds(lambda: stack.up(color="never"))
            again = _seconds(lambda: stack.up(color="never"))
    number = COLLECTIONS * (1 + len(PAYLOAD_INDEXES))
    return [
        Row(
            f"up of {number} resources ({first:.1f} s) as a multiple of the bare calls ({bare:.1f} s)",
            first / bare,
            TIMES_BARE,
            "x",
        ),
        Row(f"up of {number} resources that changes nothing", again, NO_OP_SECONDS, "s"),
    ]


def _declared() -> list[CollectionSpec]:
    return [declare(f"cm_bench{number}_1024_v1", size=1024) for number in range(COLLECTIONS)]


def _bare_calls(url: str) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        for spec in _declared():
            client.put(f"/collections/{spec.name}", json=spec.creation()).raise_for_status()
            for index in PAYLOAD_INDEXES:
                body = {"field_name": index.field, "field_schema": index.field_schema()}
                client.put(f"/collections/{spec.name}/index?wait=true", json=body).raise_for_status()


def _program(url: str) -> None:
    opts = pulumi.ResourceOptions(provider=Provider("qdrant", url=url))
    for spec in _declared():
        collection = Collection.from_spec(spec, opts=opts)
        for index in PAYLOAD_INDEXES:
            PayloadIndex.from_spec(index, collection.name, resource_name=f"{spec.name}-{index.field}", opts=opts)


def _stack(folder: Path, url: str) -> automation.Stack:
    (folder / "state").mkdir(parents=True)
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    del project["main"]
    for provider in project["plugins"]["providers"]:
        provider["path"] = str(ROOT / provider["path"])
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    return automation.create_stack(
        stack_name="bench",
        project_name=project["name"],
        program=lambda: _program(url),
        opts=automation.LocalWorkspaceOptions(
            work_dir=str(folder),
            pulumi_command=automation.PulumiCommand(root=str(ensure().parent.parent)),
            env_vars={
                "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
                "PULUMI_CONFIG_PASSPHRASE": "bench",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
                **{name: value for name, value in os.environ.items() if name.startswith("PULUMI_BENCH_")},
            },
        ),
    )


@contextlib.contextmanager
def _endpoint(folder: Path) -> Iterator[str]:
    ready = folder.with_suffix(".ready")
    process = subprocess.Popen(
        [sys.executable, "-m", "embedded", "--path", folder, "--port", "0", "--ready-file", ready],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not ready.exists():
            if process.poll() is not None:
                raise RuntimeError(
                    "the embedded endpoint did not start; run `python -m embedded --path DIR` to see why"
                )
            time.sleep(0.02)
        yield ready.read_text().strip()
    finally:
        process.kill()
        process.wait()


def _seconds(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - started
