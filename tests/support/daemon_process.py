"""A daemon process with jobs made for the tests: `python -m tests.support.daemon_process READY_FILE TRACE JOB...`.

The settings come from the environment, as everywhere. Each job writes what it does to the file TRACE, a line at a
time, so that a test sees how far it came however the process ended. `LEASE_URL` holds a Lease on the server of
`tests.support.lease_server`, with the token in the file `LEASE_TOKEN_FILE`. A cron time comes a second after the
start, and then not for a day.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from apscheduler.triggers.cron import CronTrigger

from ops import cron, lease, logs
from ops.daemon import Daemon
from ops.jobs.base import Context, Progress, reporting
from ops.jobs.registry import Registered
from ops.kubernetes import ApiServer, KubernetesLease
from ops.report import JobReport, Row
from ops.settings_source import load
from ops.snapshot import SnapshotStore


class Traced:
    """Writes lines to the trace."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def say(self, text: str) -> None:
        with self._trace.open("a") as stream:
            stream.write(f"{os.getpid()} {text}\n")


class Batches(Traced):
    """Goes on, batch after batch, until it is told to stop."""

    name = "ttl"
    seconds = 0.2

    def run(self, context: Context) -> JobReport:
        with reporting(self.name, context) as report:
            while size := context.budget.next_batch(10):
                self.say(f"begin {report.batches}")
                context.session.collections()
                time.sleep(self.seconds)
                self.say(f"end {report.batches}")
                report.batches += 1
                report.handled += size
                context.progress(Progress("cm_text_4_v1", "delete", report.handled))
                context.budget.spend(size)
            report.stopped = context.budget.exhausted()
            report.rows = [Row("cm_text_4_v1", "t_a", "docs", report.handled)]
        self.say(f"stopped: {report.stopped}")
        return report


class Stuck(Batches):
    """Its first batch never ends."""

    seconds = 3600.0


class Raising(Traced):
    """Raises something that nobody foresaw, with content in its text."""

    name = "dedup"

    def run(self, context: Context) -> JobReport:
        self.say("raised")
        raise RuntimeError("the content of a secret memory")


class Nightly(Traced):
    """Asks Qdrant one thing, and is done."""

    name = "audit-deep"

    def run(self, context: Context) -> JobReport:
        with reporting(self.name, context) as report:
            report.collections = len(context.session.collections())
        self.say(f"nightly {report.outcome}")
        return report


class SoonThenTomorrow(CronTrigger):  # type: ignore[misc]
    """A cron time as the tests need it."""

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        return now + (timedelta(seconds=1) if previous is None else timedelta(days=1))


JOBS = {
    "batches": (Batches, "ttl", "schedule"),
    "stuck": (Stuck, "ttl", "schedule"),
    "raising": (Raising, "dedup", "schedule"),
    "nightly": (Nightly, "audit", "deep_schedule"),
}


def main() -> None:
    ready, trace, *names = sys.argv[1:]
    settings = load()
    logs.configure(settings.log, [settings.qdrant.api_key])
    if url := os.environ.get("LEASE_URL"):
        api = ApiServer(url, "memory", Path(os.environ["LEASE_TOKEN_FILE"]))
        duration = settings.lease.duration.total_seconds()
        lease.make = lambda _: KubernetesLease(api, "comemory", lease.identity(), duration=duration)
    cron.trigger = lambda *_: SoonThenTomorrow()
    jobs = [Registered(n, make(Path(trace)), *where) for n in names for make, *where in [JOBS[n]]]
    sys.exit(Daemon(settings, jobs, store=SnapshotStore(), probe_seconds=0.2).run(Path(ready)))


if __name__ == "__main__":
    main()
