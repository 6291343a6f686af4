"""Health, version, metrics, and how it starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.embedded_only("starts endpoints of its own")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def endpoint(start_endpoint: Callable[..., Any]) -> Any:
    return start_endpoint()


def samples(url: str) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(httpx.get(url + "/metrics").text)
    return {(s.name, tuple(sorted(s.labels.values()))): s.value for family in families for s in family.samples}


def test_metrics_have_the_names_of_a_server_and_the_true_numbers(endpoint: Any):
    url = endpoint.url
    vectors = {"vectors": {"dense": {"size": 2, "distance": "Dot"}}, "sparse_vectors": {"s": {}}}
    httpx.put(f"{url}/collections/m", json=vectors).raise_for_status()
    rows = [{"id": i, "vector": {"dense": [1, i]}} for i in range(3)]
    httpx.put(f"{url}/collections/m/points", json={"points": rows}).raise_for_status()
    assert httpx.get(f"{url}/collections/none").status_code == 404
    found = samples(url)
    assert found["app_info", ("1.19.0", "qdrant-embedded")] == 1
    assert found["collections_total", ()] == 1
    assert found["collection_points", ("m",)] == 3
    assert found["collection_vectors", ("dense", "m")] == 3
    assert found["collection_vectors", ("m", "s")] == 0
    assert found["collections_vector_total", ()] == 3
    assert found["memory_resident_bytes", ()] > 10_000_000
    path = "/collections/{collection_name}"
    assert found["rest_responses_total", tuple(sorted((f"{path}/points", "PUT", "200")))] == 1
    assert found["rest_responses_total", tuple(sorted((path, "GET", "404")))] == 1
    assert found["rest_responses_duration_seconds_count", tuple(sorted((path, "GET", "404")))] == 1


def test_the_title_says_that_it_is_not_a_server(endpoint: Any):
    root = httpx.get(endpoint.url + "/").json()
    assert root["version"].startswith("1.19.")
    assert "embedded" in root["title"]


def test_at_start_it_says_what_it_is_for_in_one_line(endpoint: Any):
    lines = (endpoint.folder.parent / f"{endpoint.folder.name}.log").read_text().splitlines()
    assert len(lines) == 1
    assert "for a laptop and for tests" in lines[0]


def start(*arguments: str) -> tuple[str, str]:
    """Start it, wait for its first line, stop it: what it said on either stream."""
    command = [sys.executable, "-m", "embedded", "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
        rest, errors = process.communicate(timeout=60)
    return line + rest, errors


def test_it_warns_when_it_is_bound_beyond_loopback(tmp_path: Path):
    _, errors = start("--path", str(tmp_path / "a"), "--host", "0.0.0.0")
    assert "warning: bound beyond loopback without TLS and without a key" in errors
    _, errors = start("--path", str(tmp_path / "b"))
    assert "warning" not in errors


def test_a_port_that_is_taken_is_one_readable_line(endpoint: Any, tmp_path: Path):
    port = endpoint.url.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "embedded", "--path", str(tmp_path / "c"), "--port", port]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [f"cannot listen on 127.0.0.1:{port}: Address already in use"]
