"""Deleting copies while their survivors are there.

Three steps follow each other at once: the survivors are read again and must be what they were, the copies are
deleted by their ids AND what made them copies that lose, and what is still there is read, since it was changed in
between and is not counted. So a copy goes only while its survivor is there, and deleting never shortens what is
kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from qdrant_client import models

from comemory.duplicates import Candidate, DuplicatePolicy, policy_for
from comemory.filters import Condition, either, every, matches, matches_any
from comemory.payload import SCHEMA_VERSION
from ops.jobs.holding import Holding
from ops.jobs.limits import Limits
from ops.jobs.members import Member, MemberReader, has_vector
from ops.session import PointId, Session

Pair = tuple[Candidate, Candidate]
"""A survivor and one of its copies."""

BESIDE = 20
"""Conditions of a deletion beside those of the access domain, of the rank and one for each vector, at most."""

_LARGEST_INDEX = 2**63 - 1
"""The integer index holds 64 bits with a sign; a filter by anything larger is refused."""


class CopyDeletion:
    """Deletes copies from one collection.

    Args:
        limits: How large a filter may be.
        policies: The policy of each scope.
        exempt_tags: A point with one of these tags is never deleted.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        reader: MemberReader,
        *,
        limits: Limits,
        policies: Mapping[str, DuplicatePolicy],
        exempt_tags: Collection[str],
    ) -> None:
        self._session, self._name, self._reader = session, name, reader
        self._policies, self._exempt_tags = policies, exempt_tags
        most = limits.filter_max_conditions
        self._room = None if most is None else most - BESIDE - len(reader.vectors)
        self.skipped: Counter[str] = Counter()
        """Copies left alone so far: `survivor_changed` and `changed`."""

    def delete(self, pairs: Sequence[Pair], members: Mapping[PointId, Member]) -> tuple[list[Pair], int]:
        """Delete the copies of those survivors that are what they were.

        Args:
            pairs: Survivors with their copies.
            members: All of these, as they were when it was decided.

        Returns:
            The pairs whose copy is gone, and how many pairs, from the first, one filter could hold.
        """
        sound: list[Pair] = []
        taken = 0

        def condition() -> models.Filter | None:
            # Asked before each try: a survivor may go while a busy server is waited for.
            nonlocal sound, taken
            ids = dict.fromkeys(survivor.id for survivor, _ in pairs)
            now = {one.candidate.id: one for one in self._reader.read(list(ids), with_domain=True)}
            holding = Holding(self._room)
            sound, taken = [], 0
            for survivor, copy in pairs:
                seen = now.get(survivor.id)
                if (
                    seen is not None
                    and seen.digest == members[survivor.id].digest
                    and seen.candidate.rank < copy.rank
                ):
                    if not holding.add(seen.candidate, copy, seen.domain or (), _days(members[copy.id])):
                        break
                    sound.append((seen.candidate, copy))
                taken += 1
            return self._condition([members[copy.id] for _, copy in sound], holding) if sound else None

        self._session.delete(self._name, condition)
        self.skipped["survivor_changed"] += taken - len(sound)
        if not sound:
            return [], taken
        left = {point["id"] for point in self._session.retrieve(self._name, [copy.id for _, copy in sound])}
        self.skipped["changed"] += len(left)
        return [(survivor, copy) for survivor, copy in sound if copy.id not in left], taken

    def _condition(self, copies: Sequence[Member], holding: Holding) -> models.Filter:
        """What has to hold of copies when they are deleted: what made them copies, and made them lose."""
        must: list[Condition] = [
            matches("schema_version", SCHEMA_VERSION),
            matches_any("fingerprint", sorted({one.fields["fingerprint"] for one in copies})),
            *holding.conditions(),
            *self._same_place(copies),
            _these(copies),
        ]
        if self._reader.uniform:
            must += [has_vector(vector) for vector in self._reader.vectors]
        exempt = list(self._exempt_tags)
        return models.Filter(must=must, must_not=[matches_any("tags", exempt)] if exempt else None)

    def _same_place(self, copies: Sequence[Member]) -> list[Condition]:
        """That the copies whose place makes them copies are still there; none where there are none such."""
        policies = {one.candidate.id: policy_for(one.whose[1], self._policies) for one in copies}
        placed = [one for one in copies if policies[one.candidate.id] is DuplicatePolicy.SOURCE]
        if not placed:
            return []
        chunks = sorted({one.fields["chunk_idx"] for one in placed})
        indexes = [chunk for chunk in chunks if -_LARGEST_INDEX <= chunk <= _LARGEST_INDEX]
        there = every(
            _these(placed),
            matches_any("source_id", sorted({one.fields["source_id"] for one in placed})),
            models.FieldCondition(key="chunk.chunk_idx", match=models.MatchAny(any=indexes)),
        )
        if len(placed) == len(copies):
            return [there]
        others = [one for one in copies if policies[one.candidate.id] is not DuplicatePolicy.SOURCE]
        return [either(there, _these(others))]


def _days(copy: Member) -> int | None:
    """The whole number that `ttl_days` holds, as it is or as the one item of a list, where the copy expires."""
    if copy.candidate.expires is None:
        return None
    ttl: Any = copy.fields["ttl_days"]
    return int(ttl[0] if isinstance(ttl, list) else ttl)


def _these(members: Sequence[Member]) -> models.HasIdCondition:
    return models.HasIdCondition(has_id=[member.candidate.id for member in members])
