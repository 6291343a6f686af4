"""Holding a deletion of copies to their rank: a copy that would win over its survivor by now must stay.

What a copy may become before it wins is a bound on one field: how late it may have been created before it outlives
its survivor, how important it may be, or how early. Copies whose bounds can be met by one number share a condition,
so that a batch needs a few of them, not one per copy; only copies that were written with the very time of their
survivor need one per time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from qdrant_client import models

from comemory.duplicates import Candidate
from comemory.filters import Condition, at_most_one, either, matches
from comemory.times import LATEST
from ops.session import PointId

MOST_CLAUSES = 256
"""Bounds of one deletion at most: the server looks each point up in one after the other."""

CONDITIONS = 5
"""What a bound takes of the number of conditions that a filter may have, at most."""

_LATELY = 32
"""Bounds that a further copy is tried with; copies come in order of their time."""

_MOMENT = timedelta(microseconds=1)


@dataclass(slots=True)
class _Bound:
    """Copies with a number from `low` to `high` that keeps all of them behind their survivors."""

    low: Any
    high: Any
    points: list[PointId]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Copies that lose for the same reason.

    `days` is set where they expire: then the bound is the latest `created_at`, and else the earliest, or, where
    `importance` is None too, the highest importance. `importance` is the highest, where it decides as well.
    """

    days: int | None
    importance: float | None


@dataclass(frozen=True, slots=True)
class Place:
    """A copy with its bound, and the one of its kind that it can share."""

    copy: PointId
    kind: _Kind
    low: Any
    high: Any
    shared: _Bound | None


class Standings:
    """The copies of one deletion with what keeps them behind their survivors."""

    def __init__(self) -> None:
        self._kinds: dict[_Kind, list[_Bound]] = {}
        self._clauses = 0

    def place(self, survivor: Candidate, copy: Candidate, days: int | None) -> Place:
        """Where a copy would stand.

        Args:
            survivor: As it is now.
            copy: As it was when it was found to lose against the survivor.
            days: Its `ttl_days`, where it expires.
        """
        kind, low, high = _bound(survivor, copy, days)
        return Place(copy.id, kind, low, high, self._shared(kind, low, high))

    def cost(self, place: Place) -> int | None:
        """How many more conditions a copy would take; None where there is no room for them."""
        if place.shared is not None:
            return 0
        return CONDITIONS if self._clauses < MOST_CLAUSES else None

    def add(self, place: Place) -> None:
        """Add a copy at the place that was found last."""
        shared = place.shared
        if shared is None:
            self._kinds.setdefault(place.kind, []).append(_Bound(place.low, place.high, [place.copy]))
            self._clauses += 1
        else:
            shared.low, shared.high = max(shared.low, place.low), min(shared.high, place.high)
            shared.points.append(place.copy)

    def _shared(self, kind: _Kind, low: Any, high: Any) -> _Bound | None:
        for bound in reversed(self._kinds.get(kind, [])[-_LATELY:]):
            if max(bound.low, low) <= min(bound.high, high):
                return bound
        return None

    def conditions(self) -> list[Condition]:
        """What holds of each copy while it is behind its survivor."""
        clauses = [_clause(kind, bound) for kind, bounds in self._kinds.items() for bound in bounds]
        held: list[Condition] = [clauses[0] if len(clauses) == 1 else either(*clauses)]
        if any(kind.days is not None for kind in self._kinds):
            # With several values it would not expire.
            held += [at_most_one("ttl_days"), at_most_one("created_at")]
        return held


def _bound(survivor: Candidate, copy: Candidate, days: int | None) -> tuple[_Kind, Any, Any]:
    """Why the copy loses, and from what it has now to the furthest that it may have and still lose."""
    if copy.expires is not None and days is not None:
        life = timedelta(days=days)
        if survivor.expires is None:
            return _Kind(days, None), copy.created, LATEST - life
        if copy.expires < survivor.expires:
            return _Kind(days, None), copy.created, survivor.expires - life - _MOMENT
        return _Kind(days, copy.importance), copy.created, copy.created
    # Neither expires. Should this one do so by now, it loses all the more.
    if copy.importance < survivor.importance:
        return _Kind(None, None), copy.importance, math.nextafter(survivor.importance, -math.inf)
    as_old = replace(copy, created=survivor.created)
    earliest = survivor.created if survivor.rank < as_old.rank else survivor.created + _MOMENT
    return _Kind(None, copy.importance), earliest, copy.created


def _clause(kind: _Kind, bound: _Bound) -> models.Filter:
    must: list[Condition] = [models.HasIdCondition(has_id=bound.points)]
    must_not: list[Condition] = []
    if kind.days is not None:
        # The index cuts off what is below a microsecond.
        must += [matches("ttl_days", kind.days), _created(lt=bound.high + _MOMENT)]
    elif kind.importance is not None:
        must_not.append(_created(lt=bound.low))
    highest = bound.high if kind == _Kind(None, None) else kind.importance
    if highest is not None:
        must_not += _more_important(highest)
    return models.Filter(must=must, must_not=must_not or None)


def _created(**limits: Any) -> models.FieldCondition:
    return models.FieldCondition(key="created_at", range=models.DatetimeRange(**limits))


def _more_important(than: float) -> Iterator[Condition]:
    """Points with more importance; what is outside 0 to 1 counts as none, which is -1."""
    if than < 1:
        above = models.Range(gt=than, lte=1) if than >= 0 else models.Range(gte=0, lte=1)
        yield models.FieldCondition(key="importance", range=above)
