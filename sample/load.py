"""Write the sample's points into collections that exist already; a second load finds everything in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qdrant_client import QdrantClient, models

from sample.content import COLLECTIONS, DIMENSIONS, SamplePoint, points
from sample.vectors import embed

VECTOR_NAME = "dense"
_BATCH = 64


class MissingCollectionsError(Exception):
    """Collections that the sample writes to are not there; this command creates none."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__(
            f"the server has no collection {' and no '.join(names)}; the sample creates none: `make up` does"
        )


@dataclass(frozen=True)
class Loaded:
    """What a load did to one collection: points that were not there, that differed, and that were left alone."""

    collection: str
    added: int
    changed: int
    unchanged: int


def load(
    client: QdrantClient,
    collections: Mapping[str, str] = COLLECTIONS,
    content: Sequence[SamplePoint] | None = None,
    *,
    once: bool = False,
) -> list[Loaded]:
    """Make the collections hold the sample, and write only what differs from it.

    `collections` gives the name of the collection for each type (text, code, mm). Points that a job has deleted
    since are written again, unless `once` is set: then a collection that holds any point of the sample is left as
    it is. Points that are not the sample's are left alone. Raises `MissingCollectionsError` before anything is
    written.
    """
    missing = [name for name in collections.values() if not client.collection_exists(name)]
    if missing:
        raise MissingCollectionsError(missing)
    content = points() if content is None else content
    loaded = []
    for kind, name in collections.items():
        due = [point for point in content if point.type == kind]
        found = _present(client, name, due) if once else 0
        loaded.append(
            Loaded(name, added=0, changed=0, unchanged=found)
            if found
            else _load_one(client, name, DIMENSIONS[kind], due)
        )
    return loaded


def _present(client: QdrantClient, name: str, content: list[SamplePoint]) -> int:
    return len(client.retrieve(name, ids=[point.id for point in content], with_payload=False))


def _load_one(client: QdrantClient, name: str, dimension: int, content: list[SamplePoint]) -> Loaded:
    added = changed = 0
    for start in range(0, len(content), _BATCH):
        batch = content[start : start + _BATCH]
        stored = {
            str(record.id): record.payload
            for record in client.retrieve(name, ids=[point.id for point in batch], with_payload=True)
        }
        due = [point for point in batch if stored.get(point.id) != point.payload]
        new = sum(point.id not in stored for point in due)
        added, changed = added + new, changed + len(due) - new
        if due:
            vectors = embed([point.text for point in due], dimension)
            client.upsert(
                name,
                points=[
                    models.PointStruct(id=point.id, vector={VECTOR_NAME: vector}, payload=point.payload)
                    for point, vector in zip(due, vectors, strict=True)
                ],
                wait=True,
            )
    return Loaded(name, added, changed, len(content) - added - changed)
