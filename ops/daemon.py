"""The daemon: runs the jobs by the clock while it holds the lease, and serves what they found.

Threads: the main one waits for signals and watches the clock; the scheduler has one per job; the lease, the probe
and the HTTP server have one each. What they share is `Results` and a few flags here.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ops import lease as leases
from ops import logs, signals
from ops.errors import OpsError
from ops.exposition import Exposition
from ops.files import read_secret
from ops.http import HttpServer, application
from ops.jobs import registry
from ops.jobs.base import Progress, utc_now
from ops.jobs.registry import Registered
from ops.owed import Owed
from ops.probe import Probe
from ops.report import JobReport
from ops.results import JobState, Results
from ops.schedule import Timed, Timetable, longest_pause
from ops.settings import Settings
from ops.snapshot import SnapshotStore
from ops.status import job_json, moment

PROBE_SECONDS = 5.0


class Daemon:
    """One daemon process.

    Args:
        settings: How it works.
        jobs: What it runs; those that are not enabled are left out.
        store: Where the census puts its numbers, for the metrics.
        probe_seconds: How often Qdrant is asked whether it is there.

    Raises:
        OpsError: the port is taken, a secret's file cannot be read, or the lease cannot work here.
    """

    def __init__(
        self,
        settings: Settings,
        jobs: Sequence[Registered],
        *,
        store: SnapshotStore,
        probe_seconds: float = PROBE_SECONDS,
    ) -> None:
        self._settings = settings
        self._jobs = [item for item in jobs if item.enabled(settings)]
        self._results = Results(tuple(sorted({item.job.name for item in self._jobs})))
        self._started = utc_now()
        self._ending = False
        self._halt = threading.Event()
        self._flags = threading.Lock()
        self._running = 0
        self._idle = threading.Condition()
        self._owed = Owed()
        self._turns = {item.job.name: threading.Lock() for item in self._jobs}
        token = read_secret(None, settings.http.token_file, "http.token")
        self._lease = leases.make(settings.lease)
        self._keeper = leases.Keeper(
            self._lease,
            every=max(1.0, settings.lease.duration.total_seconds() / 3),
            won=self._won,
            lost=self._lost,
        )
        registry.connect(settings).close()  # a secret that cannot be read is known now, not at the first run
        self._probe = Probe(self._quick_session, every=probe_seconds, came_up=self._came_up)
        self._timetable = Timetable(
            [Timed(item.key, item.when(settings), self._runner(item)) for item in self._jobs]
        )
        exposition = Exposition(
            store,
            self._results,
            max_tenants=settings.census.max_tenants,
            intervals=self._intervals(),
            lease_held=lambda: self._keeper.held,
        )
        app = application(metrics=exposition.render, ready=self.not_ready, status=self.status, token=token)
        self.http = HttpServer(settings.http, app)

    # --- what is served --------------------------------------------------------------------------------------

    def not_ready(self) -> list[str]:
        """Why this daemon is not ready; one that waits for the lease is ready to take over."""
        if self._ending:
            return ["The daemon is shutting down."]
        reasons = []
        if (down := self._probe.health.reason) is not None:
            reasons.append(down)
        counted = self._results.jobs().get("census")
        if self._keeper.held and self._has("census") and (counted is None or not _ever_worked(counted)):
            reasons.append("No census has been taken yet.")
        return reasons

    def status(self) -> dict[str, Any]:
        """What `/status` answers; documented in docs/operations.md."""
        health = self._probe.health
        return {
            "format": 1,
            "started": moment(self._started),
            "lease": {"kind": self._settings.lease.kind, "held": self._keeper.held},
            "qdrant": {
                "url": self._settings.qdrant.url,
                "up": health.reason is None,
                "version": health.version,
                "problem": health.reason,
            },
            "next_runs": {key: moment(due) for key, due in self._timetable.next_runs().items()},
            "jobs": {name: job_json(state) for name, state in self._results.jobs().items()},
        }

    # --- life ------------------------------------------------------------------------------------------------

    def run(self, ready_file: Path | None = None) -> int:
        """Work until SIGTERM or Ctrl-C, and return the exit code: 0, or 1 when the batch under way took too long.

        Args:
            ready_file: Gets the address of the HTTP server once it answers.

        Raises:
            OpsError: the lease cannot work.
        """
        with signals.blocked():
            self._keeper.start()
            self._timetable.start()
            self.http.start()
            self._probe.start()
            logs.get().info("daemon", state="started", http=self.http.url, jobs=[item.key for item in self._jobs])
            if ready_file is not None:
                ready_file.write_text(self.http.url, encoding="utf-8")
            while (signal := signals.arrived(1.0)) is None:
                self._watch_clock()
            return self._end(signal.name)

    def _end(self, why: str) -> int:
        logs.get().info("daemon", state="stopping", why=why)
        with self._flags:
            self._ending = True
            self._halt.set()
        self._timetable.stop()
        self._probe.stop()
        if not signals.wait_until(lambda: self._running == 0, self._settings.shutdown_seconds):
            logs.get().error("daemon", state="cut", problem="a batch outlasted shutdown_seconds and was left")
            signals.end_at_once(1)
        self._keeper.stop()
        self.http.stop()
        logs.get().info("daemon", state="stopped")
        return 0

    def _watch_clock(self) -> None:
        jump = self._timetable.check_clock()
        if jump:
            logs.get().warning("clock", set_by_seconds=round(jump, 1), problem="the wall clock was set")

    # --- the lease -------------------------------------------------------------------------------------------

    def _won(self) -> None:
        with self._flags:
            if self._ending:
                return
            self._halt = threading.Event()
        often = {item.key for item in self._jobs if item.when(self._settings).every is not None}
        for key in sorted(often.union(self._owed.take())):
            self._timetable.run_soon(key)

    def _lost(self) -> None:
        self._halt.set()

    # --- runs ------------------------------------------------------------------------------------------------

    def _runner(self, item: Registered) -> Callable[[], None]:
        def scheduled() -> None:
            with self._idle:
                self._running += 1
            try:
                self._take_turn(item)
            finally:
                with self._idle:
                    self._running -= 1

        return scheduled

    def _take_turn(self, item: Registered) -> None:
        self._owed.due(item.key)
        turn = self._turns[item.job.name]
        while not turn.acquire(timeout=0.1):
            if self._halt.is_set():
                return
        try:
            halt = self._halt
            if self._keeper.held and not halt.is_set():
                self._owed.begin(item.key)
                done = self._run(item, halt)
                self._owed.end(item.key, done=done and not halt.is_set())
        finally:
            turn.release()

    def _run(self, item: Registered, halt: threading.Event) -> bool:
        """One run; whether it could do its work everywhere, or as far as its budget allowed."""
        log = logs.get(job=item.job.name, run=item.key)
        self._results.start(item.job.name, utc_now())
        began = time.monotonic()
        try:
            report = registry.run(item, self._settings, stop=halt, progress=_progress_logger(log))
        except OpsError as error:
            self._failed(item, log, began, str(error))
        except Exception as error:  # the daemon lives on, and the job is tried again at its next time
            # The text of an unknown error could hold content; where it was raised cannot.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            message = f"The job raised {type(error).__name__} at {where}; this is a defect of the program."
            self._failed(item, log, began, message)
        else:
            self._results.finish(report)
            log_report(log, report, _since(began))
            return not report.missed
        return False

    def _failed(self, item: Registered, log: Any, began: float, message: str) -> None:
        self._results.fail(item.job.name, message)
        log.error("run", outcome="failed", seconds=_since(began), problems=[message])

    # --- helpers ---------------------------------------------------------------------------------------------

    def _has(self, key: str) -> bool:
        return any(item.key == key for item in self._jobs)

    def _came_up(self) -> None:
        for key in sorted({"census", *(self._owed.take() if self._keeper.held else ())}):
            self._timetable.run_soon(key)

    def _intervals(self) -> dict[str, float]:
        """By job, how long it waits between two runs at most, in seconds; a job may have several schedules."""
        found: dict[str, float] = {}
        for item in self._jobs:
            if (pause := longest_pause(item.when(self._settings))) is not None:
                found[item.job.name] = min(pause.total_seconds(), found.get(item.job.name, math.inf))
        return found

    def _quick_session(self) -> Any:
        timeout = min(PROBE_SECONDS, self._settings.qdrant.timeout)
        quick = self._settings.qdrant.model_copy(update={"timeout": timeout})
        return registry.connect(self._settings.model_copy(update={"qdrant": quick}), retry_for=0)


def log_report(log: Any, report: JobReport, seconds: float) -> None:
    """The one event of a run."""
    write = log.info if report.outcome == "success" else log.warning
    write(
        "run",
        outcome=report.outcome,
        dry_run=report.dry_run,
        found=report.found,
        handled=report.handled,
        skipped=report.skipped,
        batches=report.batches,
        requests=report.requests,
        retries=report.retries,
        seconds=seconds,
        stopped=report.stopped,
        problems=[problem.message for problem in report.problems],
    )


def _progress_logger(log: Any) -> Callable[[Progress], None]:
    """For who looks closely; the one event of a batch is the job's own."""

    def tell(step: Progress) -> None:
        log.debug("progress", collection=step.collection, step=step.step, done=step.done, total=step.total)

    return tell


def _ever_worked(state: JobState) -> bool:
    return state.outcomes["success"] + state.outcomes["partial"] > 0


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)
