"""`comemory migrate`: bring the points of other collections under the schema."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ops.cli import output
from ops.cli.execute import DONE, FAILED, PARTIAL
from ops.cli.options import AsJson, SettingsFile, Yes, read_settings
from ops.errors import SettingsError
from ops.jobs import base
from ops.jobs.registry import connect
from ops.migrate.config import Migration, read_migration
from ops.migrate.copy import run_migration
from ops.migrate.plan import make_plan
from ops.migrate.sides import Sides
from ops.migrate.source import open_source
from ops.migrate.state import CHECKPOINT, QUARANTINE, State
from ops.migrate.verify import verify_migration
from ops.report import JobReport
from ops.settings import QdrantSettings, Settings
from ops.signals import run_interruptibly

app = typer.Typer(no_args_is_help=True, help="Bring the points of other collections under the schema.")
TELL_SECONDS = 10.0

Rules = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help="The YAML file of rules; else the built-in ones alone."),
]
StateFolder = Annotated[
    Path, typer.Option("--state", metavar="DIR", help="Where plan, checkpoint and quarantine file are kept.")
]
SourceUrl = Annotated[
    str | None,
    typer.Option("--source-url", metavar="URL", help="The source's server; else the rules', else the target's."),
]
SourceKeyFile = Annotated[
    Path | None, typer.Option("--source-key-file", metavar="FILE", help="A file with the source's API key.")
]
Tenant = Annotated[
    str | None, typer.Option("--tenant", metavar="ID", help="The tenant, where a rule names none: t_daarion.")
]
Target = Annotated[
    str | None, typer.Option("--target", metavar="NAME", help="The target collection, where a rule names none.")
]
Zone = Annotated[
    str | None, typer.Option("--zone", metavar="ZONE", help="The time zone of times that name no offset.")
]
CreatedAt = Annotated[
    str | None, typer.Option("--created-at", metavar="TIME", help="When points were made that say no time.")
]
Origin = Annotated[
    str | None, typer.Option("--origin", metavar="NAME", help="What the source is called; part of every new id.")
]
OneCollection = Annotated[
    str | None, typer.Option("--collection", metavar="NAME", help="Only this collection of the source.")
]
Batch = Annotated[
    int, typer.Option("--batch", metavar="N", min=1, max=10_000, help="Points of one page and one upsert.")
]
DEFAULT_STATE = Path("comemory-migration")
DEFAULT_BATCH = 500


@app.command()
def plan(
    *,
    rules: Rules = None,
    state: StateFolder = DEFAULT_STATE,
    settings_file: SettingsFile = None,
    source_url: SourceUrl = None,
    source_key_file: SourceKeyFile = None,
    tenant: Tenant = None,
    target: Target = None,
    zone: Zone = None,
    created_at: CreatedAt = None,
    origin: Origin = None,
    collection: OneCollection = None,
    batch: Batch = DEFAULT_BATCH,
    as_json: AsJson = False,
) -> None:
    """Look at every point of the source and say what would become of it; nothing is written but the plan's file.

    Exits with 3 when a point would go to quarantine, or a collection cannot be migrated.
    """
    over = {"tenant": tenant, "target": target, "zone": zone, "created_at": created_at, "origin": origin}
    work = _Work(read_settings(settings_file), read_migration(rules, **over), state, source_url, source_key_file)
    found = work.do(lambda sides, kept: _planned(sides, kept, again=True), collection, batch)
    _show(found, as_json=as_json)
    raise typer.Exit(PARTIAL if _in_part(found) else DONE)


@app.command()
def run(
    *,
    rules: Rules = None,
    state: StateFolder = DEFAULT_STATE,
    settings_file: SettingsFile = None,
    source_url: SourceUrl = None,
    source_key_file: SourceKeyFile = None,
    tenant: Tenant = None,
    target: Target = None,
    zone: Zone = None,
    created_at: CreatedAt = None,
    origin: Origin = None,
    collection: OneCollection = None,
    batch: Batch = DEFAULT_BATCH,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Copy the points as the plan says; one is made first where none was kept. Run it again after any end.

    Exits with 3 when points went to quarantine, or a part could not be done.
    """
    over = {"tenant": tenant, "target": target, "zone": zone, "created_at": created_at, "origin": origin}
    work = _Work(read_settings(settings_file), read_migration(rules, **over), state, source_url, source_key_file)
    shown = yes and (as_json or work.state.plan() is not None)
    found = work.do(_planned, collection, batch)
    if not shown:
        _show(found, as_json=False)
    if not yes:
        if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise SettingsError("There is nobody to ask: give --yes to migrate this. Nothing was written.")
        points = sum(one["mapped"] for one in found["collections"])
        if not typer.confirm(f"Write these {points:,} points to {work.settings.qdrant.url}?", err=True):
            output.tell("Nothing was written.")
            raise typer.Exit(DONE)

    def copy(sides: Sides, kept: State) -> JobReport:
        if kept.resume():
            output.tell(f"Going on from {kept.folder / CHECKPOINT}.")
        try:
            return run_migration(sides, kept, found, work.settings)
        finally:
            kept.close()

    result = work.do(copy, collection, batch)
    _report(result, as_json=as_json)
    if result.skipped:
        who = "1 point has" if result.skipped == 1 else f"{result.skipped:,} points have"
        output.tell(f"{who} no place; see {state / QUARANTINE} for each and its reason.")
    raise typer.Exit(_code(result))


