"""Duplicates: which points hold the same content for the same readers, and which of them stays.

Two points are duplicates only within one access domain, so that removing one never takes a point from somebody
who could read it. A payload that leaves any of that in doubt (a list where one value belongs, a shortened
fingerprint, another schema) is a duplicate of nothing.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from comemory.fingerprints import PREFIX, normalise_fingerprint
from comemory.payload import SCHEMA_VERSION, SCOPES
from comemory.retention import DEFAULT_EXEMPT_TAGS, expires_at, is_exempt
from comemory.times import LATEST, parse_time

PointId = int | str
_64_BITS: Final = 2**64 - 1


class DuplicatePolicy(StrEnum):
    """What makes two points of one access domain the same."""

    SOURCE = "source"
    """The same fingerprint at the same place: the same `source_id` and `chunk.chunk_idx`."""
    CONTENT = "content"
    """The same fingerprint, wherever it came from."""


DEFAULT_POLICIES: Final[Mapping[str, DuplicatePolicy]] = {
    scope: DuplicatePolicy.CONTENT if scope == "memory" else DuplicatePolicy.SOURCE for scope in SCOPES
}

_ONE_EACH: Final = ("tenant_id", "owner_kind", "owner_id", "scope", "visibility")
_ONE_OR_NONE: Final = ("team_id", "project_id", "agent_id")
_ACL: Final = ("read_team_ids", "read_agent_ids", "read_role_ids")
DOMAIN_FIELDS: Final = (*_ONE_EACH, *_ONE_OR_NONE, "indexed", *(f"acl.{key}" for key in _ACL))
"""The fields that `access_domain` is made of, in its order; each has a payload index."""

DECIDING_FIELDS: Final = (
    "schema_version", *_ONE_EACH, *_ONE_OR_NONE, "indexed", "acl", "fingerprint", "source_id", "chunk.chunk_idx",
    "created_at", "ttl_days", "importance", "tags",
)  # fmt: skip
"""Everything of a payload that any function here looks at."""


def access_domain(payload: Mapping[str, Any]) -> tuple[Hashable, ...] | None:
    """Everything that decides who finds a point: points of equal domains have the same readers.

    Tenant, owner, scope, visibility, team, project, agent, `indexed`, and the three ACL lists as sets. None
    where the payload is not of our schema or one of these fields is malformed.
    """
    if payload.get("schema_version") != SCHEMA_VERSION or not isinstance(payload.get("indexed"), bool):
        return None
    required = [payload.get(key) for key in _ONE_EACH]
    nullable = [payload.get(key) for key in _ONE_OR_NONE]
    if not all(isinstance(value, str) and value for value in required):
        return None
    if not all(value is None or (isinstance(value, str) and value) for value in nullable):
        return None
    acl = payload.get("acl")
    if acl is None:
        acl = {}
    if not isinstance(acl, Mapping):
        return None
    readers = []
    for key in _ACL:
        ids = acl.get(key)
        if ids is None:
            ids = ()
        if not isinstance(ids, (list, tuple)) or not all(isinstance(one, str) for one in ids):
            return None
        readers.append(frozenset(ids))
    return (*required, *nullable, payload["indexed"], *readers)


def policy_for(scope: object, policies: Mapping[str, DuplicatePolicy] = DEFAULT_POLICIES) -> DuplicatePolicy:
    """The policy of a scope; the careful one, `source`, for a scope that `policies` does not name."""
    return policies.get(scope, DuplicatePolicy.SOURCE) if isinstance(scope, str) else DuplicatePolicy.SOURCE


def duplicate_key(
    payload: Mapping[str, Any], policy: DuplicatePolicy | None = None, vector_names: Collection[str] = ("dense",)
) -> tuple[Hashable, ...] | None:
    """Points with equal keys are duplicates; None where a point is a duplicate of nothing.

    Args:
        payload: as stored, well-formed or not.
        policy: None takes the default of the payload's scope.
        vector_names: the names of the vectors that the point has.
    """
    key = _content_key(payload, access_domain(payload), vector_names)
    if key is None:
        return None
    if (policy or policy_for(payload.get("scope"))) is DuplicatePolicy.CONTENT:
        return key
    place = _place(payload)
    return None if place is None else (*key, *place)


def _content_key(
    payload: Mapping[str, Any], domain: tuple[Hashable, ...] | None, vector_names: Collection[str]
) -> tuple[Hashable, ...] | None:
    content = normalise_fingerprint(payload.get("fingerprint"))
    return None if domain is None or content is None else (*domain, frozenset(vector_names), content)


def _place(payload: Mapping[str, Any]) -> tuple[str, int] | None:
    """Where a point came from: source and chunk."""
    chunk = payload.get("chunk")
    source, index = payload.get("source_id"), chunk.get("chunk_idx") if isinstance(chunk, Mapping) else None
    known = isinstance(source, str) and source and isinstance(index, int) and not isinstance(index, bool)
    return (source, index) if known else None  # type: ignore[return-value]


def fingerprint_hash(value: object) -> int | None:
    """The first 64 bits of a fingerprint, for bringing those together that may be equal.

    Points with equal normalised fingerprints have equal hashes; the rest is for `duplicate_key` to tell. None where
    `normalise_fingerprint` gives None, though not everywhere: it looks at the first 16 digits only.
    """
    if not isinstance(value, str):
        return None
    start = len(value) - 64
    if start not in (0, len(PREFIX)):
        return None
    try:
        return int(value[start : start + 16], 16) & _64_BITS
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Identity:
    """`duplicate_key` under both policies, 16 bytes each however many readers the ACL has.

    Two points have equal digests where their keys are equal, and only there. `source` is None for a point that is a
    duplicate of nothing under that policy.
    """

    content: bytes
    source: bytes | None

    def under(self, policy: DuplicatePolicy) -> bytes | None:
        """The digest under a policy."""
        return self.content if policy is DuplicatePolicy.CONTENT else self.source

    @classmethod
    def of(
        cls,
        payload: Mapping[str, Any],
        vector_names: Collection[str] = ("dense",),
        domain: tuple[Hashable, ...] | None = None,
    ) -> Identity | None:
        """The identity of a point with this payload; None where it is a duplicate of nothing.

        Args:
            payload: as stored, well-formed or not.
            vector_names: the names of the vectors that the point has.
            domain: its `access_domain`, from one who has it already.
        """
        key = _content_key(payload, domain or access_domain(payload), vector_names)
        if key is None:
            return None
        content = _digest(*(sorted(part) if isinstance(part, frozenset) else part for part in key))
        place = _place(payload)
        return cls(content, None if place is None else _digest(content, *place))


def _digest(*parts: object) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several duplicates, with what decides whether it stays.

    `expires` is None for a point that is never deleted, because it has no `ttl_days`, or none that can be read,
    or a tag that exempts it (`exempt`). `importance` is -1 and `created` the latest time where the payload does
    not say.
    """

    id: PointId
    expires: datetime | None
    importance: float
    created: datetime
    exempt: bool = False

    @classmethod
    def of(
        cls, point_id: PointId, payload: Mapping[str, Any], exempt_tags: Collection[str] = DEFAULT_EXEMPT_TAGS
    ) -> Candidate:
        """The candidate that a point with this payload is."""
        exempt = is_exempt(payload, exempt_tags)
        expiry = expires_at(payload)
        importance = payload.get("importance")
        known = isinstance(importance, (int, float)) and not isinstance(importance, bool) and 0 <= importance <= 1
        return cls(
            id=point_id,
            expires=expiry if isinstance(expiry, datetime) and not exempt else None,
            importance=float(importance) if known and importance is not None else -1.0,
            created=parse_time(payload.get("created_at")) or LATEST,
            exempt=exempt,
        )

    @property
    def rank(self) -> tuple[Any, ...]:
        """The order in which candidates are kept: the survivor has the lowest rank."""
        number = isinstance(self.id, int)
        return (
            self.expires is not None,
            (LATEST - self.expires) if self.expires else timedelta(0),
            -self.importance,
            self.created,
            not number,
            self.id if number else _digits(str(self.id)),
        )


