"""Times as frameworks and their users write them, as the schema wants them: RFC 3339 in UTC, with `Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from comemory.errors import CoMemoryError, shown
from comemory.migration.record import Unmappable

_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))
"""A number below the first is a time since 1970 in 1/second of a second: seconds until the year 5138, then
milliseconds (from 1973), microseconds and nanoseconds."""

_NUMBER = re.compile(r"[1-9][0-9]{9}(?:\.[0-9]{1,6}|(?:[0-9]{3}){0,3})", re.ASCII)
"""Seconds, milli-, micro- or nanoseconds since 1970 from 2001 to 2286; dates without hyphens have other lengths."""

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+)?(?:Z|[+-][0-9:]+)?", re.ASCII)


def to_utc(field: str, value: object, zone: str | None = None) -> str:
    """`value` in UTC, to the microsecond: `2026-01-26T12:00:00Z`.

    Args:
        field: what the refusal calls it.
        value: ISO 8601 with or without an offset, a bare date (its midnight), or a number since 1970, which may be
            written as a string if it has as many digits as a number of our century has.
        zone: the time zone of a value that names no offset. The hour that a change of clocks repeats is taken the
            first time; the one that it leaves out is read with the offset before it.

    Raises:
        Unmappable: `<field>.malformed`, or `<field>.no_zone` where only a zone is missing.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value) if "." in value else int(value)
    moment = _epoch(value) if _is_number(value) else _read(value)
    if moment is None:
        raise Unmappable(
            f"{field}.malformed", f"{field} is {shown(value)}; expected ISO 8601 or seconds since 1970"
        )
    if moment.tzinfo is None:
        if zone is None:
            raise Unmappable(
                f"{field}.no_zone",
                f"{field} is {shown(value)}, which names no offset; declare its `zone` in the rule",
            )
        moment = moment.replace(tzinfo=ZoneInfo(zone))
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError):
        raise Unmappable(f"{field}.malformed", f"{field} is {shown(value)}, outside the years 1 to 9999") from None


def check_zone(name: str) -> str:
    """A time zone's name as it came.

    Raises:
        CoMemoryError: there is no such zone.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise CoMemoryError(
            f"{shown(name)} is not a time zone of the IANA database, such as 'Europe/Kyiv' or 'UTC'"
        ) from None
    return name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _epoch(value: object) -> datetime | None:
    assert isinstance(value, int | float)  # noqa: S101 (for the type checker)
    for limit, parts in _UNITS:
        if 0 <= value < limit:
            whole, rest = divmod(value, parts)
            try:
                # Whole seconds first: a float has no room for a nanosecond count.
                return datetime.fromtimestamp(int(whole), UTC).replace(
                    microsecond=int((value % 1) * 1_000_000) if parts == 1 else int(rest * 1_000_000 // parts)
                )
            except (OverflowError, ValueError, OSError):
                return None
    return None


def _read(value: object) -> datetime | None:
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
