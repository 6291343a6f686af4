"""`comemory rollover`: let one collection take another's place, while both are in use."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import typer

from ops.cli import output
from ops.cli.execute import DONE, FAILED, PARTIAL, code_of
from ops.cli.options import AsJson, DryRun, Yes
from ops.cli.rollover_options import AliasName, Collections, Place, Work, begun
from ops.cli.sharing import takes
from ops.errors import OpsError, SettingsError
from ops.jobs.base import Context
from ops.report import JobReport
from ops.rollover.catch_up import Rollover
from ops.rollover.finish import finish as take_markers_away
from ops.rollover.pair import open_pair
from ops.rollover.run import check_rollover, clean, run_rollover
from ops.rollover.switch import after, find_alias, is_switched, look_back, prepare
from ops.rollover.switch import back as alias_back
from ops.rollover.switch import switch as alias_over

app = typer.Typer(no_args_is_help=True, help="Let one collection take another's place.")


@app.command()
@takes(Work)
def run(work: Work, *, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Bring NEW up to OLD, pass by pass until nothing is left to do. Run it again after any end.

    Exits with 3 when something is left; what, is said.
    """
    result = work.rollover(
        lambda rollover: run_rollover(rollover, work.settings, passes=work.passes), reading=dry_run
    )
    _show(result, as_json=as_json)
    raise typer.Exit(code_of(result))


@app.command()
@takes(Work)
def check(work: Work, *, as_json: AsJson = False) -> None:
    """Compare both collections, point by point and by exact counts; nothing is written.

    Exits with 1 when something is missing in NEW, is out of date there, or counts differ.
    """
    result, right = work.rollover(
        lambda rollover: (made := check_rollover(rollover, work.settings), clean(made, rollover)), reading=True
    )
    _show(result, as_json=as_json)
    raise typer.Exit(DONE if right else PARTIAL if result.stopped else FAILED)


