"""Cron times as cron(5) writes them: weekdays count from Sunday, which is 0 and 7.

APScheduler counts them from Monday, so that `0 4 * * 0` would run a day late; here they become names, on which both
agree. Of a day of the month and a weekday both must hold, where cron(5) takes either.
"""

from __future__ import annotations

from datetime import UTC, datetime

from apscheduler.triggers.cron import CronTrigger

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = "minute, hour, day of the month, month and weekday"


def trigger(expression: str, zone: str = "UTC") -> CronTrigger:
    """The trigger of five cron fields in a time zone.

    Raises:
        ValueError: one of them cannot be read, or there are not five.
    """
    fields = expression.split()
    if len(fields) != 5:
        raise ValueError(f"'{expression}' has {len(fields)} fields; a cron time has five: {_FIELDS}")
    minute, hour, day, month, weekday = fields
    return CronTrigger(
        minute=minute, hour=hour, day=day, month=month, day_of_week=_weekdays(weekday), timezone=zone
    )


def next_time(expression: str) -> datetime:
    """When five cron fields come next, in UTC.

    Raises:
        ValueError: one of them cannot be read, or that time never comes, as the 31st of February.
    """
    found: datetime | None = trigger(expression).get_next_fire_time(None, datetime.now(UTC))
    if found is None:
        raise ValueError(f"'{expression}' never comes: no month that it allows has such a day")
    return found


def _weekdays(field: str) -> str:
    """A field of weekdays with names for numbers, each day by itself."""
    if field == "*":
        return field
    days: set[int] = set()
    for item in field.lower().split(","):
        span, slash, step = item.partition("/")
        first, dash, last = span.partition("-")
        low = 0 if span == "*" else _weekday(first)
        high = _weekday(last) if dash else 6 if slash else low
        every = int(step) if step.isdecimal() else 0
        if slash and not every:
            raise ValueError(f"'{item}' is no weekday: after the slash stands a number from 1 on")
        days.update(range(low, high + 1 if high >= low else high + 8, every or 1))
    return ",".join(_WEEKDAYS[day] for day in sorted({day % 7 for day in days}))


def _weekday(text: str) -> int:
    """The number of a weekday: 0 to 7, or its English name in three letters."""
    if text in _WEEKDAYS:
        return _WEEKDAYS.index(text)
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise ValueError(f"'{text}' is no weekday: write 0 (Sunday) to 7 (Sunday again), or {' '.join(_WEEKDAYS)}")
