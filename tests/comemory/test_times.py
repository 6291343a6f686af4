"""Times: the readings one by one, and the parser against the engine's on generated spellings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from qdrant_client import models

from comemory import parse_time
from comemory.times import EARLIEST, LATEST
from tests.comemory.conftest import Points

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-01T12:00:00Z", NOON),
        ("2026-01-01t12:00:00z", NOON),
        ("2026-01-01T12:00:00", NOON),
        ("2026-01-01 12:00:00", NOON),
        ("2026-01-01T12:00", NOON),
        ("2026-01-01", NOON - timedelta(hours=12)),
        ("2026-01-01T14:00:00+02:00", NOON),
        ("2026-01-01T14:00:00+0200", NOON),
        ("2026-01-01T10:30:00-01:30", NOON),
        ("2026-01-01 12:00:00 UTC", NOON),
        ("2026-01-01T12:00:00.123456789Z", NOON + timedelta(microseconds=123_456)),
        ("2026-01-01T11:59:60Z", NOON),
        ("0000-12-31T23:00:00-02:00", EARLIEST + timedelta(hours=1)),
        ("+10000-01-01T00:00:00.5+00:01", datetime(9999, 12, 31, 23, 59, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_in_utc(text: str, time: datetime) -> None:
    assert parse_time(text) == time
    assert parse_time(text).tzinfo is UTC  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "value",
    [
        "", "now", "01/02/2026", "2026-02-29", "2026-13-01", "2026-01-01T24:00:00Z", "2026-01-01T12:00Z",
        "2026-01-01T12:00:61Z", "20260101T120000Z", "2026-W01-1", "12026-01-01", "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00", "2026-01-01T12:00:00+24:00", "2026-01-01T12:00:00+02:60", "２０２６-01-01",
        1767268800, None, True, [], ["2026-01-01"], {},
    ],
)  # fmt: skip
def test_what_is_no_time_is_none(value: object) -> None:
    assert parse_time(value) is None


blank = st.sampled_from([""] * 24 + [" ", "  ", "\t", "\n", "\xa0", "\u2003", "\x1c", "\u200b"])
YEARS = ["2026", "2026", "2024", "1969", "+2026", "26", "0000", "0001", "9999", "+10000", "-0001", "+002026"]
FRACTIONS = ["", "", "", ".5", ".123456", ".1234567899", ".", ",5"]
BETWEEN = ["T", "T", "T", " ", " ", "t", "", "_", "\t", "  "]
OFFSETS = [
    "", "", "", "Z", "Z", "z", "UTC", "utc", "+02:00", "-00:00", "+0200", "+02", "+23:59", "-23:59", "+02 00",
    "-02::30", "\N{MINUS SIGN}02:00", "+24:00", "+02:60", "+2:00", "+02:", "GMT", "Z0", "+02:0", "+020",
    "+02:00:00",
]  # fmt: skip


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """Something like a time: often a right one, with blanks, unpadded numbers, odd offsets, wrong numbers."""
    tidy = draw(st.booleans())

    def gap() -> str:
        return "" if tidy else draw(blank)

    def number(low: int, high: int) -> str:
        value = draw(st.integers(low, high))
        if not tidy and draw(st.integers(0, 9)) == 0:
            value = draw(st.sampled_from([0, high, high + 1]))
        form = "{:02d}" if tidy else draw(st.sampled_from(["{:02d}"] * 9 + ["{}", "{}", "{:03d}"]))
        return gap() + form.format(value)

    date = f"{gap()}{draw(st.sampled_from(YEARS))}{gap()}-{number(1, 12)}{gap()}-{number(1, 28)}"
    shape = draw(st.integers(0, 9))
    if shape == 0:
        return date
    clock = f"{number(0, 23)}{gap()}:{number(0, 59)}"
    if shape > 1:
        clock += f"{gap()}:{number(0, 60)}{draw(st.sampled_from(FRACTIONS))}"
    between, offset = draw(st.sampled_from(BETWEEN)), draw(st.sampled_from(OFFSETS))
    return f"{date}{between}{clock}{gap()}{offset}{gap()}"


# Not shrunk: a failure names the time that it is about, and a batch of requests per step would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def _at(place: int, time: datetime) -> models.Filter:
    here = models.HasIdCondition(has_id=[place])
    moment = models.DatetimeRange(gte=time, lte=time)
    return models.Filter(must=[here, models.FieldCondition(key="created_at", range=moment)])


def test_the_engine_reads_times_alike(engine: Callable[[bool], Points]) -> None:
    readable, total = 0, 0
    some_time = models.Filter(
        must=[models.FieldCondition(key="created_at", range=models.DatetimeRange(gte=EARLIEST, lte=LATEST))]
    )

    @settings(max_examples=25, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(st.lists(spellings(), min_size=60, max_size=60))
    @example(
        [0, 7, 1e9, True, {}, [[]], "2026-01-01T12:00:00−02:00", "2026-01-0112:00:00", "2026- 01-01", " 2026-01-01"]
    )
    def check(values: list[Any]) -> None:
        nonlocal readable, total
        read = {i: time for i, value in enumerate(values) if (time := parse_time(value)) is not None}
        agreeing = models.Filter(should=[_at(i, time) for i, time in read.items()])
        for indexes in (True, False):
            points = engine(indexes)
            points.put([{"created_at": value} for value in values])
            differing = points.found(some_time) ^ set(read)
            assert not differing, [(values[i], read.get(i)) for i in differing]
            if indexes and read:
                # A scan without an index puts a leap second before the second it is; deletion uses the index.
                differing = points.found(agreeing) ^ set(read)
                assert not differing, [(values[i], read.get(i)) for i in differing]
        readable, total = readable + len(read), total + len(values)

    check()
    assert 0.05 < readable / total < 0.9, "the times generated are too easy to tell"
