"""Running one job from the command line: what would go is shown first, and nothing is deleted unasked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ops.cli import output
from ops.cli.options import override, read_settings
from ops.cli.progress import progress
from ops.errors import SettingsError
from ops.jobs import registry
from ops.jobs.base import Selection
from ops.jobs.registry import Registered
from ops.report import JobReport
from ops.settings import Settings
from ops.signals import run_interruptibly

DONE, FAILED, USAGE, PARTIAL, FOUND = 0, 1, 2, 3, 4
_CODES = {"success": DONE, "failed": FAILED, "partial": PARTIAL}


def code_of(result: JobReport) -> int:
    """The exit code that says how a run went."""
    return _CODES[result.outcome]


def execute(
    registered: Registered,
    settings: Settings,
    selected: Selection,
    *,
    deletes: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    as_json: bool = False,
    exit_code: bool = False,
) -> None:
    """Run the job, print its report, and exit with the code that says how it went.

    Raises:
        SettingsError: it would delete, and there is neither `--yes` nor a person to ask.
    """
    if deletes and not dry_run and not yes:
        found = _ask(registered, settings, selected, as_json=as_json)
        if found.stopped is not None:  # what was shown is not all there is, and no more than that was agreed to
            settings = override(settings, registered.section, max_points=found.found)
    result = _run(registered, settings, selected, dry_run=dry_run)
    if as_json:
        output.print_json(result.to_json())
    else:
        output.report(result)
    code = code_of(result)
    raise typer.Exit(FOUND if exit_code and code == DONE and result.found else code)


def delete(
    registered: Registered,
    settings_file: Path | None,
    selected: Selection,
    *,
    limits: Mapping[str, Any],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    exit_code: bool,
) -> None:
    """`execute` for a job that deletes, with what the command line gave for its section (None: not given).

    Raises:
        SettingsError: the settings or one of these values cannot be used.
    """
    settings = override(read_settings(settings_file), registered.section, **limits)
    execute(
        registered, settings, selected,
        deletes=True, dry_run=dry_run, yes=yes, as_json=as_json, exit_code=exit_code,
    )  # fmt: skip


def _run(
    registered: Registered,
    settings: Settings,
    selected: Selection,
    *,
    dry_run: bool,
    stop: threading.Event | None = None,
) -> JobReport:
    stop = stop or threading.Event()
    with progress() as shown:
        return run_interruptibly(
            lambda: registry.run(
                registered, settings, selection=selected, dry_run=dry_run, stop=stop, progress=shown
            ),
            stop,
            output.ending,
        )


def _ask(registered: Registered, settings: Settings, selected: Selection, *, as_json: bool) -> JobReport:
    """Show what would go and ask; what was shown, if that may go."""
    name = registered.job.name
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SettingsError(
            f"{name} deletes points, and there is nobody to ask: give --yes to delete, or --dry-run to see what "
            "would go. Nothing was done."
        )
    stop = threading.Event()
    found = _run(registered, settings, selected, dry_run=True, stop=stop)
    output.report(found)
    if stop.is_set():
        output.tell("Nothing was deleted.")
        raise typer.Exit(PARTIAL)
    if found.found == 0:
        raise typer.Exit(code_of(found))
    if not typer.confirm(f"Delete these {found.found:,} points from {settings.qdrant.url}?", err=True):
        output.tell("Nothing was deleted.")
        raise typer.Exit(DONE)
    return found
