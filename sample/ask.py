"""Ask a question as one principal: the library's filter, Qdrant's search, and why each passage is readable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from qdrant_client import QdrantClient

from comemory.access import Principal, read_filter
from sample.content import COLLECTIONS, DIMENSIONS
from sample.load import VECTOR_NAME
from sample.vectors import embed


@dataclass(frozen=True)
class Hit:
    """One passage that was found: its collection, its id, how near it is (cosine, at most 1) and its payload."""

    collection: str
    id: str
    score: float
    payload: dict[str, Any]


def ask(
    client: QdrantClient,
    question: str,
    principal: Principal,
    *,
    limit: int = 5,
    least_score: float = 0.1,
    collections: Mapping[str, str] = COLLECTIONS,
) -> list[Hit]:
    """Find the passages nearest to the question among those that the principal may read, nearest first.

    Every collection is searched with the question's vector of its own dimension; a passage whose cosine is below
    `least_score` has hardly a word in common with the question and is left out. What the principal may not read
    never leaves the server: the access rule is part of the query, not a filter over its result.
    """
    hits = []
    for kind, name in collections.items():
        [vector] = embed([question], DIMENSIONS[kind])
        found = client.query_points(
            name,
            query=vector,
            using=VECTOR_NAME,
            query_filter=read_filter(principal),
            limit=limit,
            score_threshold=least_score,
            with_payload=True,
        )
        hits += [Hit(name, str(point.id), point.score, point.payload or {}) for point in found.points]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def why_readable(payload: Mapping[str, Any], principal: Principal) -> str:
    """Say in a few words which rule opens this payload to this principal, who is known to be allowed to read it."""
    if payload["visibility"] == "public":
        team = payload.get("team_id")
        return f"public for {team}" if team is not None else "public in the tenant"
    if (payload["owner_kind"], payload["owner_id"]) == (principal.owner_kind, principal.owner_id):
        return f"owned by {principal.owner_id}"
    acl = payload.get("acl") or {}
    granted = (
        _common(acl.get("read_agent_ids", ()), principal.agent_ids)
        + _common(acl.get("read_team_ids", ()), principal.team_ids)
        + _common(acl.get("read_role_ids", ()), principal.role_ids)
    )
    return f"access list: {', '.join(granted)}"


def _common(listed: Iterable[str], held: Iterable[str]) -> list[str]:
    return sorted(set(listed) & set(held))
