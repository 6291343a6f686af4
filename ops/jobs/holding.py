"""Holding a deletion of copies to their access domain and rank: what changed since it was found must stay.

One condition per field of the domain says which of the points must have which value, so that a point that took the
value of another one in the same batch is held as well. Grouping by whole domains would say the same with many
times as many conditions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from qdrant_client import models

from comemory.duplicates import DOMAIN_FIELDS, Candidate
from comemory.filters import Condition, either, is_text, matches
from ops.jobs.standing import Standings
from ops.session import PointId

HELD_READERS = 32
"""So long a list of readers is held as it is. A longer one is held against additions only, one condition instead of
one per reader: when it gets shorter, all who are left can read the survivor too."""

Domain = tuple[Hashable, ...]


class Holding:
    """The copies of one deletion with their access domains and what keeps them behind their survivors.

    Args:
        limit: How many conditions they may take, or None for no limit; a single point is taken whatever it needs.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._size = 0
        self._values: list[defaultdict[Hashable, list[PointId]]] = [defaultdict(list) for _ in DOMAIN_FIELDS]
        self._standings = Standings()

    def add(self, survivor: Candidate, copy: Candidate, domain: Domain, days: int | None) -> bool:
        """Add a copy, if there is room for what its domain and rank need; say whether there was.

        Args:
            survivor: As it is now.
            copy: As it was found.
            domain: The access domain of both.
            days: The copy's `ttl_days`, where it expires.
        """
        place = self._standings.place(survivor, copy, days)
        behind = self._standings.cost(place)
        if behind is None:
            return False
        new = behind + sum(
            _cost(value) for values, value in zip(self._values, domain, strict=True) if value not in values
        )
        if self._limit is not None and self._size and self._size + new > self._limit:
            return False
        self._size += new
        self._standings.add(place)
        for values, value in zip(self._values, domain, strict=True):
            values[value].append(copy.id)
        return True

    def conditions(self) -> list[Condition]:
        """What holds of each copy while it is in its domain and behind its survivor."""
        held: list[Condition] = self._standings.conditions()
        for key, values in zip(DOMAIN_FIELDS, self._values, strict=True):
            alone = len(values) == 1
            clauses = [_has(key, value, () if alone else points) for value, points in values.items()]
            held.append(clauses[0] if alone else either(*clauses))
            if texts := sorted(value for value in values if isinstance(value, str)):
                held.append(models.Filter(must_not=[_another(key, texts)]))
        return held


def _has(key: str, value: Hashable, points: Sequence[PointId]) -> models.Filter:
    """Those of `points` (none given: all) whose `key` is `value`; a frozenset is a list in any order."""
    must: list[Condition] = [models.HasIdCondition(has_id=list(points))] if points else []
    must_not: list[Condition] = []
    if value is None:
        must_not = [is_text(key)]
    elif isinstance(value, frozenset):
        readers = sorted(value)
        must += [matches(key, reader) for reader in readers] if len(readers) <= HELD_READERS else []
        must_not = [_another(key, readers)]
    elif isinstance(value, bool):
        must.append(matches(key, value))
        must_not = [matches(key, not value)]
    else:
        must.append(matches(key, str(value)))
    return models.Filter(must=must or None, must_not=must_not or None)


def _another(key: str, texts: Sequence[str]) -> models.FieldCondition:
    """Points whose `key` is, or holds, a text that is none of these."""
    return models.FieldCondition(key=key, match=models.MatchExcept(**{"except": list(texts)}))


def _cost(value: Hashable) -> int:
    """How many conditions a value takes at most: the ids, the value or its readers, and that there is no other."""
    readers = len(value) if isinstance(value, frozenset) and len(value) <= HELD_READERS else 1
    return 2 + readers
