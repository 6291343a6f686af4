"""`comemory tenant`: hand a tenant all that it stored, and erase it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from comemory.tenancy import Subject
from ops.budget import Budget
from ops.cli import options, output
from ops.cli.execute import DONE, FAILED, PARTIAL, code_of
from ops.cli.progress import progress
from ops.errors import SettingsError
from ops.jobs.base import Context
from ops.jobs.registry import connect
from ops.report import JobReport
from ops.settings import Settings
from ops.signals import run_interruptibly
from ops.tenant import erase as erasure
from ops.tenant import log as record
from ops.tenant.export import Wanted
from ops.tenant.export import export as write_export

app = typer.Typer(no_args_is_help=True, help="Export or erase what a tenant, or one owner in it, stored.")
log_app = typer.Typer(no_args_is_help=True, help="The record of erasures.")
app.add_typer(log_app, name="log")

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id, exactly as stored.")]
Owner = Annotated[
    str | None, typer.Option("--owner", metavar="ID", help="Only what this owner_id owns, such as user_marta.")
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file; it must not be there yet.")]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", metavar="NAME", help="Only this collection (or alias); may be given again."),
]
Vectors = Annotated[bool, typer.Option("--vectors", help="Also the vectors, as the server has them.")]
Confirm = Annotated[
    str | None,
    typer.Option("--confirm", metavar="ID", help="For scripts: the tenant's id again, with --owner TENANT/OWNER."),
]
STILL_HELD = (
    "Not erased: snapshots and backups made before, what Qdrant keeps on its disk until it next optimizes, old "
    "collections of other names, exports, and what applications logged. See docs/tenant.md."
)


@app.command()
def export(
    tenant: TenantId,
    *,
    to: Output,
    owner: Owner = None,
    collection: Collections = None,
    vectors: Vectors = False,
    settings_file: options.SettingsFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a JSON line for each point of a tenant: collection, id, payload, and vectors when asked for.

    Run the same command again after any end: it goes on. Exits with 3 when the file cannot hold all.
    """
    settings = options.read_settings(settings_file)
    wanted = Wanted(_subject(tenant, owner), tuple(collection or ()), vectors)
    result, resumed = _do(settings, lambda context: write_export(context, wanted, to))
    if as_json:
        output.print_json(result.to_json())
    else:
        output.report(result)
    if resumed:
        output.tell("Went on from where the last run had ended.")
    if "export" not in result.details:
        output.tell(f"{to} is not complete; the same command goes on with it.")
        raise typer.Exit(PARTIAL if result.stopped else FAILED)
    raise typer.Exit(code_of(result))


@app.command()
def erase(
    tenant: TenantId,
    *,
    owner: Owner = None,
    confirm: Confirm = None,
    settings_file: options.SettingsFile = None,
    dry_run: options.DryRun = False,
    batch: options.Batch = None,
    points_per_second: options.Rate = None,
    as_json: options.AsJson = False,
) -> None:
    """Erase a tenant, or one owner in it, from every collection that holds memory, and prove that nothing is left.

    What would go is shown first, and the id has to be typed; a script repeats it with --confirm.
    Exits with 1 when something is left, with 3 when something could not be decided.
    """
    subject = _subject(tenant, owner)
    limits = {"batch": batch, "points_per_second": points_per_second}
    settings = options.override(options.read_settings(settings_file), "tenant", **limits)
    if confirm is not None and confirm != str(subject):
        raise SettingsError(f"--confirm: '{confirm}' is not '{subject}'. Nothing was erased.")
    unconfirmed = not dry_run and confirm is None
    if unconfirmed and (as_json or not (sys.stdin.isatty() and sys.stderr.isatty())):
        raise SettingsError(
            f"There is nobody to ask: give --confirm '{subject}' to erase, or --dry-run to see what would go. "
            "Nothing was erased."
        )
    log = None if dry_run else record.ErasureLog(settings.tenant.log_file)
    if unconfirmed:
        _ask(settings, subject)
    result = _do(settings, lambda context: erasure.erase(context, subject, log), dry_run=dry_run)
    _show(result, as_json=as_json)
    about = result.details[erasure.ABOUT]
    if about["log"] is not None:
        output.tell(f"Recorded in {about['log']}.")
        output.tell(STILL_HELD)
    raise typer.Exit(FAILED if about["left"] else code_of(result))


