"""Optimizing changes no answer, loses no write, and a crash in the middle of it costs nothing."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import qdrant_edge as engine
from qdrant_client.http import models

from embedded import optimize, settings, storage
from embedded.errors import ApiError
from embedded.storage import Collection

pytestmark = pytest.mark.embedded_only("works on a collection's folder")
Update = engine.UpdateOperation
HAS_MANY_DELETED = {"deleted_threshold": 0.1, "vacuum_min_vector_number": 100}


def point(key: int, tag: str) -> engine.Point:
    return engine.Point(key, {"dense": [1.0, key / 1000]}, {"tag": tag})


def contents(collection: Collection) -> dict[Any, Any]:
    request = engine.QueryRequest(
        limit=10_000, query=engine.Query.Nearest([1.0, 1.0], "dense"), with_payload=True, with_vector=False
    )
    return {p.id: (p.payload, p.version) for p in collection.read(lambda shard: shard.query(request))}


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    """Two thousand points of which half were deleted."""
    request = models.CreateCollection(
        vectors={"dense": models.VectorParams(size=2, distance="Dot")},
        optimizers_config=models.OptimizersConfigDiff(**HAS_MANY_DELETED),
    )
    made = Collection.create(tmp_path / "c", "c", settings.create(request))
    made.create_index("tag", engine.PayloadSchemaType.Keyword)
    made.update(Update.upsert_points([point(key, "first") for key in range(2_000)]))
    made.update(Update.delete_points(list(range(1_000))))
    return made


def test_writes_and_reads_go_on_and_all_are_kept(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    written = threading.Event()
    real = optimize.Copy.optimize

    def with_writes_in_between(copy: optimize.Copy, config: dict[str, Any]) -> bool:
        changed = real(copy, config)
        collection.update(Update.upsert_points([point(1_500, "second"), point(5_000, "second")]))
        collection.update(Update.delete_points([1_600]))
        with pytest.raises(Exception, match="Not existing vector name"):
            collection.update(Update.upsert_points([engine.Point(1, {"other": [1.0]}, {})]))
        collection.update(Update.upsert_points([point(5_001, "third")]))
        written.set()
        return changed

    monkeypatch.setattr(optimize.Copy, "optimize", with_writes_in_between)
    stop = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(collection.read(lambda shard: shard.count(engine.CountRequest())))

    reader = threading.Thread(target=read)
    reader.start()
    assert collection.optimize()
    stop.set()
    reader.join()
    assert written.is_set()
    assert set(seen) <= {1_000, 1_001, 1_002}
    after = contents(collection)
    assert len(after) == 1_001
    assert 1_600 not in after
    assert after[1_500][0] == after[5_000][0] == {"tag": "second"}
    assert after[5_001][1] == after[5_000][1] + 3
    assert collection.index_schema() == {"tag": {"data_type": "keyword"}}
    number = collection.update(Update.upsert_points([point(6_000, "last")]))
    assert contents(collection)[6_000] == ({"tag": "last"}, number)


def test_it_drops_what_was_deleted(collection: Collection):
    before = contents(collection)
    assert collection.optimize()
    assert contents(collection) == before
    collection.close()
    assert contents(Collection.open(collection.folder)) == before


def test_a_copy_that_misses_too_much_is_given_up(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storage, "_MISSED_AT_MOST", 0)

    def with_a_write(copy: optimize.Copy, config: dict[str, Any]) -> bool:
        collection.update(Update.delete_points([1_500]))
        return True

    monkeypatch.setattr(optimize.Copy, "optimize", with_a_write)
    assert not collection.optimize()
    assert 1_500 not in contents(collection)
    assert sorted(p.name for p in collection.folder.iterdir()) == ["collection.json", "operations", "shard"]


def test_until_the_copy_is_complete_the_shard_it_replaces_counts(collection: Collection):
    collection.update(Update.upsert_points([point(7_000, "acknowledged")]))
    before = contents(collection)
    collection.close()
    folder = collection.folder
    # As a crash leaves it: the copy is in place, and has not got what it missed.
    shutil.copytree(folder / "shard", folder / "shard-replaced")
    (folder / "shard" / "edge_config.json").unlink()
    (folder / "shard-copy-1").mkdir()
    opened = Collection.open(folder)
    assert contents(opened) == before
    assert sorted(p.name for p in folder.iterdir()) == ["collection.json", "operations", "shard"]


def test_a_copy_that_cannot_take_the_place_leaves_the_shard_in_it(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    before = contents(collection)

    def fails(_: Path) -> None:
        monkeypatch.undo()
        raise OSError("no room")

    monkeypatch.setattr(optimize, "sync_folder", fails)
    with pytest.raises(OSError, match="no room"):
        collection.optimize()
    number = collection.update(Update.upsert_points([point(8_000, "later")]))
    collection.close()
    assert contents(Collection.open(collection.folder)) == before | {8_000: ({"tag": "later"}, number)}


def test_a_full_disk_is_said_before_it_is_full(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    before = contents(collection)
    monkeypatch.setattr(storage, "free_bytes", lambda _: storage.RESERVED_BYTES)
    collection.update(Update.delete_points([]))
    with pytest.raises(ApiError, match="No space left on device: 64 MB are free and"):
        collection.optimize()
    monkeypatch.setattr(storage, "free_bytes", lambda _: storage.RESERVED_BYTES - 1)
    with pytest.raises(ApiError, match="No space left on device"):
        collection.update(Update.delete_points([1_500]))
    with pytest.raises(ApiError, match="No space left on device"):
        Collection.create(collection.folder.parent / "another", "another", collection.config)
    assert not (collection.folder.parent / "another").exists()
    assert contents(collection) == before


def test_it_begins_when_much_was_written_and_then_nothing(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    assert not collection.wants_optimizing()
    collection.update(Update.delete_points([1]), points=storage.OPTIMIZE_POINTS)
    assert not collection.wants_optimizing()
    monkeypatch.setattr(storage, "OPTIMIZE_QUIET_SECONDS", 0.0)
    assert collection.wants_optimizing()


def test_it_is_given_up_when_the_endpoint_stops(collection: Collection):
    before = contents(collection)
    optimizing = threading.Thread(target=collection.optimize)
    optimizing.start()
    while optimizing.is_alive() and collection._copy is None:
        pass
    collection.stop_optimizing()
    optimizing.join(timeout=60)
    assert not optimizing.is_alive()
    assert contents(collection) == before
    assert sorted(p.name for p in collection.folder.iterdir()) == ["collection.json", "operations", "shard"]
