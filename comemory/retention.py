"""Retention: when a point expires, and the filters that find expired points and unreadable retention.

`expires_at` is the rule in plain Python; `expired_filter` agrees with it on every payload, well-formed or not,
because the filter is the condition under which points are deleted. That is why it also carries guards which a
query could not afford: a deletion is rare, and exactness comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from qdrant_client import models

from comemory.filters import Condition, at_most_one, either, every, is_empty, matches, matches_any
from comemory.payload import SCHEMA_VERSION, Reason
from comemory.times import EARLIEST, LATEST, parse_time

DEFAULT_EXEMPT_TAGS: Final = ("legal_hold",)

# The integer index holds 64 bits with a sign; what lies above is not in it.
_LARGEST_TTL: Final = 2.0**63


@dataclass(frozen=True, slots=True)
class InvalidRetention:
    """Retention that cannot be read: such a point is never deleted, only counted. `code` is `<field>.<reason>`."""

    field: str
    reason: Reason

    @property
    def code(self) -> str:
        """For example `ttl_days.wrong_type`; the same codes as a payload's problems have."""
        return f"{self.field}.{self.reason.value}"


def expires_at(payload: Mapping[str, Any]) -> datetime | InvalidRetention | None:
    """When a point with this payload expires, in UTC.

    Returns:
        `created_at + ttl_days`; None where it never expires (`ttl_days` missing, null or an empty list, or a date
        beyond the year 9999); `InvalidRetention` where it cannot be told, or the payload is of another schema.
    """
    schema = _single(payload, "schema_version")
    if schema != SCHEMA_VERSION:
        return (
            schema if isinstance(schema, InvalidRetention) else InvalidRetention("schema_version", Reason.UNKNOWN)
        )
    ttl = _ttl_days(payload)
    if not isinstance(ttl, int):
        return ttl
    created = _single(payload, "created_at")
    if isinstance(created, InvalidRetention):
        return created
    time = parse_time(created)
    if time is None:
        return InvalidRetention("created_at", Reason.MALFORMED if isinstance(created, str) else Reason.WRONG_TYPE)
    try:
        return time + timedelta(days=ttl)
    except OverflowError:
        return None


def _ttl_days(payload: Mapping[str, Any]) -> int | InvalidRetention | None:
    if payload.get("ttl_days") in (None, []):
        return None
    ttl = _single(payload, "ttl_days")
    if isinstance(ttl, InvalidRetention):
        return ttl
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or ttl % 1 != 0:
        return InvalidRetention("ttl_days", Reason.WRONG_TYPE)
    return int(ttl) if 1 <= ttl <= _LARGEST_TTL else InvalidRetention("ttl_days", Reason.OUT_OF_RANGE)


def _single(payload: Mapping[str, Any], key: str) -> Any:
    """The one value the engine sees under `key` (a list of one value is that value), or what is wrong with it."""
    value = payload.get(key)
    if isinstance(value, (list, tuple)):
        if len(value) > 1:
            return InvalidRetention(key, Reason.LIST)
        value = value[0] if value else None
    return InvalidRetention(key, Reason.NULL if key in payload else Reason.MISSING) if value is None else value


def is_expired(
    payload: Mapping[str, Any],
    now: datetime,
    *,
    grace: timedelta = timedelta(0),
    exempt_tags: Collection[str] = DEFAULT_EXEMPT_TAGS,
) -> bool:
    """Whether a point may be deleted at `now`: expired for at least `grace`, and not exempted by a tag."""
    if is_exempt(payload, exempt_tags):
        return False
    expiry = expires_at(payload)
    return isinstance(expiry, datetime) and expiry <= _cutoff(now, grace)


def is_exempt(payload: Mapping[str, Any], exempt_tags: Collection[str] = DEFAULT_EXEMPT_TAGS) -> bool:
    """Whether one of the payload's tags exempts its point from deletion."""
    tags = payload.get("tags")
    return any(
        isinstance(tag, str) and tag in exempt_tags for tag in (tags if isinstance(tags, (list, tuple)) else [tags])
    )


def _cutoff(now: datetime, grace: timedelta) -> datetime:
    if now.tzinfo is None:
        raise ValueError(f"now is {now.isoformat()}, a time without a zone; use datetime.now(UTC)")
    if grace < timedelta(0):
        raise ValueError(f"grace is {grace}; expected zero or more")
    try:
        return now - grace
    except OverflowError:
        return EARLIEST


_READ: Final = ("ttl_days", "created_at")

_OF_SCHEMA: Final[tuple[Condition, ...]] = (
    matches("schema_version", SCHEMA_VERSION),
    at_most_one("schema_version"),
)


def _created(until: datetime, *, inclusive: bool) -> models.FieldCondition:
    # The index cuts off what is below a microsecond, a scan does not: "less than the next one" is right in both.
    window = (
        models.DatetimeRange(gte=EARLIEST, lte=until) if inclusive else models.DatetimeRange(gte=EARLIEST, lt=until)
    )
    return models.FieldCondition(key="created_at", range=window)


