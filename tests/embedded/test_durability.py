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
        under_way: list[int] = []

        def write(
            url: str = endpoint.url,
            done: list[tuple[str, list[int]]] = acknowledged,
            asked: list[int] = under_way,
            first: int = following,
        ) -> None:
            with httpx.Client(base_url=url, timeout=60) as http:
                for n in range(first, first + 1_000_000, 10):
                    rows = [
                        {"id": n + i, "vector": {"dense": [1, n, i, 1]}, "payload": {"n": n}} for i in range(10)
                    ]
                    try:
                        http.put("/collections/c/points", json={"points": rows}).raise_for_status()
                        done.append(("put", [n + i for i in range(10)]))
                        asked[:] = [n]
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
        # One write may have been under way, done or not: a batch of ten, or the deletion of one.
        assert present - set(under_way) <= found
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


REFUSED: dict[str, tuple[int, str, dict[str, Any]]] = {
    name: (status, path, {"points": [{"id": 1, "vector": vector}]})
    for name, (status, path, vector) in {
        "unknown name": (400, "", {"nope": [1, 2]}),
        "one good name and one unknown": (400, "", {"a": [9, 9], "nope": [1, 2]}),
        "unnamed": (400, "", [1, 2]),
        "too long": (400, "", {"a": [1, 2, 3]}),
        "empty": (400, "", {"a": []}),
        "several in place of one": (400, "", {"a": [[1, 2], [3, 4]]}),
        "several of different length": (400, "", {"many": [[1, 2], [3]]}),
        "sparse in place of dense": (400, "", {"a": {"indices": [1], "values": [1.0]}}),
        "dense in place of sparse": (400, "", {"thin": [1.0, 2.0]}),
        "sparse of two lengths": (422, "", {"thin": {"indices": [1, 2], "values": [1.0]}}),
        "sparse with an index twice": (422, "", {"thin": {"indices": [1, 1], "values": [1.0, 2.0]}}),
        "sparse with a negative index": (400, "", {"thin": {"indices": [-1], "values": [1.0]}}),
        "sparse with an index too large": (400, "", {"thin": {"indices": [2**32], "values": [1.0]}}),
        "text": (400, "", {"a": ["x", 1]}),
        "null": (400, "", {"a": [None, 1]}),
        "no vector": (400, "", None),
        "vectors: unknown name": (400, "/vectors", {"nope": [1, 2]}),
        "vectors: too long": (400, "/vectors", {"a": [1, 2, 3]}),
        "vectors: sparse of two lengths": (422, "/vectors", {"thin": {"indices": [1], "values": []}}),
    }.items()
} | {
    "second of two points": (
        400,
        "",
        {"points": [{"id": 1, "vector": {"a": [9, 9]}}, {"id": 2, "vector": {"nope": [1, 2]}}]},
    ),
}  # fmt: skip


def test_a_refused_write_changes_nothing_also_after_kill_9(start_endpoint: Callable[..., Any]):
    endpoint = start_endpoint()
    many = {"size": 2, "distance": "Dot", "multivector_config": {"comparator": "max_sim"}}
    body = {"vectors": {"a": {"size": 2, "distance": "Dot"}, "many": many}, "sparse_vectors": {"thin": {}}}
    point = {
        "id": 1,
        "vector": {"a": [1.0, 2.0], "many": [[1.0, 2.0]], "thin": {"indices": [1], "values": [1.0]}},
        "payload": {"n": 1},
    }
    with httpx.Client(base_url=f"{endpoint.url}/collections", timeout=60) as http:
        for number, (name, (status, path, write)) in enumerate(REFUSED.items()):
            http.put(f"/{number}", json=body).raise_for_status()
            http.put(f"/{number}/points", json={"points": [point]}).raise_for_status()
            answer = http.put(f"/{number}/points{path}", json=write)
            assert answer.status_code == status, (name, answer.text)
            assert answer.json()["status"]["error"], name
        for after in ("the refusal", "kill -9"):
            if after == "kill -9":
                endpoint.kill()
                endpoint = endpoint.restart()
            for number, name in enumerate(REFUSED):
                page = http.post(f"/{number}/points/scroll", json={"with_payload": True, "with_vector": True})
                assert page.json()["result"]["points"] == [point], (name, after)


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
