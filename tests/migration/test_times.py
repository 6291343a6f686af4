"""Times of frameworks become UTC with Z; what says no offset needs a declared zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comemory.errors import CoMemoryError
from comemory.migration.record import Unmappable
from comemory.migration.times import check_zone, to_utc
from comemory.times import parse_time

LOADED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is slow, which is no failure."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-26T12:00:00Z", "2026-01-26T12:00:00Z"),
        ("2024-11-03T23:15:42.123456-08:00", "2024-11-04T07:15:42.123456Z"),
        ("2025-03-01T09:30:00+0200", "2025-03-01T07:30:00Z"),
        (1_742_000_000, "2025-03-15T00:53:20Z"),
        (1_742_000_000.5, "2025-03-15T00:53:20.500000Z"),
        (1_742_000_000_250, "2025-03-15T00:53:20.250000Z"),
        (1_742_000_000_250_001, "2025-03-15T00:53:20.250001Z"),
        (1_742_000_000_250_001_999, "2025-03-15T00:53:20.250001Z"),
        (0, "1970-01-01T00:00:00Z"),
        ("1742000000", "2025-03-15T00:53:20Z"),
        ("1742000000.5", "2025-03-15T00:53:20.500000Z"),
        ("1742000000250", "2025-03-15T00:53:20.250000Z"),
        ("1742000000250001", "2025-03-15T00:53:20.250001Z"),
    ],
)
def test_a_time_with_an_offset_or_a_number_needs_no_zone(value: Any, expected: str) -> None:
    assert to_utc("created_at", value) == expected


@pytest.mark.parametrize(
    ("value", "zone", "expected"),
    [
        ("2025-07-01T12:00:00", "Europe/Kyiv", "2025-07-01T09:00:00Z"),
        ("2025-01-01 12:00:00", "Europe/Kyiv", "2025-01-01T10:00:00Z"),
        ("2025-05-04", "Europe/Kyiv", "2025-05-03T21:00:00Z"),
        ("2025-10-26T03:30:00", "Europe/Kyiv", "2025-10-26T00:30:00Z"),
    ],
)
def test_a_naive_time_is_read_in_its_zone(value: str, zone: str, expected: str) -> None:
    assert to_utc("created_at", value, zone) == expected
    with pytest.raises(Unmappable, match="no_zone"):
        to_utc("created_at", value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "20250301",
        "202503011200",
        "20250301120000",
        "1742000000Z",
        "-1742000000",
        "2025-13-01T00:00:00Z",
        True,
        None,
        [],
        {},
        -1,
        10**21,
        float("nan"),
        "0001-01-01T00:00:00+10:00",
    ],
)
def test_what_is_no_time_is_refused_with_the_fields_name(value: Any) -> None:
    with pytest.raises(Unmappable) as refused:
        to_utc("updated_at", value, "UTC")
    assert refused.value.code == "updated_at.malformed"


@LOADED
@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_the_moment_stays_the_same_to_the_microsecond(naive: datetime, zone: timezone) -> None:
    moment = naive.replace(tzinfo=zone)
    made = to_utc("created_at", moment.isoformat())
    assert made.endswith("Z")
    assert parse_time(made) == moment.astimezone(UTC)


def test_a_zone_that_does_not_exist_is_refused_by_name() -> None:
    assert check_zone("Europe/Kyiv") == "Europe/Kyiv"
    with pytest.raises(CoMemoryError, match="Mars/Olympus"):
        check_zone("Mars/Olympus")