@app.command()
def verify(
    *,
    rules: Rules = None,
    state: StateFolder = DEFAULT_STATE,
    settings_file: SettingsFile = None,
    source_url: SourceUrl = None,
    source_key_file: SourceKeyFile = None,
    tenant: Tenant = None,
    target: Target = None,
    zone: Zone = None,
    created_at: CreatedAt = None,
    origin: Origin = None,
    collection: OneCollection = None,
    batch: Batch = DEFAULT_BATCH,
    as_json: AsJson = False,
) -> None:
    """Read source and target again and compare counts per rule, ids, payloads and vectors; nothing is written.

    Exits with 1 when something differs, with 3 when all is equal but some points have no place.
    """
    over = {"tenant": tenant, "target": target, "zone": zone, "created_at": created_at, "origin": origin}
    work = _Work(read_settings(settings_file), read_migration(rules, **over), state, source_url, source_key_file)
    result = work.do(
        lambda sides, kept: verify_migration(sides, _planned(sides, kept), work.settings), collection, batch
    )
    _report(result, as_json=as_json)
    if not as_json:
        _counts(result)
    raise typer.Exit(FAILED if result.rows else _code(result))


class _Work:
    """What the three have in common: settings, rules, two sessions, a folder, progress and Ctrl-C."""

    def __init__(
        self, settings: Settings, migration: Migration, state: Path, source_url: str | None, key_file: Path | None
    ) -> None:
        self.settings, self.migration = settings, migration
        self.source = migration.source or settings.qdrant
        given = {"url": source_url, "api_key_file": key_file}
        if any(value is not None for value in given.values()):
            over = {key: value for key, value in given.items() if value is not None}
            # Another server's key is not this one's.
            before = (
                self.source.model_dump(exclude={"api_key", "api_key_file"}) if source_url else dict(self.source)
            )
            try:
                self.source = QdrantSettings.model_validate({**before, **over})
            except ValidationError as error:
                raise SettingsError(f"--source-url: {error.errors()[0]['msg']}.") from None
        place = f"{self.source.url} -> {settings.qdrant.url}"
        self.state = State(state, migration.digest(place))

    def do(self, work: Callable[[Sides, State], Any], collection: str | None, batch: int) -> Any:
        """Do some of it, with a session for each side."""
        stop = threading.Event()

        def inside() -> Any:
            with ExitStack() as stack:
                source = stack.enter_context(open_source(self.source, stop))
                target = stack.enter_context(connect(self.settings, stop=stop))
                show = stack.enter_context(_progress())
                return work(Sides(source, target, self.migration.rules, batch, collection, stop, show), self.state)

        said = "Ending after the batch under way; once more ends at once."
        return run_interruptibly(inside, stop, lambda: output.tell(said))


def _planned(sides: Sides, state: State, *, again: bool = False) -> dict[str, Any]:
    """The plan that was kept, or a new one; one of a single collection is not kept."""
    kept = None if again else state.plan()
    if kept is not None and (
        sides.only is None or any(one["collection"] == sides.only for one in kept["collections"])
    ):
        return kept
    made = make_plan(sides)
    if sides.only is None:
        state.keep_plan(made)
    return made


def _in_part(plan: Mapping[str, Any]) -> bool:
    return any(one["refused"] or one["blocked"] for one in plan["collections"])


def _code(result: JobReport) -> int:
    if result.outcome == "failed":
        return FAILED
    return PARTIAL if result.outcome == "partial" or result.skipped else DONE


