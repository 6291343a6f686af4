"""The laptop endpoint is found again whatever became of the file with its process number."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tools.endpoint import LocalEndpoint

pytestmark = pytest.mark.embedded_only("starts a laptop endpoint")
ROOT = Path(__file__).resolve().parents[2]


def test_a_lost_or_stale_process_number_hides_no_running_endpoint(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    endpoint = LocalEndpoint(ROOT, tmp_path)
    started, now = endpoint.start(port, port_given=True)
    try:
        assert now
        number = tmp_path / "endpoint.pid"
        for stale in (None, "", "999999999", "1"):
            number.unlink(missing_ok=True)
            if stale is not None:
                number.write_text(stale)
            assert endpoint.running() == started
            assert endpoint.start(port, port_given=True) == (started, False)
    finally:
        assert endpoint.stop() == started
    assert endpoint.running() is None