def expired_filter(
    now: datetime,
    ttl_days: int,
    *,
    grace: timedelta = timedelta(0),
    exempt_tags: Collection[str] = DEFAULT_EXEMPT_TAGS,
    tenant_id: str | None = None,
    scope: str | None = None,
) -> models.Filter:
    """The points with this `ttl_days` that are expired at `now`, as `is_expired` says.

    Args:
        now: a time with a zone.
        ttl_days: one value that occurs in the collection, from 1.
        grace: how much longer than its time a point is kept.
        exempt_tags: points with one of these tags are kept.
        tenant_id: only this tenant's points; None means everybody's.
        scope: only points of this scope; None means all.
    """
    return any_expired_filter(
        now, (ttl_days,), grace=grace, exempt_tags=exempt_tags, tenant_id=tenant_id, scope=scope
    )


def any_expired_filter(
    now: datetime,
    ttl_days: Collection[int],
    *,
    grace: timedelta = timedelta(0),
    exempt_tags: Collection[str] = DEFAULT_EXEMPT_TAGS,
    tenant_id: str | None = None,
    scope: str | None = None,
) -> models.Filter:
    """The points with one of these `ttl_days` that are expired at `now`; as many filters of one value in one.

    Args:
        now: a time with a zone.
        ttl_days: one or more values that occur in the collection, from 1.
        grace: how much longer than its time a point is kept.
        exempt_tags: points with one of these tags are kept.
        tenant_id: only this tenant's points; None means everybody's.
        scope: only points of this scope; None means all.
    """
    found = due_filter(now, ttl_days, grace=grace, exempt_tags=exempt_tags, tenant_id=tenant_id, scope=scope)
    found.must = [*_conditions(found.must), *(at_most_one(key) for key in ("schema_version", *_READ))]
    return found


def due_filter(
    now: datetime,
    ttl_days: Collection[int],
    *,
    grace: timedelta = timedelta(0),
    exempt_tags: Collection[str] = DEFAULT_EXEMPT_TAGS,
    tenant_id: str | None = None,
    scope: str | None = None,
) -> models.Filter:
    """What the payload indexes alone can tell of `any_expired_filter`, several times as fast.

    It finds every point that `any_expired_filter` finds, and those points besides that hold a list of several
    values where one value belongs. So it is for finding points whose payloads `is_expired` is then asked about,
    and for holding a deletion of such points by their ids against what changed in between.

    Args: those of `any_expired_filter`.
    """
    if not ttl_days:
        raise ValueError("ttl_days is empty; expected at least one whole number from 1")
    must = _selected(tenant_id, scope)
    due = [_due(now, days, grace) for days in ttl_days]
    must += due[0] if len(due) == 1 else [either(*(every(*conditions) for conditions in due))]
    must.append(matches("schema_version", SCHEMA_VERSION))
    return models.Filter(must=must, must_not=[matches_any("tags", tuple(exempt_tags))] if exempt_tags else None)


def _conditions(clause: Any) -> list[Condition]:
    return clause if isinstance(clause, list) else []


def _selected(tenant_id: str | None, scope: str | None) -> list[Condition]:
    chosen: list[Condition] = []
    if tenant_id is not None:
        chosen.append(matches("tenant_id", tenant_id))
    if scope is not None:
        chosen.append(matches("scope", scope))
    return chosen


def _due(now: datetime, ttl_days: int, grace: timedelta) -> tuple[Condition, ...]:
    if isinstance(ttl_days, bool) or not isinstance(ttl_days, int) or ttl_days < 1:
        raise ValueError(f"ttl_days is {ttl_days!r}; expected a whole number from 1")
    try:
        until = _cutoff(now, grace) - timedelta(days=ttl_days) + timedelta(microseconds=1)
    except OverflowError:
        until = EARLIEST
    # A range, not a match: a match finds 7.0 only where there is an index.
    span = models.FieldCondition(key="ttl_days", range=models.Range(gte=ttl_days, lte=ttl_days))
    return span, _created(max(until, EARLIEST), inclusive=False)


def invalid_retention_filter(*, tenant_id: str | None = None, scope: str | None = None) -> models.Filter:
    """The points of our schema whose retention cannot be read: those for which `expires_at` is `InvalidRetention`.

    It needs the payload indexes (`ttl_days` as integer): without one the engine takes 7.5 for a whole number.
    """
    well_formed = every(
        models.FieldCondition(key="ttl_days", range=models.Range(gte=1)),
        at_most_one("ttl_days"),
        _created(LATEST, inclusive=True),
        at_most_one("created_at"),
    )
    must = [*_OF_SCHEMA, *_selected(tenant_id, scope)]
    return models.Filter(must=must, must_not=[is_empty("ttl_days"), well_formed])


def unreadable_retention_filter(*, tenant_id: str | None = None, scope: str | None = None) -> models.Filter:
    """What the payload indexes alone can tell of `invalid_retention_filter`, a hundred times as fast.

    The points of our schema with a `ttl_days` of which no value is a whole number from 1, or with one that is and
    no `created_at` that is a time. Lists of several values are not found, if one of the values is good;
    points whose `schema_version` is a list with ours in it are.
    """
    countable = models.FieldCondition(key="ttl_days", range=models.Range(gte=1))
    timed = _created(LATEST, inclusive=True)
    must: list[Condition] = [matches("schema_version", SCHEMA_VERSION), *_selected(tenant_id, scope)]
    return models.Filter(must=must, must_not=[is_empty("ttl_days"), every(countable, timed)])
