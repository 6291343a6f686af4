"""What a single value of the settings may be: a duration, a cron time, a time zone, an address."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator

from ops import cron


def _cron(expression: str) -> str:
    cron.next_time(expression)
    return expression


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(
            f"'{name}' is not a time zone of the IANA database, such as 'Europe/Kyiv' or 'UTC'"
        ) from None
    return name


def _address(url: str) -> str:
    try:
        port = urlsplit(url).port
    except ValueError as error:
        raise ValueError(f"it is no address: {error}") from None
    if port == 0:
        raise ValueError("it is no address: port 0")
    return url


def _readable(value: object) -> object:
    """The environment has texts only: `90` is seconds there too; `90s`, `15m`, `36h` and `7d` are for people."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())) is not None:
        try:
            return timedelta(**{_UNITS[match[2] or "s"]: float(match[1])})
        except OverflowError:
            raise ValueError("it is longer than a duration can be") from None
    return value


_DURATION = re.compile(r"(\d+(?:\.\d+)?)([dhms]?)", re.ASCII)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
Duration = Annotated[timedelta, BeforeValidator(_readable)]
"""A duration: `7d`, `36h`, `15m`, `90s`, a number of seconds, or ISO 8601 such as `P7D`."""

CronTime = Annotated[str, AfterValidator(_cron)]
"""Five cron fields that name a time which comes."""

ZoneName = Annotated[str, AfterValidator(_zone)]
"""A time zone of the IANA database."""

Address = Annotated[str, AfterValidator(_address)]
"""A URL whose port, if it has one, can be connected to."""
