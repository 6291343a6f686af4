"""One run of each job of the daemon on the laptop endpoint, with the tables that the command line prints."""

from __future__ import annotations

import os

from ops import logs
from ops.cli import output
from ops.jobs import registry
from ops.settings import LogSettings
from ops.settings_source import load
from ops.snapshot import SnapshotStore
from tools.daemon import settings_of
from tools.errors import StepError
from tools.workplace import Workplace

KEYS = ("census", "ttl", "dedup-full", "audit")
"""In the order in which they show something: what is there, what goes, and what stays and breaks the schema."""


def run_each(place: Workplace, url: str) -> None:
    """Run every job once and print its table; what expired or stands twice in the sample is gone afterwards."""
    os.environ.update(settings_of(place, url))
    settings = load()
    logs.configure(LogSettings(format="console", level="error"), [settings.qdrant.api_key])
    jobs = {job.key: job for job in registry.daemon_jobs(SnapshotStore())}
    for key in KEYS:
        print(f"\n--- comemory {key.replace('-full', ' --full')}", flush=True)
        result = registry.run(jobs[key], settings)
        output.report(result)
        if result.outcome == "failed":
            raise StepError(f"the job {key} failed; the reason stands above")
