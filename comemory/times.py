"""Times in a payload, read exactly as the engine's datetime index reads them.

Retention deletes by a filter, so what a time means is decided by the engine, and this is its reading in Python:
RFC 3339, a naive time or a bare date being UTC, and everything else that the engine's parser lets through
(blanks between the parts, `UTC` for the offset, a missing colon in it, numbers that are not padded). Source:
`DateTimePayloadType::from_str` in Qdrant and the formats of the Rust crate chrono that it tries in turn; the
tests compare the two. (Without an index the engine puts a leap second just before the second that it is.)
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
"""Times outside these, in UTC, count as not readable: Python has no word for them."""

_CYCLE: Final = timedelta(days=146_097)

# chrono never goes back on what it has consumed, hence the possessive quantifiers. Its whitespace is Unicode's
# White_Space, which is not quite that of Python's \s.
_W = r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*+"
_YEAR = rf"{_W}(?P<year>[+-][0-9]++|[0-9]{{1,4}}+)"
_MONTH = rf"{_W}(?P<month>[0-9]{{1,2}}+)"
_DAY = rf"{_W}(?P<day>[0-9]{{1,2}}+)"
_HOUR = rf"{_W}(?P<hour>[0-9]{{1,2}}+)"
_MINUTE = rf"{_W}(?P<minute>[0-9]{{1,2}}+)"
_SECOND = rf"{_W}(?P<second>[0-9]{{1,2}}+)(?:\.(?P<fraction>[0-9]++))?+"
_DATE = rf"{_YEAR}-{_MONTH}-{_DAY}"
_ANY_SIGN = "[+\\-\N{MINUS SIGN}]"
_BREAK = rf"(?::|{_W[:-2]})*+"
_OFFSET_MINUTES = rf"(?P<sign>{_ANY_SIGN})(?P<offset_hour>[0-9]{{2}}){_BREAK}(?P<offset_minute>[0-5][0-9])"
_OFFSET = rf"(?:[Zz]|(?P<sign>{_ANY_SIGN})(?P<offset_hour>[0-9]{{2}}){_BREAK}(?P<offset_minute>[0-5][0-9])?)"

_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"{_YEAR}{_W}-{_MONTH}{_W}-{_DAY}[Tt ]{_HOUR}{_W}:{_MINUTE}{_W}:{_SECOND}{_W}"
        rf"(?:[Zz]|[Uu][Tt][Cc]|{_OFFSET_MINUTES}){_W}",
        rf"{_DATE}T{_HOUR}:{_MINUTE}:{_SECOND}{_W}{_OFFSET}",
        rf"{_DATE}{_HOUR}:{_MINUTE}:{_SECOND}{_W}{_OFFSET}",
        rf"{_DATE}T{_HOUR}:{_MINUTE}:{_SECOND}",
        rf"{_DATE}{_HOUR}:{_MINUTE}:{_SECOND}",
        rf"{_DATE}T{_HOUR}:{_MINUTE}",
        rf"{_DATE}{_HOUR}:{_MINUTE}",
        _DATE,
    )
)


# What all but a few payloads hold; the standard library reads it ten times faster.
_PLAIN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-5][0-9])"
)


def parse_time(value: object) -> datetime | None:
    """`value` as a time in UTC, to the microsecond (cut, not rounded, as the index does); None where it is none."""
    if not isinstance(value, str):
        return None
    if _PLAIN.fullmatch(value):
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # a leap second, or a year that its offset carries into range: the slower way knows them
    for form in _FORMS:
        match = form.fullmatch(value)
        if match:
            time = _instant(match.groupdict())
            if time is not None:
                return time
    return None


def _instant(parts: dict[str, str | None]) -> datetime | None:
    def number(name: str) -> int:
        return int(parts.get(name) or 0)

    second = number("second")
    offset = timedelta(minutes=number("offset_hour") * 60 + number("offset_minute"))
    if second > 60 or offset >= timedelta(days=1):
        return None
    micro = int((parts.get("fraction") or "")[:6].ljust(6, "0"))
    leap = second == 60
    try:
        # The offset may carry a year 0 or 10000 into range, so the sum is done one calendar cycle further in.
        cycles = 1 if number("year") < 5000 else -1
        local = datetime(
            number("year") + cycles * 400, number("month"), number("day"),
            number("hour"), number("minute"), 59 if leap else second, micro, tzinfo=UTC,
        )  # fmt: skip
        behind = offset if parts.get("sign") not in (None, "+") else -offset
        return local + timedelta(seconds=leap) + behind - cycles * _CYCLE
    except (ValueError, OverflowError):
        return None
