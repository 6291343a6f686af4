"""A memory collection for a test: the name, indexes and strict mode that `pulumi up` gives one."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from qdrant_client import QdrantClient, models

from comemory.indexes import PAYLOAD_INDEXES, IndexSpec
from ops.jobs.base import Context
from ops.session import Session
from ops.settings import Settings

DIMENSION = 4
STRICT = models.StrictModeConfig(enabled=True, unindexed_filtering_retrieve=False, unindexed_filtering_update=False)


@dataclass
class Memory:
    """A collection; `put` writes points with ids from `start`."""

    client: QdrantClient
    name: str

    def put(self, payloads: Iterable[Mapping[str, Any]], start: int = 0) -> None:
        points = [
            models.PointStruct(id=start + i, vector={"dense": [1.0, 0.0, 0.0, 0.0]}, payload=dict(payload))
            for i, payload in enumerate(payloads)
        ]
        for begin in range(0, len(points), 2000):
            self.client.upsert(self.name, points[begin : begin + 2000], wait=True)

    def clear(self) -> None:
        self.client.delete(self.name, models.FilterSelector(filter=models.Filter(must=[])), wait=True)

    def delete(self) -> None:
        self.client.delete_collection(self.name)


@contextmanager
def memory(
    client: QdrantClient,
    *,
    indexes: Iterable[IndexSpec] = PAYLOAD_INDEXES,
    strict: models.StrictModeConfig | None = STRICT,
    metadata: dict[str, Any] | None = None,
    size: int = DIMENSION,
) -> Iterator[Memory]:
    """A collection with a name of its own, `cm_text_4_v<random>`, deleted afterwards."""
    name = f"cm_text_{DIMENSION}_v{random.randint(1, 10**9 - 1)}"
    client.create_collection(
        name,
        {"dense": models.VectorParams(size=size, distance=models.Distance.COSINE)},
        strict_mode_config=strict,
        metadata=metadata,
    )
    try:
        for index in indexes:
            client.create_payload_index(name, index.field, index.field_schema(), wait=True)  # type: ignore[arg-type]
        yield Memory(client, name)
    finally:
        client.delete_collection(name)


@contextmanager
def context_for(url: str, *names: str, retry_for: float = 0.5, **sections: Any) -> Iterator[Context]:
    """A context whose settings look after these collections only; sections of settings are given as dicts."""
    collections = {"include": names, **sections.pop("collections", {})}
    with Session(url, retry_for=retry_for, timeout=30) as session:
        yield Context(session, Settings(collections=collections, **sections))
