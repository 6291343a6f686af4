"""The endpoint every test talks to: `QDRANT_URL` where it is set, else an embedded endpoint of this run."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from qdrant_client import QdrantClient

hypothesis.settings.register_profile("patient", deadline=None)  # a slow machine is no defect of what is tested
hypothesis.settings.load_profile("patient")

ROOT = Path(__file__).resolve().parent.parent
SERVER_URL = os.environ.get("QDRANT_URL")
SERVER_KEY = os.environ.get("QDRANT_API_KEY")


@dataclass
class Endpoint:
    """A running embedded endpoint that a test may kill and start again on the same folder and port."""

    url: str
    folder: Path
    process: subprocess.Popen[bytes]
    restart: Callable[[], Endpoint]

    def kill(self) -> None:
        """Stop it as a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stop it as an operator does."""
        self.process.terminate()
        self.process.wait(timeout=30)


def _launch(folder: Path, port: int, keys: dict[str, str], launched: list[subprocess.Popen[bytes]]) -> Endpoint:
    ready = folder.parent / f"{folder.name}.ready"
    ready.unlink(missing_ok=True)
    log = folder.parent / f"{folder.name}.log"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("QDRANT_", "COMEMORY_"))}
    for name, value in keys.items():
        environment[f"QDRANT__SERVICE__{name.upper()}"] = value
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "embedded", "--path", folder, "--port", str(port), "--ready-file", ready],
            cwd=ROOT, env=environment, stdout=stream, stderr=stream,
        )  # fmt: skip
    launched.append(process)
    deadline = time.monotonic() + 300  # a machine that does much else takes its time
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the embedded endpoint did not start; its log:\n{log.read_text()}")
        time.sleep(0.02)
    url = ready.read_text().strip()
    bound = int(url.rsplit(":", 1)[1])
    return Endpoint(url, folder, process, lambda: _launch(folder, bound, keys, launched))


@pytest.fixture(scope="session")
def start_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Endpoint]]:
    """Start an endpoint of one's own: `start_endpoint(api_key=..., read_only_api_key=...)`."""
    launched: list[subprocess.Popen[bytes]] = []
    number = itertools.count()

    def start(**keys: str) -> Endpoint:
        folder = tmp_path_factory.mktemp("endpoint") / f"data{next(number)}"
        return _launch(folder, 0, keys, launched)

    yield start
    for process in launched:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def qdrant_url(start_endpoint: Callable[..., Endpoint]) -> str:
    """The address of the endpoint that the whole session shares."""
    return SERVER_URL or start_endpoint().url


@pytest.fixture(scope="session")
def qdrant(qdrant_url: str) -> Iterator[QdrantClient]:
    """A client of the shared endpoint."""
    client = QdrantClient(
        url=qdrant_url, api_key=SERVER_KEY if SERVER_URL else None, timeout=60, check_compatibility=False
    )
    yield client
    client.close()


@pytest.fixture
def collection_name(qdrant: QdrantClient) -> Iterator[str]:
    """A name that no other test uses; the collection is removed afterwards if the test made it."""
    name = f"test_{uuid.uuid4().hex}"
    yield name
    qdrant.delete_collection(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason printed, what this run's endpoint cannot show."""
    for item in items:
        server = item.get_closest_marker("needs_server")
        if server and not SERVER_URL:
            item.add_marker(pytest.mark.skip(reason=f"needs a Qdrant server in QDRANT_URL: {server.args[0]}"))
        embedded = item.get_closest_marker("embedded_only")
        if embedded and SERVER_URL:
            item.add_marker(pytest.mark.skip(reason=f"uses an embedded endpoint: {embedded.args[0]}"))
