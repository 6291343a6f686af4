"""Points as application code writes them: deterministic ids, and upserts that change nothing that is there already.

A point's id is derived from its duplicate identity, so whoever writes the same content for the same readers
writes the same point, and with `insert_only` the second write does nothing. Nothing here opens a connection:
the results go to a `QdrantClient`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from qdrant_client import models

from comemory.duplicates import DuplicatePolicy, duplicate_key
from comemory.errors import CoMemoryError
from comemory.payload import InvalidPayloadError, Payload

NAMESPACE: Final = uuid.UUID("5b1f2c9e-7d0a-5c44-9a55-0c6d3e8f1a27")
"""The namespace of our UUIDv5; changing it would give every point another id."""


def point_id(
    payload: Mapping[str, Any], vector_names: Iterable[str] = ("dense",), policy: DuplicatePolicy | None = None
) -> str:
    """The id of a point with this payload: a UUIDv5 of its duplicate key.

    It depends on tenant, team, project, agent, owner, scope, visibility, `indexed`, ACL, vector names and
    fingerprint, and under the policy `source` on `source_id` and `chunk.chunk_idx`; not on the collection, nor
    on anything else.

    Raises:
        CoMemoryError: the payload has no duplicate identity (malformed, or a shortened fingerprint).
    """
    key = duplicate_key(payload, policy, frozenset(vector_names))
    if key is None:
        problems = Payload.problems(payload)
        raise InvalidPayloadError(problems) if problems else CoMemoryError("payload has no duplicate identity")
    plain = [sorted(part) if isinstance(part, frozenset) else part for part in key]
    return str(uuid.uuid5(NAMESPACE, json.dumps(plain, ensure_ascii=False, separators=(",", ":"))))


def new_point(
    payload: Mapping[str, Any] | Payload, vectors: Mapping[str, Any], policy: DuplicatePolicy | None = None
) -> models.PointStruct:
    """A point to be written: the payload checked strictly, the id derived from it.

    Args:
        payload: what the specification asks for, plus fields of your own.
        vectors: by name, for example `{"dense": [0.1, 0.2]}`.
        policy: what makes it the same as another; None takes the default of its scope.

    Raises:
        InvalidPayloadError: the payload breaks the schema.
        CoMemoryError: the vectors are not given by name.
    """
    if not isinstance(vectors, Mapping):
        raise CoMemoryError('vectors are given by name, for example {"dense": [0.1, 0.2]}')
    checked = payload if isinstance(payload, Payload) else Payload.parse(payload)
    stored = checked.to_payload()
    return models.PointStruct(id=point_id(stored, vectors, policy), vector=dict(vectors), payload=stored)


def insert_only(points: Iterable[models.PointStruct]) -> models.UpsertOperation:
    """An upsert that leaves every point alone that exists already; for `QdrantClient.batch_update_points`.

    It takes a server of version 1.17 or newer; an older one ignores the mode and overwrites.
    """
    return models.UpsertOperation(
        upsert=models.PointsList(points=list(points), update_mode=models.UpdateMode.INSERT_ONLY)
    )
