"""`comemory ttl`: delete what outlived its `ttl_days`."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.cli import options
from ops.cli.execute import delete
from ops.jobs.registry import Registered
from ops.jobs.ttl import TtlJob

Grace = Annotated[
    str | None, typer.Option("--grace", metavar="TIME", help="How much longer a point stays: 7d, 36h, 90m, P7D.")
]


def ttl(
    *,
    settings_file: options.SettingsFile = None,
    collection: options.Collection = None,
    tenant: options.Tenant = None,
    scope: options.Scope = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    grace: Grace = None,
    max_points: options.MaxPoints = None,
    max_seconds: options.MaxSeconds = None,
    batch: options.Batch = None,
    points_per_second: options.Rate = None,
    as_json: options.AsJson = False,
    exit_code: options.ExitCode = False,
) -> None:
    """Delete points whose created_at + ttl_days is past; pinned ones (exempt tags) stay.

    Without --yes, what would go is shown first and a question asked.
    """
    limits = options.limits(max_points, max_seconds, batch, points_per_second)
    delete(
        Registered("ttl", TtlJob(), "ttl"), settings_file, options.selection(collection, tenant, scope),
        limits=limits | {"grace": options.duration(grace, "--grace")},
        dry_run=dry_run, yes=yes, as_json=as_json, exit_code=exit_code,
    )  # fmt: skip
