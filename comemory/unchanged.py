"""A filter that a point meets while its payload is what it was when it was read.

Qdrant has no versions of points to hold a write to, and in strict mode a filter may only name indexed fields. So
this asks of every indexed field whether it still has its values: those that decide who reads come first, in case
a server limits how many conditions a filter may have. An application that sets `updated_at` whenever it writes is
so seen whatever it changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from qdrant_client import models

from comemory.duplicates import DOMAIN_FIELDS
from comemory.filters import Condition, is_empty, is_text, matches
from comemory.live import LiveIndex
from comemory.times import parse_time

FIRST: Final = ("schema_version", *DOMAIN_FIELDS, "updated_at", "ttl_days", "created_at", "fingerprint", "tags")
"""The fields asked about first: who reads, what any write changes, and what decides how long it stays."""

MOST_VALUES: Final = 32
"""So many values of a list are asked for one by one; of a longer one only that none was added."""

_INT64: Final = range(-(2**63), 2**63)


def unchanged(
    point_id: int | str, payload: Mapping[str, Any], indexes: Mapping[str, LiveIndex], *, most: int | None = None
) -> models.Filter:
    """The point of this id, while its indexed fields are what they are in `payload`.

    A payload always meets its own filter, also a malformed one: what an index does not hold is not asked about.

    Args:
        point_id: the point.
        payload: as it was read.
        indexes: the collection's payload indexes.
        most: how many conditions a filter may have; None: any number.
    """
    order = {field: place for place, field in enumerate(FIRST)}
    fields = sorted(indexes, key=lambda field: (order.get(field, len(order)), field))
    held = (one for field in fields for one in _held(field, indexes[field], payload))
    chosen = list(held if most is None else islice(held, max(0, most - 1)))
    must: list[Condition] = [models.HasIdCondition(has_id=[point_id])]
    must += [condition for condition, holds in chosen if holds]
    must_not = [condition for condition, holds in chosen if not holds]
    return models.Filter(must=must, must_not=must_not or None)


def _held(field: str, index: LiveIndex, payload: Mapping[str, Any]) -> Iterator[tuple[Condition, bool]]:
    """Conditions on one field, each with whether it holds."""
    found = _values(payload, field)
    if found is None:
        return
    values = list(found)
    if index.type == "keyword":
        yield from _texts(field, sorted({value for value in values if isinstance(value, str)}))
    elif index.type == "bool":
        for wanted in (True, False):
            yield matches(field, wanted), any(value is wanted for value in values)
    elif not values:
        yield is_empty(field), True
    elif index.type == "integer" and index.params.get("lookup") is not False:
        numbers = {value for value in values if type(value) is int and value in _INT64}
        yield from ((matches(field, number), True) for number in sorted(numbers)[:MOST_VALUES])
    elif index.type == "float":
        floats = {float(value) for value in values if type(value) in (int, float) and math.isfinite(value)}
        for number in sorted(floats)[:MOST_VALUES]:
            yield models.FieldCondition(key=field, range=models.Range(gte=number, lte=number)), True
    elif index.type == "datetime":
        times = {time for time in map(parse_time, values) if time is not None}
        for time in sorted(times)[:MOST_VALUES]:
            yield models.FieldCondition(key=field, range=models.DatetimeRange(gte=time, lte=time)), True


def _texts(field: str, texts: list[str]) -> Iterator[tuple[Condition, bool]]:
    if not texts:
        yield is_text(field), False
        return
    yield models.FieldCondition(key=field, match=models.MatchExcept(**{"except": texts})), False
    if len(texts) <= MOST_VALUES:
        yield from ((matches(field, text), True) for text in texts)


def _values(payload: Mapping[str, Any], field: str) -> Iterable[Any] | None:
    """What an index of the field sees: none where it is missing or null; None where that is
    not plain: a list on the way there, or one of nothing but nulls."""
    value: Any = payload
    for key in field.split("."):
        if isinstance(value, list):
            return None
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, list):
        known = [one for one in value if one is not None]
        return known if known or not value else None
    return [] if value is None else [value]