@log_app.command("verify")
def verify(settings_file: options.SettingsFile = None) -> None:
    """Say whether lines of the record were changed or taken out, and which erasures never ended.

    Lines cut off at the end do not show; compare the printed digest with one that was kept elsewhere.
    """
    path = options.read_settings(settings_file).tenant.log_file
    found = record.verify(path)
    for fault in found.faults:
        output.tell(f"{path}: {fault}.")
    for run in found.unended:
        output.tell(f"{path}: no end is recorded of {run}.")
    output.console().print(
        f"{found.entries} entries, digest of the last: {found.last}", markup=False, soft_wrap=True
    )
    raise typer.Exit(FAILED if found.faults else DONE)


def _subject(tenant: str, owner: str | None) -> Subject:
    for option, value in (("TENANT", tenant), ("--owner", owner)):
        if value is None:
            continue
        if not value.strip():
            raise SettingsError(f"{option}: it is empty. Nothing was done.")
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise SettingsError(f"{option}: it is no UTF-8 text, so no payload can hold it. Nothing was done.")
    return Subject(tenant, owner)


def _do(
    settings: Settings,
    work: Callable[[Context], Any],
    *,
    dry_run: bool = False,
    stop: threading.Event | None = None,
) -> Any:
    """Do some of it, with progress and Ctrl-C."""
    stop = stop or threading.Event()

    def inside() -> Any:
        with connect(settings, stop=stop) as session, progress() as shown:
            budget = Budget(points_per_second=settings.tenant.points_per_second, stop=stop)
            return work(Context(session, settings, budget, dry_run=dry_run, progress=shown))

    return run_interruptibly(inside, stop, output.ending)


def _ask(settings: Settings, subject: Subject) -> None:
    """Show what would go, and have the id typed."""
    found = _do(settings, lambda context: erasure.erase(context, subject), dry_run=True)
    _show(found, as_json=False)
    if found.outcome == "failed" or found.stopped:
        output.tell("Nothing was erased.")
        raise typer.Exit(PARTIAL if found.stopped else FAILED)
    if not found.found:
        raise typer.Exit(code_of(found))
    typed = typer.prompt(
        f"These {found.found:,} points go from {settings.qdrant.url}, and cannot be had back. Type {subject}",
        default="", show_default=False, err=True,
    )  # fmt: skip
    if typed != str(subject):
        output.tell(f"That is not {subject}. Nothing was erased.")
        raise typer.Exit(DONE)


def _show(result: JobReport, *, as_json: bool) -> None:
    if as_json:
        output.print_json(result.to_json())
        return
    output.report(result)
    about = result.details[erasure.ABOUT]
    collections = {name: found for name, found in result.details.items() if name != erasure.ABOUT}
    _counts(collections)
    for name, found in collections.items():
        if found["named"]:
            output.tell(f"'{name}': {found['named']:,} of others' points name {about['owner']}; they stay.")
        for alike, count in found["looks_alike"].items():
            output.tell(f"'{name}': {count:,} of the points are another tenant's, {alike!r}; they stay.")
    if about["not_searched"]:
        output.tell(f"Not searched, since no memory is there: {', '.join(about['not_searched'])}.")
    if about["proven"]:
        whose = Subject(about["tenant"], about["owner"])
        output.tell(f"Every point was looked at again: nothing of {whose} is left.")


def _counts(collections: dict[str, Any]) -> None:
    """The table of before and after, with all other tenants in one line."""
    rows: list[tuple[str, str, str, str]] = []
    for name, found in collections.items():
        times = [found["before"], found["after"]]
        for scope in sorted({one["scope"] for time in times for one in time or []}):
            rows.append((name, scope or "(no scope)", _number(times[0], scope), _number(times[1], scope)))
        before, after = ("" if count is None else f"{count:,}" for count in found["others"].values())
        rows.append((name, "(all others)", before, after))
    if rows:
        output.console().print()
        output.table(("collection", "scope", "before", "after"), rows, right=("before", "after"))


def _number(counts: list[dict[str, Any]] | None, scope: str) -> str:
    """How many points of a scope there were at one time; empty where nobody looked."""
    return "" if counts is None else f"{sum(one['count'] for one in counts if one['scope'] == scope):,}"
