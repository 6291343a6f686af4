"""Reading what decides of points that may be copies of each other, in answers of a bounded size."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from comemory.duplicates import (
    DECIDING_FIELDS,
    Candidate,
    DuplicatePolicy,
    Identity,
    access_domain,
    policy_for,
)
from comemory.filters import every
from ops.jobs.holding import Domain
from ops.jobs.limits import Limits, parts
from ops.session import PointId, Session

CHUNK = 2000
"""Points that are read and decided on together, at most."""

BYTES_PER_READ = 1_000_000
"""About how large an answer with the deciding fields may be: a payload with 10,000 readers is 200 kB."""

Whose = tuple[str, str]
"""Tenant and scope."""


@dataclass(slots=True)
class Member:
    """A point that was read."""

    candidate: Candidate
    digest: bytes
    """What it has in common with its copies under the policy of its scope, and `content` under the other one."""
    content: bytes
    whose: Whose
    fields: Mapping[str, Any]
    """Those fields by which its deletion is held, beside the access domain, which is its survivor's."""
    readers: int
    """How many ids its lists of readers hold."""
    longest: int
    """How many ids the longest of these holds."""
    domain: Domain | None
    """The access domain, of a survivor that was read again: with 10,000 readers it is too large to be kept."""


class MemberReader:
    """Reads members of one collection.

    Args:
        info: What the server says of the collection.
        policies: The policy of each scope.
        exempt_tags: A point with one of these tags is never deleted.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        *,
        info: Mapping[str, Any],
        policies: Mapping[str, DuplicatePolicy],
        exempt_tags: Collection[str],
    ) -> None:
        self._session, self._name = session, name
        self._policies, self._exempt_tags = policies, exempt_tags
        self._limits = Limits.of(info)
        params = info["config"]["params"]
        self.vectors = [*_vector_names(params.get("vectors")), *(params.get("sparse_vectors") or {})]
        self._uniform: bool | None = None
        self._read_size = 200

    @property
    def uniform(self) -> bool:
        """Whether all points of the collection have all of its vectors."""
        if self._uniform is None:
            without = [models.Filter(must_not=[has_vector(vector)]) for vector in self.vectors]
            self._uniform = not any(self._session.count(self._name, one) for one in without)
        return self._uniform

    def read(self, ids: Sequence[PointId], *, with_domain: bool = False) -> list[Member]:
        """The points of these ids that may be copies of something."""
        found = []
        for points in self._points(ids):
            names = None if self.uniform else self._vector_names([point["id"] for point in points])
            for point in points:
                vectors = self.vectors if names is None else names.get(point["id"], frozenset())
                member = self._member(point, vectors, with_domain=with_domain)
                if member is not None:
                    found.append(member)
        return found

    def _member(self, point: Mapping[str, Any], vectors: Collection[str], *, with_domain: bool) -> Member | None:
        payload = point.get("payload") or {}
        domain = access_domain(payload)
        identity = None if domain is None else Identity.of(payload, vectors, domain)
        if domain is None or identity is None:
            return None
        digest = identity.under(policy_for(payload["scope"], self._policies))
        if digest is None:
            # Without a source it is nobody's copy; `content` would still take it for one.
            digest = hashlib.blake2b(repr(point["id"]).encode(), digest_size=16, person=b"id").digest()
        chunk = payload.get("chunk")
        lists = [len(part) for part in domain if isinstance(part, frozenset)]
        return Member(
            candidate=Candidate.of(point["id"], payload, self._exempt_tags),
            digest=digest,
            content=identity.content,
            whose=(payload["tenant_id"], payload["scope"]),
            fields={
                "fingerprint": payload["fingerprint"],
                "ttl_days": payload.get("ttl_days"),
                "source_id": payload.get("source_id"),
                "chunk_idx": chunk.get("chunk_idx") if isinstance(chunk, Mapping) else None,
            },
            readers=sum(lists),
            longest=max(lists, default=0),
            domain=domain if with_domain else None,
        )

    def _points(self, ids: Sequence[PointId]) -> Iterator[list[dict[str, Any]]]:
        """The points with the deciding fields, so many at a time that an answer is not too large."""
        place = 0
        while place < len(ids):
            some = ids[place : place + self._read_size]
            before = self._session.traffic.received
            points = self._session.retrieve(self._name, some, payload=DECIDING_FIELDS)
            per_point = max(1, (self._session.traffic.received - before) // len(some))
            self._read_size = max(1, min(2 * self._read_size, CHUNK, BYTES_PER_READ // per_point))
            place += len(some)
            yield points

    def _vector_names(self, ids: Sequence[PointId]) -> dict[PointId, frozenset[str]]:
        """Which vectors each point has."""
        found: dict[PointId, frozenset[str]] = {}
        for some in parts(ids, self._limits.ids(self._limits.page(CHUNK))):
            for vector in self.vectors:
                having = every(models.HasIdCondition(has_id=list(some)), has_vector(vector))
                for page in self._session.scroll(self._name, having, page=len(some)):
                    for point in page:
                        found[point["id"]] = found.get(point["id"], frozenset()) | {vector}
        return found


def has_vector(vector: str) -> models.HasVectorCondition:
    """Points that have a vector of this name."""
    return models.HasVectorCondition(has_vector=vector)


def _vector_names(vectors: Mapping[str, Any] | None) -> list[str]:
    """The names of dense vectors; an unnamed one has the empty name."""
    if not vectors:
        return []
    return [""] if "size" in vectors and "distance" in vectors else list(vectors)
