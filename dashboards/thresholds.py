"""Every limit at which somebody is told, in one place: alerts and the colours of panels both come from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Final, Self

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0

_FAILING: Final = MappingProxyType(
    {"census": 10 * MINUTE, "ttl": 3 * HOUR, "dedup": 13 * HOUR, "audit": 3 * HOUR, "audit-deep": 49 * HOUR}
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits; times are in seconds.

    Args:
        stale_intervals, stale_least, stale_most: A job is stale when its last success is longer ago than so many of
            its intervals, and one more, but that at least and at most so long. The daemon tells the interval.
        failing: By job, in what time all of its runs must have failed: two of its default intervals and a little.
        jobs_remembered: For how long a job's last success and first appearance are remembered, whatever becomes of
            the daemon; of jobs with longer intervals nobody is told that they never succeeded.
        schedule_remembered: For how long a daemon's schedule holds after it was seen last: longer than a supervisor
            waits before it starts a daemon again that ends each time.
        outage_told: For how long after an outage of Qdrant of which somebody was told jobs may make up for it.
        census_old: From when on the numbers of the dashboards are too old.
        daemon_absent, no_active_daemon: For how long no daemon is seen, or none holds the lease.
        daemon_remembered: For how long a daemon that was seen once is missed: longer than anybody leaves it alone.
        qdrant_down, qdrant_target_down, replica_dead, collection_red, collection_grey: For how long.
        collector_failing, drift, folded: For how long.
        backlog_age: How long past its time the oldest expired point may wait.
        backlog_points, backlog_growth, backlog_window: The backlog has grown when it is at least this large, and by
            this factor larger than a window ago.
        duplicate_points, duplicate_growth, duplicate_window: The same for copies.
        invalid_points: How many points may break the schema for one reason, in one collection.
        backlog_persistent: For how long the backlog must have grown: longer than from one run to the next.
        persistent: For how long what the others of these and the audit tell must be so.
        memory_ratio: The part of its memory limit that Qdrant may use, and `memory` for how long more.
        certificate_warning, certificate_critical, token_warning, token_critical: Time left.
        slow_request: Seconds of a request's 99th percentile that are coloured as slow.
    """

    stale_intervals: float = 2
    stale_least: float = 10 * MINUTE
    stale_most: float = HOUR
    failing: Mapping[str, float] = field(default_factory=lambda: _FAILING)
    jobs_remembered: float = 15 * DAY
    schedule_remembered: float = 10 * MINUTE
    outage_told: float = 30 * MINUTE
    census_old: float = 10 * MINUTE
    daemon_absent: float = 5 * MINUTE
    daemon_remembered: float = 7 * DAY
    no_active_daemon: float = 5 * MINUTE
    qdrant_down: float = 2 * MINUTE
    qdrant_target_down: float = 5 * MINUTE
    replica_dead: float = 10 * MINUTE
    collection_red: float = 5 * MINUTE
    collection_grey: float = 30 * MINUTE
    collector_failing: float = 15 * MINUTE
    drift: float = 30 * MINUTE
    folded: float = 30 * MINUTE
    backlog_age: float = 6 * HOUR
    backlog_points: float = 10_000
    backlog_growth: float = 1.5
    backlog_window: float = 6 * HOUR
    backlog_persistent: float = 90 * MINUTE
    duplicate_points: float = 1_000
    duplicate_growth: float = 2.0
    duplicate_window: float = DAY
    invalid_points: float = 100
    persistent: float = 15 * MINUTE
    memory_ratio: float = 0.9
    memory: float = 15 * MINUTE
    certificate_warning: float = 14 * DAY
    certificate_critical: float = 3 * DAY
    token_warning: float = 7 * DAY
    token_critical: float = DAY
    slow_request: float = 1.0

    def hurried(self, factor: float) -> Self:
        """The same limits with every time divided, so that a test need not wait hours; numbers stay."""
        times = {f.name: getattr(self, f.name) / factor for f in fields(self) if f.name in _TIMES}
        return replace(self, failing={job: limit / factor for job, limit in self.failing.items()}, **times)


_TIMES: Final = frozenset(
    {
        "stale_least", "stale_most", "jobs_remembered", "schedule_remembered", "outage_told", "census_old",
        "daemon_absent",
        "daemon_remembered", "no_active_daemon", "qdrant_down", "qdrant_target_down", "replica_dead",
        "collection_red", "collection_grey", "collector_failing", "drift", "folded", "backlog_age",
        "backlog_window", "backlog_persistent",
        "duplicate_window", "persistent", "memory", "certificate_warning", "certificate_critical",
        "token_warning", "token_critical",
    }
)  # fmt: skip

DEFAULTS: Final = Thresholds()


def duration(seconds: float) -> str:
    """A time as Prometheus writes it: `5m`, `49h`, `1500ms`.

    >>> duration(300), duration(176400), duration(90), duration(1.5)
    ('5m', '49h', '90s', '1500ms')
    """
    if seconds == 0:
        return "0s"
    for unit, length in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", 1.0)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(1, round(seconds * 1000))}ms"


def number(value: float) -> str:
    """A number as PromQL reads it, without a needless fraction."""
    return f"{value:.0f}" if value == int(value) else repr(value)
