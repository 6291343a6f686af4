"""`comemory migrate`: bring the points of other collections under the schema."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import typer
from pydantic import ValidationError

from ops.cli import output
from ops.cli.execute import DONE, FAILED, PARTIAL
from ops.cli.migrate_output import show_counts, show_plan, show_report
from ops.cli.options import AsJson, SettingsFile, Yes, read_settings
from ops.cli.progress import progress
from ops.cli.sharing import takes
from ops.errors import SettingsError
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

T = TypeVar("T")

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
Replace = Annotated[
    bool,
    typer.Option(
        "--replace",
        help="Write over points that an earlier run made, after rules were mended; what was changed in them since "
        "is lost.",
    ),
]
DEFAULT_STATE = Path("comemory-migration")
DEFAULT_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Common:
    """What the three commands have in common: settings, rules, two sessions, a folder, progress and Ctrl-C."""

    rules: Rules = None
    folder: StateFolder = DEFAULT_STATE
    settings_file: SettingsFile = None
    source_url: SourceUrl = None
    source_key_file: SourceKeyFile = None
    tenant: Tenant = None
    target: Target = None
    zone: Zone = None
    created_at: CreatedAt = None
    origin: Origin = None
    collection: OneCollection = None
    batch: Batch = DEFAULT_BATCH

    @cached_property
    def settings(self) -> Settings:
        """The target's, and how jobs behave."""
        return read_settings(self.settings_file)

    @cached_property
    def migration(self) -> Migration:
        """The rules, with what the command line gives where they say nothing."""
        return read_migration(
            self.rules, tenant=self.tenant, target=self.target, zone=self.zone, created_at=self.created_at,
            origin=self.origin,
        )  # fmt: skip

    @cached_property
    def source(self) -> QdrantSettings:
        """The server that is read. Raises SettingsError for a URL that is none."""
        named = self.migration.source or self.settings.qdrant
        given = {"url": self.source_url, "api_key_file": self.source_key_file}
        over = {key: value for key, value in given.items() if value is not None}
        # Another server's key is not this one's, and a key that is given is the only one.
        before = named.model_dump(exclude={"api_key", "api_key_file"})
        try:
            return QdrantSettings.model_validate({**before, **over}) if over else named
        except ValidationError as error:
            raise SettingsError(f"--source-url: {error.errors(include_input=False)[0]['msg']}.") from None

    @cached_property
    def state(self) -> State:
        """Plan, checkpoint and quarantine of this migration between these two servers.

        One collection alone has a folder of its own, so that its run ends no other's and keeps its quarantine.
        """
        folder = self.folder if self.collection is None else self.folder / f"only-{quote(self.collection, safe='')}"
        return State(folder, self.migration.digest(f"{self.source.url} -> {self.settings.qdrant.url}"))

    def do(self, work: Callable[[Sides, State], T]) -> T:
        """Do some of it, with a session for each side."""
        settings, source, state = self.settings, self.source, self.state
        stop = threading.Event()

        def inside() -> T:
            with ExitStack() as stack:
                left = stack.enter_context(open_source(source, stop))
                right = stack.enter_context(connect(settings, stop=stop))
                show = stack.enter_context(progress())
                sides = Sides(left, right, self.migration.rules, self.batch, self.collection, stop, show)
                return work(sides, state)

        return run_interruptibly(inside, stop, output.ending)


@app.command()
@takes(Common)
def plan(common: Common, *, as_json: AsJson = False) -> None:
    """Look at every point of the source and say what would become of it; nothing is written but the plan's file.

    Exits with 3 when a point would go to quarantine, or a collection cannot be migrated.
    """
    found = common.do(lambda sides, state: _planned(sides, state, again=True))
    show_plan(found, as_json=as_json)
    raise typer.Exit(PARTIAL if any(one["refused"] or one["blocked"] for one in found["collections"]) else DONE)


@app.command()
@takes(Common)
def run(common: Common, *, replace: Replace = False, yes: Yes = False, as_json: AsJson = False) -> None:
    """Copy the points as the plan says; one is made first where none was kept. Run it again after any end.

    Points that are there stay as they are, unless --replace is given.

    Exits with 3 when points went to quarantine, or a part could not be done.
    """
    shown = yes and (as_json or common.state.plan() is not None)
    found = common.do(_planned)
    if not shown:
        show_plan(found, as_json=False)
    if not yes:
        if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise SettingsError("There is nobody to ask: give --yes to migrate this. Nothing was written.")
        points = sum(one["mapped"] for one in found["collections"])
        over = ", over those that are there" if replace else ""
        if not typer.confirm(f"Write these {points:,} points to {common.settings.qdrant.url}{over}?", err=True):
            output.tell("Nothing was written.")
            raise typer.Exit(DONE)

    def copy(sides: Sides, state: State) -> JobReport:
        if state.resume(replacing=replace):
            output.tell(f"Going on from {state.folder / CHECKPOINT}.")
        try:
            return run_migration(sides, state, found, common.settings)
        finally:
            state.close()

    result = common.do(copy)
    show_report(result, as_json=as_json)
    there = result.details.get("already_there", 0)
    if there and not replace:
        output.tell(
            f"{there:,} of them {'was' if there == 1 else 'were'} in the target already and stayed as before; "
            "`comemory migrate verify` shows what differs."
        )
    if result.skipped:
        who = "1 point has" if result.skipped == 1 else f"{result.skipped:,} points have"
        output.tell(f"{who} no place; see {common.state.folder / QUARANTINE} for each and its reason.")
    raise typer.Exit(_code(result))


@app.command()
@takes(Common)
def verify(common: Common, *, as_json: AsJson = False) -> None:
    """Read source and target again and compare counts per rule, ids, payloads and vectors; nothing is written.

    Exits with 1 when something differs, with 3 when all is equal but some points have no place.
    """
    result = common.do(lambda sides, state: verify_migration(sides, _planned(sides, state), common.settings))
    show_report(result, as_json=as_json)
    if not as_json:
        show_counts(result)
    raise typer.Exit(FAILED if result.rows else _code(result))


def _planned(sides: Sides, state: State, *, again: bool = False) -> dict[str, Any]:
    """The plan that was kept, or a new one."""
    kept = None if again else state.plan()
    if kept is not None:
        return kept
    made = make_plan(sides)
    state.keep_plan(made)
    return made


def _code(result: JobReport) -> int:
    if result.outcome == "failed":
        return FAILED
    return PARTIAL if result.outcome == "partial" or result.skipped else DONE
