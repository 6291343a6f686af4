"""When each job runs: APScheduler with this project's rules about overlaps, missed runs and clocks.

- A job never overlaps itself. A run that came due meanwhile is made up once, right after.
- Runs missed while the machine slept are made up once, however many they were.
- An interval's first run is at once (within its jitter): a daemon restarted more often than the interval
  would otherwise never run it. A cron time is waited for.
- A clock that is set back does not stop the jobs: next runs are moved with it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, EVENT_JOB_MAX_INSTANCES
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
from apscheduler.util import undefined

from ops import cron
from ops.settings import Schedule

CLOCK_TOLERANCE = 1.0
"""Seconds by which the wall clock may differ from the steady one between two checks without being called set."""

MOST_TIMES = 2000
"""Times of a cron schedule that are looked at to tell its longest pause."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Something to run by the clock. `run` is called in a thread; what it raises ends that run only."""

    key: str
    schedule: Schedule
    run: Callable[[], None]


def trigger_of(schedule: Schedule) -> CronTrigger | IntervalTrigger | None:
    """The schedule as an APScheduler trigger; None when it names no time."""
    jitter = schedule.jitter.total_seconds() or None
    if schedule.cron is not None:
        trigger = cron.trigger(schedule.cron, schedule.zone)
        trigger.jitter = jitter
        return trigger
    if schedule.every is not None:
        return IntervalTrigger(seconds=schedule.every.total_seconds(), timezone=UTC, jitter=jitter)
    return None


def longest_pause(schedule: Schedule) -> timedelta | None:
    """How much time there is between two runs at most, jitter included; None when the schedule names no time.

    Of a cron time it is what a year shows, or its next 2,000 times where these are more often.
    """
    trigger = trigger_of(schedule.model_copy(update={"jitter": timedelta(0)}))
    if trigger is None:
        return None
    if isinstance(trigger, IntervalTrigger):
        every: timedelta = trigger.interval
        return every + schedule.jitter
    last = trigger.get_next_fire_time(None, _now())
    year, longest = last + timedelta(days=366), timedelta(0)
    for _ in range(MOST_TIMES):
        then = trigger.get_next_fire_time(last, last)
        if then is None:
            break
        # Two times of one zone are subtracted by the wall clock, which hides the hour of winter time.
        longest, last = max(longest, then.astimezone(UTC) - last.astimezone(UTC)), then
        if then >= year:
            break
    return longest + schedule.jitter


class Timetable:
    """Runs jobs by the clock, each in a thread of its own.

    Args:
        timed: What to run; a schedule that names no time is left out.
        wall: Seconds since the epoch, as the operator may set them.
        steady: Seconds by a clock that nobody sets.
    """

    def __init__(
        self,
        timed: Sequence[Timed],
        *,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._offset = wall() - steady()
        self._owed: set[str] = set()
        self._lock = threading.Lock()
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(max(1, len(timed)))},
            job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
        )
        self._scheduler.add_listener(self._overlapped, EVENT_JOB_MAX_INSTANCES)
        self._scheduler.add_listener(self._ended, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
        for item in timed:
            trigger = trigger_of(item.schedule)
            if trigger is None:
                continue
            first: Any = undefined
            if item.schedule.every is not None:
                first = _now() + random.random() * item.schedule.jitter  # noqa: S311 (no secret)
            self._scheduler.add_job(item.run, trigger, id=item.key, next_run_time=first)

    def start(self) -> None:
        """Begin; returns at once."""
        self._scheduler.start()

    def stop(self) -> None:
        """Start no further run; those under way are left to end by themselves."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def next_runs(self) -> dict[str, datetime]:
        """When each job is due next, in UTC."""
        due = {job.id: getattr(job, "next_run_time", None) for job in self._scheduler.get_jobs()}
        return {key: moment.astimezone(UTC) for key, moment in sorted(due.items()) if moment is not None}

    def run_soon(self, key: str) -> None:
        """Run a job now, out of its turn; nothing happens when it has no schedule, or before the start."""
        if self._scheduler.running and self._scheduler.get_job(key) is not None:
            self._scheduler.modify_job(key, next_run_time=_now())

    def check_clock(self) -> float:
        """Notice that the wall clock was set, move the next runs with it, and say by how many seconds it was.

        Call it every few seconds. A clock set forward only needs the scheduler woken: what is overdue runs once.
        """
        offset = self._wall() - self._steady()
        jump, self._offset = offset - self._offset, offset
        if abs(jump) <= CLOCK_TOLERANCE:
            return 0.0
        if jump < 0:
            for job in self._scheduler.get_jobs():
                if isinstance(job.trigger, IntervalTrigger):
                    job.modify(next_run_time=job.next_run_time + timedelta(seconds=jump))
                else:
                    job.modify(next_run_time=job.trigger.get_next_fire_time(None, _now()))
        self._scheduler.wakeup()
        return jump

    def _overlapped(self, event: Any) -> None:
        with self._lock:
            self._owed.add(event.job_id)

    def _ended(self, event: Any) -> None:
        with self._lock:
            owed = event.job_id in self._owed
            self._owed.discard(event.job_id)
        if owed:
            self.run_soon(event.job_id)


def _now() -> datetime:
    return datetime.now(UTC)
