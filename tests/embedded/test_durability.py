"""What was acknowledged is there after `kill -9`, and only one process has a folder."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import QdrantClient, models

pytestmark = pytest.mark.embedded_only("kills an endpoint of its own and reads its folder")
ROOT = Path(__file__).resolve().parents[2]


def client_of(endpoint: Any) -> QdrantClient:
    return QdrantClient(url=endpoint.url, timeout=60, check_compatibility=False)


def test_every_acknowledged_write_survives_kill_9_again_and_again(start_endpoint: Callable[..., Any]):
    endpoint = start_endpoint()
    client = client_of(endpoint)
    client.create_collection("c", vectors_config={"dense": models.VectorParams(size=4, distance="Cosine")})
    client.create_payload_index("c", "n", "integer")
    present: set[int] = set()
    following = 0
    for _ in range(4):
        acknowledged: list[tuple[str, list[int]]] = []

        def write(
            url: str = endpoint.url, done: list[tuple[str, list[int]]] = acknowledged, first: int = following
        ) -> None:
            with httpx.Client(base_url=url, timeout=60) as http:
                for n in range(first, first + 1_000_000, 10):
                    rows = [
                        {"id": n + i, "vector": {"dense": [1, n, i, 1]}, "payload": {"n": n}} for i in range(10)
                    ]
                    try:
                        http.put("/collections/c/points", json={"points": rows}).raise_for_status()
                        done.append(("put", [n + i for i in range(10)]))
                        http.post("/collections/c/points/delete", json={"points": [n]}).raise_for_status()
                        done.append(("delete", [n]))
                    except httpx.TransportError:
                        return

        writer = threading.Thread(target=write)
        writer.start()
        while len(acknowledged) < 60:
            time.sleep(0.005)
        endpoint.kill()
        writer.join()
        for kind, ids in acknowledged:
            (present.update if kind == "put" else present.difference_update)(ids)
        following = max(present) + 1_000
        endpoint = endpoint.restart()
        client = client_of(endpoint)
        records, _ = client.scroll("c", limit=1_000_000, with_payload=False)
        found = {int(record.id) for record in records}
        assert present <= found
        # One write may have been under way: a batch of ten, or the deletion of one.
        assert len(found - present) <= 10
        assert client.get_collection("c").payload_schema["n"].points == len(found)
        present = found


def test_collections_aliases_and_settings_survive_kill_9(start_endpoint: Callable[..., Any]):
    endpoint = start_endpoint()
    client = client_of(endpoint)
    dense = {"dense": models.VectorParams(size=4, distance="Dot")}
    for name in ("one", "two", "gone"):
        client.create_collection(name, vectors_config=dense, metadata={"name": name})
    client.update_collection("one", metadata={"more": 1}, strict_mode_config=models.StrictModeConfig(enabled=True))
    client.update_collection_aliases(
        [models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name="one", alias_name="alias"))]
    )
    client.create_payload_index("one", "k", models.KeywordIndexParams(type="keyword", is_tenant=True))
    client.create_vector_name("two", "late", models.DenseVectorNameConfig(dense={"size": 3, "distance": "Dot"}))
    client.delete_collection("gone")
    before = [client.get_collection(name).model_dump() for name in ("alias", "two")]
    endpoint.kill()
    client = client_of(endpoint.restart())
    assert {c.name for c in client.get_collections().collections} == {"one", "two"}
    assert [client.get_collection(name).model_dump() for name in ("alias", "two")] == before


def test_operations_are_numbered_on_after_kill_9(start_endpoint: Callable[..., Any]):
    endpoint = start_endpoint()
    client = client_of(endpoint)
    client.create_collection("c", vectors_config=models.VectorParams(size=2, distance="Dot"))
    point = models.PointStruct(id=1, vector=[1.0, 0.0])
    first = client.upsert("c", [point]).operation_id
    endpoint.kill()
    client = client_of(endpoint.restart())
    assert client.upsert("c", [point]).operation_id == first + 1
    assert client.query_points("c", query=[1.0, 0.0]).points[0].version == first + 1


def start_on(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "embedded", "--path", str(folder), "--port", "0"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_second_process_on_the_folder_is_refused(start_endpoint: Callable[..., Any]):
    endpoint = start_endpoint()
    second = start_on(endpoint.folder)
    assert second.returncode == 1
    assert f"in use by another endpoint (process {endpoint.process.pid})" in second.stderr
    assert "Traceback" not in second.stderr
    assert httpx.get(endpoint.url + "/healthz").status_code == 200


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("years of work")
    refused = start_on(tmp_path)
    assert refused.returncode == 1
    assert "was not made by this program" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_a_crash_left_of_a_creation_is_removed(start_endpoint: Callable[..., Any]):
    endpoint = start_endpoint()
    client_of(endpoint).create_collection("c", vectors_config=models.VectorParams(size=2, distance="Dot"))
    endpoint.kill()
    left = endpoint.folder / "collections" / "half"
    (left / "shard").mkdir(parents=True)
    client = client_of(endpoint.restart())
    assert [c.name for c in client.get_collections().collections] == ["c"]
    assert not left.exists()