def _show(plan: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json({"format": 1, **plan})
        return
    rows = [
        (
            one["collection"],
            f"{one['points']:,}",
            ", ".join(f"{shape} {count:,}" for shape, count in one["shapes"].items()) or "none",
            "0" if one["blocked"] else f"{one['mapped']:,}",
            "0" if one["blocked"] else f"{sum(one['refused'].values()):,}",
            f"{one['left_out']:,}",
        )
        for one in plan["collections"]
    ]
    output.table(
        ("collection", "points", "shapes found", "migrated", "quarantined", "left out"),
        rows,
        right=("points", "migrated", "quarantined", "left out"),
    )
    ways = [
        (
            one["collection"], way["rule"], way["target"], way["tenant"], way["scope"],
            f"{way['visibility']}, owner: {way['owner_kind']}", f"{way['count']:,}",
        )
        for one in plan["collections"] if not one["blocked"] for way in one["rules"]
    ]  # fmt: skip
    if ways:
        output.console().print()
        output.table(
            ("collection", "rule", "target", "tenant", "scope", "who reads", "how many"), ways, right=["how many"]
        )
    reasons = [
        (one["collection"], code, f"{count:,}", (one["examples"].get(code) or [""])[0])
        for one in plan["collections"] if not one["blocked"] for code, count in one["refused"].items()
    ]  # fmt: skip
    if reasons:
        output.console().print()
        output.table(("collection", "no place because", "how many", "first"), reasons, right=["how many"])
    for one in plan["collections"]:
        if one["blocked"]:
            output.tell(f"{one['collection']} cannot be migrated: {one['blocked']}.")
    if plan["others"]:
        output.tell(f"No rule is about {', '.join(plan['others'])}; left alone.")


def _report(result: JobReport, *, as_json: bool) -> None:
    if as_json:
        output.print_json(result.to_json())
    else:
        output.report(result)


def _counts(result: JobReport) -> None:
    rows = [
        (collection, rule, f"{count['source']:,}", f"{count['target']:,}")
        for collection, details in result.details.items() for rule, count in (details.get("rules") or {}).items()
    ]  # fmt: skip
    output.table(("collection", "rule", "source", "target"), rows, right=("source", "target"))
    for collection, details in result.details.items():
        digests = details.get("digests")
        if digests is not None:
            same = "equal" if digests["source"] == digests["target"] else "different"
            output.console().print(
                f"{collection}: digests of ids, payloads and vectors are {same} ({digests['source'][:16]})",
                markup=False,
            )


@contextmanager
def _progress() -> Iterator[Callable[[base.Progress], None]]:
    """Progress on stderr with rate and time left: a bar on a terminal, else a line every ten seconds."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    rate = TextColumn("{task.fields[rate]}")
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    tasks: dict[tuple[str, str], Any] = {}
    paces: dict[tuple[str, str], _Pace] = {}

    def show(step: base.Progress) -> None:
        key = (step.collection, step.step)
        if key not in tasks:
            tasks[key] = bars.add_task(f"{step.collection} {step.step}", total=step.total, rate="")
            paces[key] = _Pace(step.done)
        bars.update(tasks[key], completed=step.done, total=step.total, rate=f"{paces[key].rate(step.done):,.0f}/s")

    with bars:
        yield show


class _Pace:
    """Points per second since the first one told."""

    def __init__(self, done: int) -> None:
        self._began, self._before = time.monotonic(), done

    def rate(self, done: int) -> float:
        elapsed = time.monotonic() - self._began
        return (done - self._before) / elapsed if elapsed > 0 else 0.0


class _Lines:
    """Progress for a file: `nutra_messages: copying 120,000 of 1,000,000, 8,100/s, 1 min 49 s left`."""

    def __init__(self) -> None:
        self._paces: dict[tuple[str, str], _Pace] = {}
        self._told = time.monotonic()

    def __call__(self, step: base.Progress) -> None:
        pace = self._paces.setdefault((step.collection, step.step), _Pace(step.done))
        now = time.monotonic()
        if now - self._told < TELL_SECONDS:
            return
        self._told = now
        rate = pace.rate(step.done)
        left = round((step.total or step.done) - step.done)
        time_left = f", {_span(left / rate)} left" if rate else ""
        output.tell(
            f"{step.collection}: {step.step} {step.done:,} of {step.total or step.done:,}, {rate:,.0f}/s{time_left}"
        )


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
