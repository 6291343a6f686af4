"""What the jobs did since the process started: the last report of each, and counters that only grow.

The daemon writes, the metrics and `/status` read. Everything is under one lock, and readers get copies.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from ops.report import JobReport, Outcome, Row

DELETING = frozenset({"ttl", "dedup"})
"""The jobs whose rows, when it was no dry run, are points deleted."""

DeletedKey = tuple[str, str, str, str]
"""Job, collection, tenant, scope."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a job last found in each collection, not all of it by the same run.

    `unchecked` are collections and reasons that an audit could not count. Equal only when they are the same one.
    """

    rows: tuple[Row, ...] = ()
    unchecked: frozenset[tuple[str, str]] = frozenset()

    def after(self, report: JobReport) -> Found:
        """What is known after another run: what it found, and of what it missed as it was before."""

        def old(collection: str) -> bool:
            return collection in report.missed or "" in report.missed

        unchecked = {(one["collection"], one["reason"]) for one in report.details.get("not_checked", ())}
        return Found(
            (*(r for r in report.rows if not old(r.collection)), *(r for r in self.rows if old(r.collection))),
            frozenset(
                {one for one in unchecked if not old(one[0])} | {one for one in self.unchecked if old(one[0])}
            ),
        )


@dataclass(frozen=True, slots=True)
class JobState:
    """One job: what it is doing, how its last run went, and totals since the process started.

    `last_success` and `started` are wall-clock times; `last_duration` is in seconds by a clock that is never set
    back. `found` is None before the first report. `last_error` is the sentence of the last run that raised, and
    None after one that did not.
    """

    running: bool = False
    started: datetime | None = None
    last_success: datetime | None = None
    last_duration: float | None = None
    last_report: JobReport | None = None
    found: Found | None = None
    last_error: str | None = None
    outcomes: Mapping[Outcome, int] = field(
        default_factory=lambda: MappingProxyType({"success": 0, "partial": 0, "failed": 0})
    )
    handled: int = 0
    skipped: int = 0
    batches: int = 0
    requests: int = 0
    retries: int = 0


class Results:
    """The store. A job that has never run has a state too, so that its series exist from the start."""

    def __init__(self, jobs: tuple[str, ...] = (), *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._jobs: dict[str, JobState] = {name: JobState() for name in jobs}
        self._began: dict[str, float] = {}
        self._deleted: Counter[DeletedKey] = Counter()

    def start(self, job: str, now: datetime) -> None:
        """A run begins."""
        with self._lock:
            self._began[job] = self._clock()
            self._jobs[job] = replace(self._state(job), running=True, started=now)

    def finish(self, report: JobReport) -> None:
        """A run ended with a report; its numbers are added to the totals. A dry run adds no deletions."""
        with self._lock:
            state = self._ended(report.job, report.outcome)
            self._jobs[report.job] = replace(
                state,
                last_report=report,
                found=(state.found or Found()).after(report),
                last_error=None,
                last_success=report.finished if report.outcome == "success" else state.last_success,
                handled=state.handled + report.handled,
                skipped=state.skipped + report.skipped,
                batches=state.batches + report.batches,
                requests=state.requests + report.requests,
                retries=state.retries + report.retries,
            )
            if report.job in DELETING and not report.dry_run:
                for row in report.rows:
                    self._deleted[report.job, row.collection, row.tenant, row.scope] += row.count

    def fail(self, job: str, message: str) -> None:
        """A run raised; `message` is one sentence that holds no content and no key."""
        with self._lock:
            self._jobs[job] = replace(self._ended(job, "failed"), last_error=message)

    def jobs(self) -> dict[str, JobState]:
        """Every job's state, by name."""
        with self._lock:
            return dict(sorted(self._jobs.items()))

    def deleted(self) -> dict[DeletedKey, int]:
        """How many points were deleted, by job, collection, tenant and scope."""
        with self._lock:
            return dict(self._deleted)

    def _state(self, job: str) -> JobState:
        return self._jobs.get(job) or JobState()

    def _ended(self, job: str, outcome: Outcome) -> JobState:
        state = self._state(job)
        now = self._clock()
        return replace(
            state,
            running=False,
            last_duration=now - self._began.pop(job, now),
            outcomes=MappingProxyType({**state.outcomes, outcome: state.outcomes[outcome] + 1}),
        )
