"""`comemory dedup`: remove copies within one access domain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.cli import options
from ops.cli.execute import delete
from ops.errors import SettingsError
from ops.jobs.dedup import DedupJob
from ops.jobs.registry import Registered

Full = Annotated[
    bool,
    typer.Option(
        "--full/--incremental", help="Look at every point, or only where something changed since last time."
    ),
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="With --dry-run: write the groups of copies here.")
]
FromReport = Annotated[
    Path | None,
    typer.Option("--from-report", metavar="FILE", help="Delete only what this report of a dry run names."),
]


def dedup(
    *,
    settings_file: options.SettingsFile = None,
    collection: options.Collection = None,
    tenant: options.Tenant = None,
    scope: options.Scope = None,
    full: Full = True,
    report: Report = None,
    from_report: FromReport = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    max_points: options.MaxPoints = None,
    max_seconds: options.MaxSeconds = None,
    batch: options.Batch = None,
    points_per_second: options.Rate = None,
    as_json: options.AsJson = False,
    exit_code: options.ExitCode = False,
) -> None:
    """Delete copies: same content and same access, never across an access boundary; the best one stays.

    Without --yes, what would go is shown first and a question asked. --dry-run --report FILE writes the groups for
    a person to review; --from-report FILE then deletes those and no others, if they still are copies.
    An incremental run needs dedup.state_file, which remembers the last run.
    """
    if report is not None and not dry_run:
        raise SettingsError("--report is written by a dry run: give --dry-run too.")
    if report is not None and from_report is not None:
        raise SettingsError("--report and --from-report cannot be given together.")
    job = DedupJob("full" if full else "incremental", write_report=report, from_report=from_report)
    delete(
        Registered("dedup", job, "dedup"), settings_file, options.selection(collection, tenant, scope),
        limits=options.limits(max_points, max_seconds, batch, points_per_second),
        dry_run=dry_run, yes=yes, as_json=as_json, exit_code=exit_code,
    )  # fmt: skip
