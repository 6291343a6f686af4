"""What a job is: a name and one call that does a run and returns its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from ops.budget import Budget
from ops.errors import CollectionGone, OpsError
from ops.report import JobReport, Problem
from ops.session import Session
from ops.settings import CollectionsSettings, Settings


def utc_now() -> datetime:
    """The time by this machine's clock, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of the data a run is about; None means all of it."""

    collection: str | None = None
    tenant: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, for the terminal: `done` of `total` points (None: not known) of one collection."""

    collection: str
    step: str
    done: int
    total: int | None = None


@dataclass(slots=True)
class Context:
    """What a run is given: where, with which settings, limits and clock, and whom to tell."""

    session: Session
    settings: Settings
    budget: Budget = field(default_factory=Budget)
    selection: Selection = Selection()
    dry_run: bool = False
    now: Callable[[], datetime] = utc_now
    progress: Callable[[Progress], None] = lambda _: None


class Job(Protocol):
    """A job. What one collection did is never raised: it is a `Problem` of the report, and the next goes on."""

    name: str

    def run(self, context: Context) -> JobReport:
        """Do one run and say what was found and done."""


@contextmanager
def reporting(name: str, context: Context) -> Iterator[JobReport]:
    """A report stamped with start, end and traffic; an error that concerns the whole run becomes a problem."""
    report = JobReport(job=name, dry_run=context.dry_run, started=context.now())
    traffic = context.session.traffic
    requests, retries = traffic.requests, traffic.retries
    try:
        yield report
    except OpsError as error:
        report.problems.append(Problem(collection="", message=str(error)))
        report.missed.add("")
    finally:
        report.finished = context.now()
        report.requests = traffic.requests - requests
        report.retries = traffic.retries - retries


def looked_after(session: Session, settings: CollectionsSettings) -> list[str]:
    """The names of the collections on the server that the settings look after; aliases are followed, once."""
    names = session.collections()
    if {*settings.include, *settings.exclude} - {*names}:
        settings = settings.followed(session.aliases())
    return [name for name in names if settings.ours(name)]


def collections_of(context: Context, report: JobReport) -> Iterator[str]:
    """The collections a run is about, while the budget lasts: those the settings look after, or the one selected.

    Errors raised while one is worked on belong in `collection_errors`, so that the next one is still done.
    """
    wanted = context.selection.collection
    names = looked_after(context.session, context.settings.collections)
    if wanted is not None:
        wanted = context.session.aliases().get(wanted, wanted)
        if wanted not in names:
            there = wanted in context.session.collections()
            why = "is not one the settings look after" if there else "is not on the server"
            report.problems.append(Problem(wanted, f"Collection '{wanted}' {why}; nothing was done to it."))
            return
        names = [wanted]
    for place, name in enumerate(names):
        if report.stopped is None:
            report.stopped = context.budget.exhausted()
        if report.stopped is not None:
            report.missed.update(names[place:])
            return
        yield name


@contextmanager
def collection_errors(collection: str, report: JobReport) -> Iterator[None]:
    """Count a collection that was gone through; turn what it did otherwise into a problem of the report."""
    try:
        yield
        report.collections += 1
    except OpsError as error:
        report.problems.append(Problem(collection, str(error)))
        if not isinstance(error, CollectionGone):
            report.missed.add(collection)
