"""Many callers at once lose nothing and see nothing half done."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

DENSE = {"dense": models.VectorParams(size=2, distance="Dot")}


def test_writers_and_readers_of_one_collection(qdrant: QdrantClient, collection_name: str):
    qdrant.create_collection(collection_name, vectors_config=DENSE)
    qdrant.create_payload_index(collection_name, "writer", "integer", wait=True)

    def write(writer: int) -> list[int]:
        numbers = []
        for batch in range(10):
            first = writer * 1_000 + batch * 10
            rows = [
                models.PointStruct(id=first + i, vector={"dense": [1.0, i]}, payload={"writer": writer})
                for i in range(10)
            ]
            numbers.append(qdrant.upsert(collection_name, rows, wait=True).operation_id or 0)
            mine = models.Filter(must=[models.FieldCondition(key="writer", match=models.MatchValue(value=writer))])
            assert qdrant.count(collection_name, mine, exact=True).count == (batch + 1) * 10
        return numbers

    with ThreadPoolExecutor(6) as pool:
        numbers = [number for writer in pool.map(write, range(6)) for number in writer]
    assert len(set(numbers)) == 60
    assert qdrant.count(collection_name, exact=True).count == 600


def test_of_several_creations_of_one_name_one_wins(qdrant: QdrantClient, collection_name: str):
    def create(_: int) -> bool:
        try:
            return qdrant.create_collection(collection_name, vectors_config=DENSE)
        except UnexpectedResponse as error:
            assert error.status_code == 409
            return False

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(create, range(6))) == [False] * 5 + [True]


def test_collections_come_and_go_while_others_are_read(qdrant: QdrantClient):
    def live(_: int) -> int:
        name = f"test_{uuid.uuid4().hex}"
        qdrant.create_collection(name, vectors_config=DENSE)
        for field in ("a", "b", "c"):
            qdrant.create_payload_index(name, field, "keyword", wait=True)
        found = len(qdrant.get_collection(name).payload_schema)
        qdrant.delete_collection(name)
        return found

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(live, range(8))) == [3] * 8


def test_a_reader_of_a_collection_that_is_deleted_is_told_so(qdrant: QdrantClient, collection_name: str):
    qdrant.create_collection(collection_name, vectors_config=DENSE)

    def read() -> int:
        try:
            while True:
                qdrant.count(collection_name)
        except UnexpectedResponse as error:
            return error.status_code or 0

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        qdrant.delete_collection(collection_name)
        assert [reader.result(timeout=60) for reader in readers] == [404] * 3