@app.command()
@takes(Work)
def switch(
    work: Work, *, alias: AliasName = None, dry_run: DryRun = False, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Catch up, check, and when all is right point the alias to NEW by one request; then bring over late writes.

    Exits with 1 when the check found something: the alias is left where it is.
    """
    if not dry_run:
        _somebody_to_ask(yes=yes, as_json=as_json)

    def before(rollover: Rollover) -> _Switch:
        name = find_alias(rollover.pair.session, work.old, work.new, alias)
        if rollover.switched:
            return _Switch(name, True, None)
        made = prepare(rollover, work.settings, passes=work.passes)
        return _Switch(name, clean(made, rollover), made)

    prepared = work.rollover(before, reading=dry_run)
    if not as_json and prepared.report is not None:
        _show(prepared.report, as_json=False)
    if dry_run or not prepared.right:
        done = "would be" if dry_run and prepared.right else "was not" if not dry_run else "would not be"
        output.tell(f"The alias {prepared.alias} {done} switched to {work.new}.")
        if as_json:
            _print(prepared, None, switched=False)
        stopped = prepared.report is not None and prepared.report.stopped is not None
        raise typer.Exit(DONE if prepared.right else PARTIAL if stopped else FAILED)
    if prepared.report is None:
        output.tell(f"The alias {prepared.alias} names {work.new} already; bringing over what came late.")
    elif not yes and not typer.confirm(f"Point the alias {prepared.alias} to {work.new}?", err=True):
        output.tell("The alias was not switched.")
        raise typer.Exit(DONE)

    def over(rollover: Rollover) -> JobReport:
        if rollover.switched:
            return after(rollover, work.settings, passes=work.passes)
        return alias_over(rollover, work.settings, prepared.alias, passes=work.passes)

    result = work.rollover(over, reading=False)
    if as_json:
        _print(prepared, result, switched=True)
    else:
        _show(result, as_json=False)
    output.tell(
        f"The alias {prepared.alias} names {work.new} now. The stack still gives it to {work.old}: "
        "a `pulumi up` after a refresh would point it back."
    )
    raise typer.Exit(code_of(result))


@app.command()
@takes(Collections)
def back(
    common: Collections,
    *,
    alias: AliasName = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Point the alias to OLD again, after saying what was written to NEW and is not in OLD."""
    if not dry_run:
        _somebody_to_ask(yes=yes, as_json=as_json)

    def look(place: Place) -> _Switch:
        name = find_alias(place.session, common.old, common.new, alias)
        pair = open_pair(place.session, common.old, common.new, begun(place.state))
        switched = place.state.has_list and is_switched(place.session, common.old, common.new, place.state.switched)
        rollover = Rollover(pair, place.state, place.budget, None, common.batch, 0, True, switched, place.progress)
        right = place.session.aliases().get(name) == common.new
        return _Switch(name, right, look_back(rollover, common.settings))

    found = common.do(look, reading=True)
    if not as_json and found.report is not None:
        _show(found.report, as_json=False)
    stopped = found.report is not None and found.report.stopped is not None
    if not found.right:
        output.tell(f"The alias {found.alias} names {common.old} already.")
    elif stopped:
        output.tell("The alias was left where it is.")
    elif dry_run:
        output.tell(f"The alias {found.alias} would be pointed to {common.old} again.")
    elif not yes and not typer.confirm(f"Point the alias {found.alias} to {common.old} again?", err=True):
        output.tell("The alias was left where it is.")
    else:
        common.do(
            lambda place: alias_back(place.session, place.state, found.alias, common.old, common.new), reading=False
        )
        output.tell(
            f"The alias {found.alias} names {common.old} again. What was written to {common.new} is there still, "
            "and wins when it is switched again."
        )
        if as_json:
            _print(found, None, switched=False)
        raise typer.Exit(DONE)
    if as_json:
        _print(found, None, switched=found.right)
    raise typer.Exit(PARTIAL if stopped else DONE)


@app.command()
@takes(Collections)
def finish(common: Collections, *, dry_run: DryRun = False, yes: Yes = False, as_json: AsJson = False) -> None:
    """Take the markers off the copies; from then on nothing is brought over from OLD any more."""
    if not dry_run:
        _somebody_to_ask(yes=yes, as_json=as_json)
        if not yes and not typer.confirm(f"End the rollover from {common.old} to {common.new}?", err=True):
            output.tell("Nothing was done.")
            raise typer.Exit(DONE)

    def work(place: Place) -> JobReport:
        pair = open_pair(place.session, common.old, common.new, vectors=False)
        using = sorted(name for name, named in place.session.aliases().items() if named == common.old)
        if using and not dry_run:
            raise OpsError(
                f"The alias {', '.join(using)} still names {common.old}; switch it first. Without the markers "
                "nothing could be brought over any more. Nothing was done."
            )
        context = Context(place.session, common.settings, place.budget, dry_run=dry_run, progress=place.progress)
        return take_markers_away(context, pair, batch=common.batch)

    result = common.do(work, reading=dry_run)
    _show(result, as_json=as_json)
    raise typer.Exit(code_of(result))


@dataclass(frozen=True, slots=True)
class _Switch:
    """An alias, whether it can be moved, and the report that says why."""

    alias: str
    right: bool
    report: JobReport | None


def _somebody_to_ask(*, yes: bool, as_json: bool) -> None:
    if not yes and (as_json or not (sys.stdin.isatty() and sys.stderr.isatty())):
        raise SettingsError("There is nobody to ask: give --yes to do it, or --dry-run to look. Nothing was done.")


def _print(before: _Switch, result: JobReport | None, *, switched: bool) -> None:
    output.print_json(
        {
            "format": 1, "alias": before.alias, "switched": switched,
            "before": None if before.report is None else before.report.to_json(),
            "after": None if result is None else result.to_json(),
        }
    )  # fmt: skip


def _show(result: JobReport, *, as_json: bool) -> None:
    if as_json:
        output.print_json(result.to_json())
        return
    output.report(result)
    for details in result.details.values():
        rows = [
            (one["tenant"], one["scope"], *(f"{one[key]:,}" for key in ("old", "own", "new")), _WORDS[one["right"]])
            for one in details.get("counts") or ()
        ]
        if rows:
            columns = ("tenant", "scope", "in the old one", "applications' own", "in the new one", "counts")
            output.table(columns, rows, right=columns[2:5])


_WORDS = {True: "agree", False: "DIFFER"}
