"""`comemory audit`: what breaks the payload schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.cli import options
from ops.cli.execute import execute
from ops.errors import SettingsError
from ops.jobs.audit import AuditJob
from ops.jobs.registry import Registered

Deep = Annotated[
    bool, typer.Option("--deep", help="Read and validate every payload, instead of counting by filters.")
]
QuarantineFile = Annotated[
    Path | None,
    typer.Option("--quarantine", metavar="FILE", help="With --deep: write ids and reasons here, a JSON line each."),
]


def audit(
    *,
    settings_file: options.SettingsFile = None,
    collection: options.Collection = None,
    tenant: options.Tenant = None,
    scope: options.Scope = None,
    deep: Deep = False,
    quarantine: QuarantineFile = None,
    max_seconds: options.MaxSeconds = None,
    as_json: options.AsJson = False,
    exit_code: options.ExitCode = False,
) -> None:
    """Count points that break the schema, by reason, and say what of the collections is not as declared.

    It changes nothing. A quarantine list holds no content.
    """
    if quarantine is not None and not deep:
        raise SettingsError("--quarantine lists what a deep audit finds: give --deep too.")
    settings = options.override(options.read_settings(settings_file), "audit", max_seconds=max_seconds)
    execute(
        Registered("audit", AuditJob(deep=deep, quarantine=quarantine), "audit"), settings,
        options.selection(collection, tenant, scope), as_json=as_json, exit_code=exit_code,
    )  # fmt: skip
