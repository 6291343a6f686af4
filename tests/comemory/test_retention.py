"""Retention: the rule one by one, what a real server answered, and the filter against the oracle on the engine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from comemory import InvalidRetention, expired_filter, expires_at, invalid_retention_filter, is_expired
from comemory.payload import Reason
from comemory.retention import due_filter, unreadable_retention_filter
from tests.comemory.conftest import Points
from tests.comemory.payloads import good_payload, malformed, spoil

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WEEK = timedelta(days=7)
TEXT = "2026-01-01T12:00:00Z"


@pytest.mark.parametrize(
    ("changes", "expiry"),
    [
        ({"ttl_days": 7}, NOON + WEEK),
        ({"ttl_days": 7.0}, NOON + WEEK),
        ({"ttl_days": [7]}, NOON + WEEK),
        ({"ttl_days": None}, None),
        ({"ttl_days": []}, None),
        ({"ttl_days": 10**9}, None),
        ({"ttl_days": 10**18}, None),
        ({"ttl_days": None, "created_at": "?"}, None),
        ({"ttl_days": 7, "created_at": ["2026-01-01T12:00:00"]}, NOON + WEEK),
        ({"ttl_days": "7"}, "ttl_days.wrong_type"),
        ({"ttl_days": True}, "ttl_days.wrong_type"),
        ({"ttl_days": 7.5}, "ttl_days.wrong_type"),
        ({"ttl_days": {}}, "ttl_days.wrong_type"),
        ({"ttl_days": [[7]]}, "ttl_days.wrong_type"),
        ({"ttl_days": float("inf")}, "ttl_days.wrong_type"),
        ({"ttl_days": 0}, "ttl_days.out_of_range"),
        ({"ttl_days": -3}, "ttl_days.out_of_range"),
        ({"ttl_days": 1e300}, "ttl_days.out_of_range"),
        ({"ttl_days": [7, 30]}, "ttl_days.list"),
        ({"ttl_days": [7, None]}, "ttl_days.list"),
        ({"ttl_days": [None]}, "ttl_days.null"),
        ({"ttl_days": 7, "created_at": "01/02/2026"}, "created_at.malformed"),
        ({"ttl_days": 7, "created_at": 1767268800}, "created_at.wrong_type"),
        ({"ttl_days": 7, "created_at": None}, "created_at.null"),
        ({"ttl_days": 7, "created_at": [TEXT, TEXT]}, "created_at.list"),
        ({"ttl_days": 7, "schema_version": "cm_payload_v2"}, "schema_version.unknown"),
        ({"ttl_days": 7, "schema_version": ["cm_payload_v1", "cm_payload_v2"]}, "schema_version.list"),
    ],
)
def test_when_a_point_expires(changes: dict[str, Any], expiry: datetime | str | None) -> None:
    found = expires_at(good_payload(created_at=TEXT) | changes)
    assert (found.code if isinstance(found, InvalidRetention) else found) == expiry


def test_what_is_missing_is_told_from_what_is_null() -> None:
    payload = good_payload(ttl_days=7)
    del payload["created_at"]
    assert expires_at(payload) == InvalidRetention("created_at", "missing")  # type: ignore[arg-type]
    assert expires_at({}) == InvalidRetention("schema_version", "missing")  # type: ignore[arg-type]


def test_expiry_grace_and_exemption() -> None:
    payload = good_payload(created_at=TEXT, ttl_days=7)
    assert is_expired(payload, NOON + WEEK)
    assert not is_expired(payload, NOON + WEEK - timedelta(microseconds=1))
    assert not is_expired(payload, NOON + WEEK, grace=timedelta(hours=1))
    assert is_expired(payload, NOON + WEEK + timedelta(hours=1), grace=timedelta(hours=1))
    for tags in ("legal_hold", ["a", "legal_hold"]):
        assert not is_expired(payload | {"tags": tags}, NOON + WEEK)
        assert is_expired(payload | {"tags": tags}, NOON + WEEK, exempt_tags=())
    assert not is_expired(payload | {"tags": ["pinned"]}, NOON + WEEK, exempt_tags=["pinned"])


def test_arguments_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        expired_filter(datetime(2026, 1, 1), 7)
    with pytest.raises(ValueError, match="grace is -1 day"):
        expired_filter(NOON, 7, grace=timedelta(days=-1))
    for ttl in (0, -1, True, 7.5):
        with pytest.raises(ValueError, match="ttl_days is"):
            expired_filter(NOON, ttl)  # type: ignore[arg-type]


# Thirteen points on a Qdrant 1.19 server: created_at, ttl_days, whether the server found it by
# `created_at < 2026-06-01`, and whether by `ttl_days == 7`.
ON_A_SERVER: tuple[tuple[Any, Any, bool, bool], ...] = (
    ("2026-01-01T12:00:00", 7, True, True),
    ("2026-01-01", 7, True, True),
    ("2026-01-01 12:00:00", 7, True, True),
    ("2026-01-01T12:00:00+02:00", 7, True, True),
    ("01/02/2026", 7, False, True),
    (1767268800, 7, False, True),
    ("2026-01-01T12:00:00.123456Z", 7, True, True),
    ("2026-01-01T12:00Z", 7, False, True),
    ("2026-01-01T12:00:00Z", 7.0, True, True),
    ("2026-01-01T12:00:00Z", "7", True, False),
    ("2026-01-01T12:00:00Z", 0, True, False),
    ("2026-01-01T12:00:00Z", -3, True, False),
    ("2026-01-01T12:00:00Z", [7, 30], True, True),
)


@pytest.mark.parametrize(("created", "ttl", "in_time", "of_a_week"), ON_A_SERVER)
def test_the_oracle_reads_as_a_server_did(created: Any, ttl: Any, in_time: bool, of_a_week: bool) -> None:
    expiry = expires_at(good_payload(created_at=created, ttl_days=ttl))
    assert isinstance(expiry, datetime) is (in_time and of_a_week and not isinstance(ttl, list))


ttl_values = st.one_of(
    st.sampled_from([1, 2, 7, 7.0, 30, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 1e18, 10**9, 739_000, 740_000]),
    st.sampled_from(
        [7, 7.0, [7], [7.0], [7, 30], [7, 7], [7, None], ["7", 7], "7", 0, -3, 1e300, 7.5, -0.0, [[7]]]
    ),
    malformed(7),
)
created_values = st.one_of(
    st.integers(-40 * 24 * 60, 60).map(lambda minutes: (NOON + timedelta(minutes=minutes)).isoformat()),
    st.sampled_from(
        [
            TEXT, TEXT.lower(), "2026-01-01T12:00:00.0000005Z", "2026-01-01T12:00:00.000001Z", "2026-01-01",
            "2025-12-31T23:59:60Z", "2025-12-25T14:00:00+02:00", "2025-12-25 12:00:00",
            "1969-12-31T23:59:59.9999999Z",
            "-0001-01-01", "0000-12-31T23:00:00-02:00", "0001-01-01", "9999-12-31", "+10000-01-01", "01/02/2025",
            [TEXT], [TEXT, TEXT], [TEXT, None],
        ]
    ),
    malformed("2025-06-01T00:00:00Z"),
)  # fmt: skip
TAGS: list[Any] = [
    [],
    ["a"],
    ["a"],
    ["legal_hold"],
    "legal_hold",
    [["legal_hold"]],
    None,
    {"legal_hold": "legal_hold"},
]


@st.composite
def retained(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        minutes = draw(st.integers(-40 * 24 * 60, 60))
        ttl = draw(st.sampled_from([1, 7, 7.0]))
        return good_payload(created_at=(NOON + timedelta(minutes=minutes)).isoformat(), ttl_days=ttl)
    payload = good_payload(created_at=draw(created_values), ttl_days=draw(ttl_values))
    payload["tags"] = draw(st.sampled_from(TAGS))
    for field in draw(st.lists(st.sampled_from(["schema_version", "ttl_days", "created_at"]), max_size=1)):
        spoil(draw, payload, field)
    return payload


# Not shrunk: a failure names the payload that it is about, and a batch of requests per step would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def test_the_filters_find_what_the_oracle_says(engine: Callable[[bool], Points]) -> None:
    expired, total = 0, 0

    @settings(max_examples=25, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(
        payloads=st.lists(retained(), min_size=60, max_size=60),
        now=st.sampled_from(
            [NOON, NOON + WEEK, NOON + WEEK + timedelta(microseconds=1), NOON + timedelta(days=2**15)]
        ),
        grace=st.sampled_from([timedelta(0), timedelta(days=1), timedelta(days=10**6)]),
        exempt=st.sampled_from([("legal_hold",), (), ("legal_hold", "a")]),
    )
    def check(payloads: list[dict[str, Any]], now: datetime, grace: timedelta, exempt: tuple[str, ...]) -> None:
        nonlocal expired, total
        right = {i for i, p in enumerate(payloads) if is_expired(p, now, grace=grace, exempt_tags=exempt)}
        values = {int(v) for p in payloads for v in _numbers(p.get("ttl_days")) if v >= 1 and v % 1 == 0}
        for indexes in (True, False):
            points = engine(indexes)
            points.put(payloads)
            found: dict[int, int] = {}
            for ttl in values | {3, 2**63 - 1}:
                for i in points.found(expired_filter(now, ttl, grace=grace, exempt_tags=exempt)):
                    assert i not in found, (payloads[i], ttl, found[i])
                    found[i] = ttl
            for i, payload in enumerate(payloads):
                assert (i in found) == (i in right), (indexes, now, grace, exempt, payload)
            assert all([found[i]] == [int(v) for v in _numbers(payloads[i]["ttl_days"])] for i in found)
            if indexes:
                invalid = points.found(invalid_retention_filter())
                for i, payload in enumerate(payloads):
                    reading = expires_at(payload)
                    unreadable = isinstance(reading, InvalidRetention) and reading.field != "schema_version"
                    assert (i in invalid) is unreadable, payload
                # What the indexes alone can tell differs by lists of several values, and by nothing else.
                due = points.found(due_filter(now, values | {3, 2**63 - 1}, grace=grace, exempt_tags=exempt))
                simple = points.found(unreadable_retention_filter())
                assert right <= due
                for i in (due - right) | (invalid ^ simple):
                    reading = expires_at(payloads[i])
                    assert isinstance(reading, InvalidRetention)
                    assert reading.reason is Reason.LIST, payloads[i]
        expired, total = expired + len(right), total + len(payloads)

    check()
    assert 0.02 < expired / total < 0.9, "the payloads generated are too easy to tell"


def _numbers(value: object) -> list[float]:
    values = value if isinstance(value, list) else [value]
    return [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]


def test_a_filter_is_narrowed_to_tenant_and_scope(engine: Callable[[bool], Points]) -> None:
    points = engine(True)
    points.put(
        [
            good_payload(created_at=TEXT, ttl_days=7),
            good_payload(created_at=TEXT, ttl_days=7, tenant_id="t_b"),
            good_payload(created_at=TEXT, ttl_days=7, scope="memory"),
            good_payload(created_at=TEXT, ttl_days="7", scope="memory"),
            good_payload(created_at=TEXT, ttl_days="7", tenant_id="t_b"),
        ]
    )
    late = NOON + WEEK
    assert points.found(expired_filter(late, 7)) == {0, 1, 2}
    assert points.found(expired_filter(late, 7, tenant_id="t_a")) == {0, 2}
    assert points.found(expired_filter(late, 7, tenant_id="t_a", scope="docs")) == {0}
    assert points.found(expired_filter(late - timedelta(seconds=1), 7)) == set()
    assert points.found(invalid_retention_filter()) == {3, 4}
    assert points.found(invalid_retention_filter(tenant_id="t_a", scope="memory")) == {3}
