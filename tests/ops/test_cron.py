"""Cron times: weekdays as cron(5) counts them, and times that never come."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ops import cron

DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def weekdays(field: str) -> set[str]:
    """On which weekdays it runs in a fortnight."""
    trigger = cron.trigger(f"0 0 * * {field}")
    moments = (datetime(2026, 6, day, tzinfo=UTC) for day in range(1, 15))
    return {DAYS[moment.weekday()] for moment in moments if trigger.get_next_fire_time(None, moment) == moment}


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0", "sun"), ("7", "sun"), ("1", "mon"), ("6", "sat"), ("sun", "sun"), ("SUN", "sun"), ("1,3", "mon wed"),
        ("1-5", "mon tue wed thu fri"), ("mon-fri", "mon tue wed thu fri"), ("5-7", "fri sat sun"),
        ("fri-mon", "fri sat sun mon"), ("0-7", " ".join(DAYS)), ("*/2", "sun tue thu sat"), ("4/2", "thu sat"),
        ("1-5/2", "mon wed fri"), ("*", " ".join(DAYS)), ("0-6", " ".join(DAYS)), ("0,sat-sun", "sat sun"),
    ],
)  # fmt: skip
def test_weekdays_count_from_sunday(field: str, days: str) -> None:
    assert weekdays(field) == set(days.split())


@pytest.mark.parametrize("field", ["8", "-1", "x", "1-", "", "*/0", "*/x", "1/", "monday", "1-2-3", "**"])
def test_what_is_no_weekday_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match="weekday"):
        cron.trigger(f"0 0 * * {field}")


def test_a_zone_moves_it() -> None:
    moment = cron.trigger("30 4 * * *", "Europe/Kyiv").get_next_fire_time(None, datetime(2026, 6, 1, tzinfo=UTC))
    assert moment == datetime(2026, 6, 1, 4, 30, tzinfo=ZoneInfo("Europe/Kyiv"))


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_time_that_never_comes_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="never comes"):
        cron.next_time(expression)


def test_a_leap_day_comes() -> None:
    moment = cron.next_time("0 0 29 2 *")
    assert (moment.month, moment.day) == (2, 29)
