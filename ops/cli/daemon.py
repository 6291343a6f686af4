"""`comemory daemon`: the jobs by the clock, and the HTTP server, until SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops import logs
from ops.cli.options import SettingsFile
from ops.daemon import Daemon
from ops.files import read_secret
from ops.jobs.registry import daemon_jobs
from ops.settings_source import load
from ops.snapshot import SnapshotStore

ReadyFile = Annotated[
    Path | None,
    typer.Option("--ready-file", metavar="FILE", help="Write the address of the HTTP server here once it listens."),
]


def daemon(settings_file: SettingsFile = None, ready_file: ReadyFile = None) -> None:
    """Run the jobs by their schedules until SIGTERM or Ctrl-C, and serve metrics and health.

    The first signal ends it when the batch under way is done (exit code 0; 1 when that takes longer than
    `shutdown_seconds`), a second one at once.
    """
    settings = load(settings_file)
    logs.configure(
        settings.log,
        [
            read_secret(settings.qdrant.api_key, settings.qdrant.api_key_file, "qdrant.api_key"),
            read_secret(None, settings.http.token_file, "http.token"),
        ],
    )
    store = SnapshotStore()
    raise typer.Exit(Daemon(settings, daemon_jobs(store), store=store).run(ready_file))