def _digits(text: str) -> str:
    """The 32 digits of a UUID, which sort as its number does; `uuid.UUID` takes twenty times as long."""
    digits = text.replace("-", "").lower()
    return digits if len(digits) == 32 else uuid.UUID(text).hex


def _rank(candidate: Candidate) -> tuple[Any, ...]:
    return candidate.rank


def survivor(candidates: Iterable[Candidate]) -> Candidate:
    """The one that stays: it lives longest, then is the most important, then the oldest, then has the smallest id.

    The order is total (numbers come before UUIDs, UUIDs compare as numbers), so two runs at once choose the same.
    """
    return min(candidates, key=_rank)


def victims(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that may be deleted, in order of their ids' rank: all but the survivor and those that a tag exempts."""
    keeper = survivor(candidates)
    return sorted((one for one in candidates if one != keeper and not one.exempt), key=_rank)


@dataclass(frozen=True, slots=True)
class Copies:
    """Points that are the same to the same readers: the one that stays, those that may go, and those that a tag
    keeps although they are copies."""

    survivor: Candidate
    victims: tuple[Candidate, ...]
    exempt: tuple[Candidate, ...] = ()


def find_copies(members: Iterable[tuple[bytes, Candidate]]) -> list[Copies]:
    """What to do about points with their digests (`Identity`): one `Copies` for each digest that several have."""
    by_digest: defaultdict[bytes, list[Candidate]] = defaultdict(list)
    for digest, candidate in members:
        by_digest[digest].append(candidate)
    found = []
    for candidates in by_digest.values():
        if len(candidates) > 1:
            keeper, *others = sorted(candidates, key=_rank)
            going = tuple(one for one in others if not one.exempt)
            found.append(Copies(keeper, going, tuple(one for one in others if one.exempt)))
    return found
