"""A collection as Qdrant stores it: points, vectors, index, segments, status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qdrant_client import models

from comemory.live import LiveCollection
from ops.collectors.base import Target
from ops.metrics import (
    COLLECTION_INDEXED_VECTORS,
    COLLECTION_POINTS,
    COLLECTION_SEGMENTS,
    COLLECTION_STATUS,
    COLLECTION_VECTORS,
    STATUSES,
)
from ops.snapshot import Sample


class StorageCollector:
    """Two requests, and one for each named vector: Qdrant itself no longer reports how many vectors there are."""

    name = "storage"

    def collect(self, target: Target) -> list[Sample]:
        """Read the collection's description, and count its points and vectors."""
        name = target.collection
        info = target.session.collection(name)
        samples = [
            Sample(COLLECTION_POINTS, (name,), target.session.count(name)),
            Sample(COLLECTION_INDEXED_VECTORS, (name,), info.get("indexed_vectors_count") or 0),
            Sample(COLLECTION_SEGMENTS, (name,), info["segments_count"]),
            *(Sample(COLLECTION_STATUS, (name, status), info["status"] == status) for status in STATUSES),
        ]
        for vector in _vectors(LiveCollection.from_rest(name, info).settings):
            having = models.Filter(must=[models.HasVectorCondition(has_vector=vector)])
            samples.append(Sample(COLLECTION_VECTORS, (name, vector), target.session.count(name, having)))
        return samples


def _vectors(settings: Mapping[str, Any]) -> list[str]:
    return [*(settings.get("vectors") or {}), *(settings.get("sparse_vectors") or {})]
