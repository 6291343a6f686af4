"""Two collections that hold the same points: one with payload indexes, as in production, one with none."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from comemory.filters import every

INDEXES: dict[str, models.PayloadSchemaType] = {
    **dict.fromkeys(
        (
            "schema_version", "tenant_id", "team_id", "project_id", "agent_id", "owner_kind", "owner_id", "scope",
            "visibility", "fingerprint", "acl.read_team_ids", "acl.read_agent_ids", "acl.read_role_ids", "tags",
        ),
        models.PayloadSchemaType.KEYWORD,
    ),
    "indexed": models.PayloadSchemaType.BOOL,
    "ttl_days": models.PayloadSchemaType.INTEGER,
    "created_at": models.PayloadSchemaType.DATETIME,
}  # fmt: skip


class Points:
    """Points 0 to n-1 with given payloads in a collection, and which of them a filter finds."""

    def __init__(self, client: QdrantClient, name: str) -> None:
        self.client, self.name, self.number = client, name, 0

    def put(self, payloads: Sequence[dict[str, Any]]) -> None:
        """Replace what was there."""
        self.number = len(payloads)
        points = [models.PointStruct(id=i, vector={"dense": [1.0]}, payload=p) for i, p in enumerate(payloads)]
        self.client.upsert(self.name, points, wait=True)

    def found(self, condition: models.Filter) -> set[int]:
        """The places, in the sequence that was put, of the points that meet `condition`."""
        here = models.HasIdCondition(has_id=list(range(self.number)))
        points, _ = self.client.scroll(
            self.name, scroll_filter=every(condition, here), limit=self.number + 1, with_payload=False
        )
        return {int(point.id) for point in points}


@pytest.fixture(scope="session")
def engine(qdrant: QdrantClient) -> Iterator[Callable[[bool], Points]]:
    """`engine(True)` is the collection with indexes, `engine(False)` the one without."""
    made: dict[bool, Points] = {}
    for indexed in (True, False):
        name = f"test_{uuid.uuid4().hex}"
        qdrant.create_collection(name, {"dense": models.VectorParams(size=1, distance=models.Distance.DOT)})
        for key, kind in (INDEXES if indexed else {}).items():
            qdrant.create_payload_index(name, key, kind, wait=True)
        made[indexed] = Points(qdrant, name)
    yield made.__getitem__
    for points in made.values():
        qdrant.delete_collection(points.name)
