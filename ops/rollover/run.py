"""Bringing the new collection up to the old one, and checking whether it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from comemory.rollover import Step
from ops.jobs.base import Context, collection_errors, reporting
from ops.report import JobReport, Problem, merge_rows
from ops.rollover.catch_up import HELD_BACK, NO_TEXT, Found, Rollover
from ops.rollover.counts import compare
from ops.settings import Settings

PASSES = 10
"""How many passes a run makes, at most: who goes on writing faster than a pass reads is never caught up with."""


def run_rollover(work: Rollover, settings: Settings, *, passes: int = PASSES) -> JobReport:
    """Pass after pass until one finds nothing to do, or in a dry run one that writes nothing.

    The rows are the points by tenant, scope and what was done with them: of all passes what was written, of the
    last one what was left alone. `handled` is how many writes there were, `skipped` how many points were left
    alone. `details` has, under the new collection's name, `passes` (writes of each), `caught_up`, and `left`.
    """
    with reported("rollover run", work, settings) as report:
        catch_up(work, report, passes)
    return report


def catch_up(work: Rollover, report: JobReport, passes: int) -> None:
    """Passes until nothing is left to do, or in a dry run one that writes nothing; the report says what is left."""
    if work.dry_run:
        look(work, report)
        return
    for _ in work.passes(passes):
        pass
    unsettled(work, report)


def look(work: Rollover, report: JobReport) -> Found:
    """A pass that writes nothing; the report says so where it was asked to stop."""
    found = work.look()
    report.stopped = None if found.whole else work.budget.exhausted()
    return found


def check_rollover(work: Rollover, settings: Settings) -> JobReport:
    """A pass that only reads, and the exact counts of both sides; `clean` says whether anything was wrong."""
    with reported("rollover check", work, settings, dry_run=True) as report:
        check(work, look(work, report), report)
    return report


def check(work: Rollover, found: Found, report: JobReport) -> bool:
    """Whether a pass found nothing, counts agree by tenant and scope, and no index lacks; the report says it."""
    report.stopped = report.stopped or work.budget.exhausted()
    if report.stopped is not None:
        return False
    lines = compare(work.pair, found.own)
    clean = found.nil and all(line.right for line in lines)
    if fields := work.pair.unindexed:
        clean = False
        problem = (
            f"{work.pair.new} has no index on {', '.join(fields)} as {work.pair.old} has: what filters by that "
            "would be slow or refused. Declare it in the stack and run `pulumi up`."
        )
        report.problems.append(Problem(work.pair.new, problem))
    details = report.details.setdefault(work.pair.new, {})
    details |= {"clean": clean, "counts": [{**asdict(line), "right": line.right} for line in lines]}
    return clean


def clean(report: JobReport, work: Rollover) -> bool:
    """Whether a report that a check was a part of found nothing wrong."""
    return bool(report.details.get(work.pair.new, {}).get("clean")) and not report.problems


@contextmanager
def reported(name: str, work: Rollover, settings: Settings, *, dry_run: bool | None = None) -> Iterator[JobReport]:
    """A report of what the passes made within it, also of one that an error ended."""
    first = len(work.log)
    context = Context(work.pair.session, settings, dry_run=work.dry_run if dry_run is None else dry_run)
    with reporting(name, context) as report:
        try:
            with collection_errors(work.pair.new, report):
                yield report
        finally:
            _fill(report, work, work.log[first:])


def unsettled(work: Rollover, report: JobReport) -> None:
    """Say in the report what keeps the passes made so far from being the last."""
    last = work.log[-1]
    stopped = work.budget.exhausted()
    if stopped is not None and not last.nil:
        report.stopped = stopped
        return
    if last.changes or not last.whole:
        report.problems.append(
            Problem(
                work.pair.new,
                f"Pass {len(work.log)} still wrote {last.changes:,} points to {work.pair.new}: applications change "
                "them faster than a pass goes through. Run it again, at a quiet hour or with their writers paused.",
            )
        )
    if texts := last.count(NO_TEXT):
        report.problems.append(
            Problem(
                work.pair.new,
                f"{texts:,} of the points of {work.pair.old} have no text in `{work.pair.text}` and were not "
                "embedded; name the field that holds it with --text-field, or delete them.",
            )
        )
    if held := last.count(HELD_BACK):
        report.problems.append(
            Problem(
                work.pair.new,
                f"{held:,} of the copies have no point in {work.pair.old} any more, and were not removed: "
                "look whether that is meant, then give a higher --max-removals.",
            )
        )


def _fill(report: JobReport, work: Rollover, passes: list[Found]) -> None:
    if not passes:
        return
    name, last = work.pair.new, passes[-1]
    for step in (*Step, NO_TEXT, HELD_BACK):
        if step == Step.SAME:
            continue
        writes = isinstance(step, Step) and step.writes
        for found in passes if writes else [last]:
            report.rows += [tally.row(name, whose, str(step)) for whose, tally in found.steps.get(step, {}).items()]
    report.rows = merge_rows(report.rows)
    report.batches += sum(found.batches for found in passes)
    if not report.dry_run:
        report.handled += sum(found.changes for found in passes)
    report.skipped += sum(row.count for row in report.rows) - sum(found.changes for found in passes)
    details = report.details.setdefault(name, {})
    details |= {"passes": [found.changes for found in passes], "caught_up": last.nil, "left": last.left}
