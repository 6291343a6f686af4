"""The way of a newcomer on a copy of the checkout, with the real CLI: up, up again, a question, down."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from tests.conftest import Endpoint
from tools.pulumi_cli import find

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("comemory", "embedded", "infra", "ops", "sample", "tools", "dashboards")
Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.pulumi, pytest.mark.embedded_only("starts the laptop endpoint of a checkout")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find() is None:
        pytest.skip("there is no Pulumi CLI on PATH or in the cache; `make pulumi` gets one")
    folder = tmp_path_factory.mktemp("checkout")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("Pulumi.yaml", "Pulumi.local.yaml.example", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / file, folder / file)
    shutil.copytree(ROOT / "docs", folder / "docs")
    # The provider's executable runs with the checkout's own interpreter.
    (folder / ".venv").symlink_to(Path(sys.prefix))
    return folder


@pytest.fixture(scope="module")
def step(checkout: Path) -> Iterator[Run]:
    port = str(free_port())

    def run(name: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("QDRANT_", "PULUMI_"))}
        return subprocess.run(
            [sys.executable, "-m", "tools", name],
            cwd=checkout, env={**clean, "COMEMORY_PORT": port, **environment},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=400,
        )  # fmt: skip

    yield run
    run("stop")


def test_up_twice_then_down(checkout: Path, step: Run) -> None:
    first = step("up")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "laptop endpoint started" in first.stdout
    assert "make down" in first.stdout
    for job in ("census", "ttl", "dedup --full", "audit"):
        assert f"--- comemory {job}" in first.stdout
    assert re.search(r"^ttl: [1-9]\d* found, [1-9]\d* handled", first.stdout, re.MULTILINE)
    assert re.search(r"^dedup: [1-9]\d* found, [1-9]\d* handled", first.stdout, re.MULTILINE)
    assert "ttl_days.wrong_type" in first.stdout
    assert "http://127.0.0.1:9464/metrics" in first.stdout
    for name in ("cm_text_1024_v1", "cm_code_768_v1", "cm_mm_512_v1"):
        assert name in first.stdout
    url = (checkout / ".local/endpoint/endpoint.url").read_text().strip()
    client = QdrantClient(url=url, check_compatibility=False)
    points = client.count("cm_text_1024_v1").count
    assert points > 0
    assert stat.S_IMODE((checkout / ".local/passphrase").stat().st_mode) == 0o600

    second = step("up", PULUMI_CONFIG_PASSPHRASE="of another project")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "laptop endpoint runs already" in second.stdout
    assert "everything is as declared: nothing changed" in second.stdout
    assert re.search(r"^ttl: 0 found, 0 handled in 0 batches, [1-9]\d* left alone", second.stdout, re.MULTILINE)
    assert re.search(r"^dedup: 0 found, 0 handled", second.stdout, re.MULTILINE)
    assert client.count("cm_text_1024_v1").count == points

    answer = step("ask", Q='what "does" $HOME do? -x')
    assert answer.returncode == 0, answer.stderr
    assert 'what "does" $HOME do? -x' in " ".join(answer.stdout.split())

    refused = step("down")
    assert refused.returncode == 1
    assert f"cm_text_1024_v1 ({points} points)" in refused.stderr
    assert "CONFIRM=yes" in refused.stderr
    assert client.count("cm_text_1024_v1").count == points

    gone = step("down", CONFIRM="yes")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert not (checkout / ".local/endpoint/endpoint.pid").exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(url.rsplit(":", 1)[1]))) != 0, "the endpoint is stopped"
    client.close()


def test_a_taken_port_is_told_with_what_to_do(step: Run) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = step("endpoint", COMEMORY_PORT=str(port))
    assert done.returncode == 1
    assert f"port {port} is taken by another program" in done.stderr
    assert f"COMEMORY_PORT={port + 10} make up" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_endpoint_on_the_port_is_named_as_a_qdrant(step: Run, qdrant_url: str) -> None:
    done = step("endpoint", COMEMORY_PORT=qdrant_url.rsplit(":", 1)[1])
    assert done.returncode == 1
    assert f"QDRANT_URL={qdrant_url} make up" in done.stderr


def test_a_port_that_is_none_is_told(step: Run) -> None:
    done = step("endpoint", COMEMORY_PORT="http")
    assert (done.returncode, "COMEMORY_PORT is 'http'" in done.stderr) == (1, True)


def test_an_address_with_a_password_is_refused_and_not_shown(step: Run) -> None:
    done = step("sample", QDRANT_URL="http://me:hunter2@127.0.0.1:1")
    assert done.returncode == 1
    assert "QDRANT_URL" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_a_server_of_ones_own_keeps_its_points(step: Run, start_endpoint: Callable[..., Endpoint]) -> None:
    """With QDRANT_URL nothing is loaded or cleaned by up, and down deletes no point, whatever CONFIRM says."""
    server = start_endpoint()
    url = server.url
    up = step("up", QDRANT_URL=url)
    assert up.returncode == 0, up.stdout + up.stderr
    client = QdrantClient(url=url, check_compatibility=False)
    assert client.count("cm_text_1024_v1").count == 0
    assert "make sample" in up.stdout
    assert "--- comemory" not in up.stdout
    assert step("sample", QDRANT_URL=url).returncode == 0
    points = client.count("cm_text_1024_v1").count
    assert points > 0
    down = step("down", QDRANT_URL=url, CONFIRM="yes")
    assert down.returncode == 1
    assert "not deleted, because they hold points" in down.stderr
    assert client.count("cm_text_1024_v1").count == points
    client.close()
    server.kill()
    down = step("down", QDRANT_URL=url)
    assert down.returncode == 1
    assert f"cannot reach Qdrant at {url}" in down.stderr
    assert "Traceback" not in down.stderr
    # The way back to the laptop asks nothing of the server that the stack was last brought up at.
    back = step("up")
    assert back.returncode == 0, back.stdout + back.stderr
    assert f"last brought up at {url}" in back.stdout
    assert "cm_text_1024_v1" in back.stdout
