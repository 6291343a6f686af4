"""`comemory doctor`: is everything well, and what to do if not."""

from __future__ import annotations

from dataclasses import asdict

import typer

from ops.cli import output
from ops.cli.options import AsJson, SettingsFile, read_settings
from ops.doctor import examine
from ops.jobs.registry import connect


def doctor(settings_file: SettingsFile = None, as_json: AsJson = False) -> None:
    """Check connection, version, key rights, indexes, strict mode and clock, and say what to do.

    Exits with 0 when nothing failed (warnings allowed), else with 1. A missing index is a failure where the server
    then refuses what agents or jobs ask, and a warning where it only takes longer. The key's right to write is
    tried by deleting a point that does not exist.
    """
    settings = read_settings(settings_file)
    with connect(settings, retry_for=min(settings.qdrant.retry_for, 3.0)) as session:
        checks = list(examine(settings, session))
    if as_json:
        output.print_json({"format": 1, "checks": [asdict(check) for check in checks]})
    else:
        output.table(
            ("check", "verdict", "found", "what to do"),
            [(check.name, check.verdict, check.found, check.advice) for check in checks],
        )
    raise typer.Exit(1 if any(check.verdict == "failed" for check in checks) else 0)
