"""All jobs by the key that their schedule has, and how the daemon and the command line run one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ops.budget import Budget
from ops.files import check_authorities, read_secret
from ops.jobs.audit import AuditJob
from ops.jobs.base import Context, Job, Progress, Selection
from ops.jobs.census import CensusJob
from ops.jobs.dedup import DedupJob
from ops.jobs.dedup_state import DedupState
from ops.jobs.ttl import TtlJob
from ops.report import JobReport
from ops.session import Session
from ops.settings import Schedule, Settings
from ops.snapshot import SnapshotStore


@dataclass(frozen=True, slots=True)
class Registered:
    """A job with its place in the settings.

    Two entries may share a job's name (`dedup` and `dedup-full`): they never run at the same time.

    Args:
        key: What the schedule calls it.
        job: The job itself; the daemon keeps it for its whole life.
        section: Its section of the settings.
        schedule: The field of the section that says when it runs.
    """

    key: str
    job: Job
    section: str
    schedule: str = "schedule"

    def enabled(self, settings: Settings) -> bool:
        """Whether the daemon runs it."""
        return bool(getattr(settings, self.section).enabled)

    def when(self, settings: Settings) -> Schedule:
        """When the daemon runs it."""
        found: Schedule = getattr(getattr(settings, self.section), self.schedule)
        return found


def daemon_jobs(store: SnapshotStore) -> tuple[Registered, ...]:
    """Every job that a daemon runs; the census puts its numbers into `store`."""
    state = DedupState()
    return (
        Registered("census", CensusJob(store), "census"),
        Registered("ttl", TtlJob(), "ttl"),
        Registered("dedup", DedupJob("incremental", state=state), "dedup"),
        Registered("dedup-full", DedupJob("full", state=state), "dedup", "full_schedule"),
        Registered("audit", AuditJob(), "audit"),
        Registered("audit-deep", AuditJob(deep=True), "audit", "deep_schedule"),
    )


def connect(settings: Settings, *, stop: threading.Event | None = None, retry_for: float | None = None) -> Session:
    """A session as the settings describe it. Each run has its own, so that it counts its own traffic.

    Raises:
        SettingsError: the file of the API key or of the certificate authorities cannot be read.
    """
    qdrant = settings.qdrant
    key = read_secret(qdrant.api_key, qdrant.api_key_file, "qdrant.api_key")
    check_authorities(qdrant.ca_file)
    return Session(
        qdrant.url,
        api_key=key,
        timeout=qdrant.timeout,
        ca=None if qdrant.ca_file is None else str(qdrant.ca_file),
        retry_for=qdrant.retry_for if retry_for is None else retry_for,
        stop=stop,
    )


def budget_of(settings: Settings, section: str, stop: threading.Event | None = None) -> Budget:
    """The limits that a section sets for one run."""
    limits = getattr(settings, section)
    return Budget(
        max_points=getattr(limits, "max_points", None),
        max_seconds=limits.max_seconds,
        points_per_second=getattr(limits, "points_per_second", None),
        stop=stop,
    )


def run(
    registered: Registered,
    settings: Settings,
    *,
    selection: Selection | None = None,
    dry_run: bool = False,
    stop: threading.Event | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> JobReport:
    """One run of a job.

    Raises:
        OpsError: it could not begin; what happens later is a problem of the report.
    """
    with connect(settings, stop=stop) as session:
        context = Context(
            session=session,
            settings=settings,
            budget=budget_of(settings, registered.section, stop),
            selection=selection or Selection(),
            dry_run=dry_run,
            progress=progress,
        )
        return registered.job.run(context)
