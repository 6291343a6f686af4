"""The options of `comemory rollover`, and the parts that its commands work with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from ops.budget import Budget
from ops.cli import output
from ops.cli.options import SettingsFile, read_settings
from ops.cli.progress import progress
from ops.errors import SettingsError
from ops.jobs.base import Progress
from ops.jobs.registry import connect
from ops.rollover.catch_up import Rollover
from ops.rollover.embed_command import Command
from ops.rollover.embedding import Embed, Embedder, Function
from ops.rollover.pair import Anew, Pair, open_pair
from ops.rollover.run import PASSES
from ops.rollover.state import State
from ops.rollover.switch import is_switched
from ops.session import Session
from ops.settings import Settings
from ops.signals import run_interruptibly

T = TypeVar("T")
DEFAULT_STATE = Path("comemory-rollover")

OldName = Annotated[str, typer.Argument(metavar="OLD", help="The collection in use, such as cm_text_1024_v1.")]
NewName = Annotated[str, typer.Argument(metavar="NEW", help="The one that takes its place; it is there already.")]
StateFolder = Annotated[
    Path, typer.Option("--state", metavar="DIR", help="Where the checkpoint is kept, and which points OLD had.")
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", metavar="N", min=1, max=10_000, help="Points of one page and one upsert.")
]
Rate = Annotated[
    float | None, typer.Option("--rate", metavar="N", min=0.1, help="Write no faster than N points a second.")
]
EmbedCommand = Annotated[
    str | None,
    typer.Option(
        "--embed-command",
        metavar="CMD",
        help="Make vectors by this: a JSON text a line in, a JSON list a line out.",
    ),
]
EmbedFunction = Annotated[
    str | None,
    typer.Option(
        "--embed",
        metavar="MODULE:FUNCTION",
        help="Make vectors by this: a list of texts in, a list of lists of numbers out.",
    ),
]
TextField = Annotated[str, typer.Option("--text-field", metavar="FIELD", help="The field that holds the text.")]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="What makes the vectors; else what NEW's metadata says."),
]
EmbedBatch = Annotated[
    int, typer.Option("--embed-batch", metavar="N", min=1, max=10_000, help="Texts embedded at a time.")
]
EmbedTimeout = Annotated[
    float, typer.Option("--embed-timeout", metavar="S", min=0.1, help="Seconds that CMD may take for a batch.")
]
Passes = Annotated[int, typer.Option("--passes", metavar="N", min=1, help="Make at most N passes.")]
Removals = Annotated[
    int, typer.Option("--max-removals", metavar="N", min=0, help="Remove at most N copies whose point OLD lost.")
]
AliasName = Annotated[
    str | None,
    typer.Option("--alias", metavar="NAME", help="The alias applications use; else the only one there is."),
]


@dataclass(frozen=True, kw_only=True)
class Collections:
    """The two collections and how they are reached."""

    old: OldName
    new: NewName
    folder: StateFolder = DEFAULT_STATE
    settings_file: SettingsFile = None
    batch: BatchSize = 500
    rate: Rate = None

    @cached_property
    def settings(self) -> Settings:
        """Where the server is."""
        return read_settings(self.settings_file)

    def do(self, work: Callable[[Place], T], *, reading: bool) -> T:
        """Do some of it, with the folder, a session, and Ctrl-C."""
        settings, stop = self.settings, threading.Event()

        def inside() -> T:
            with ExitStack() as stack:
                url = settings.qdrant.url
                state = stack.enter_context(State(self.folder, url, self.old, self.new, reading=reading))
                session = stack.enter_context(connect(settings, stop=stop))
                show = stack.enter_context(progress())
                budget = Budget(points_per_second=self.rate, stop=stop)
                return work(Place(session, state, budget, stop, show, stack))

        return run_interruptibly(inside, stop, output.ending)


@dataclass(frozen=True, slots=True)
class Place:
    """What a command works with."""

    session: Session
    state: State
    budget: Budget
    stop: threading.Event
    progress: Callable[[Progress], None]
    stack: ExitStack


@dataclass(frozen=True, kw_only=True)
class Work(Collections):
    """What the commands that go through both collections have besides."""

    embed_command: EmbedCommand = None
    embed: EmbedFunction = None
    text_field: TextField = "text"
    model: Model = None
    embed_batch: EmbedBatch = 64
    embed_timeout: EmbedTimeout = 120.0
    removals: Removals = 1000
    passes: Passes = PASSES

    def rollover(self, work: Callable[[Rollover], T], *, reading: bool) -> T:
        """Do some of it, with an embedder where one is needed; `reading` writes nothing."""

        def inside(place: Place) -> T:
            state = place.state
            anew = self._anew(state, reading=reading)
            pair = open_pair(place.session, self.old, self.new, anew)
            if pair.left_out:
                output.tell(f"{pair.new} has no place for {', '.join(pair.left_out)} of {pair.old}; left out.")
            embedder = None
            if not reading:
                state.embed(None if anew is None else asdict(anew))
                if anew is not None:
                    embedder = place.stack.enter_context(closing(self._embedder(pair, place.stop)))
            switched = is_switched(place.session, self.old, self.new, state.switched)
            return work(
                Rollover(
                    pair,
                    state,
                    place.budget,
                    embedder,
                    self.batch,
                    self.removals,
                    reading,
                    switched,
                    place.progress,
                )
            )

        return self.do(inside, reading=reading)

    def _anew(self, state: State, *, reading: bool) -> Anew | None:
        """How vectors are made: as the options say, or where nothing is written as it was begun."""
        if self.embed_command is not None and self.embed is not None:
            raise SettingsError("--embed-command and --embed: give one of them.")
        if self.embed_command is not None or self.embed is not None:
            return Anew(self.text_field, self.model)
        if state.anew is not None and not reading:
            raise SettingsError(
                f"This rollover makes vectors anew, as {self.folder} says: give --embed-command or --embed again, "
                "or another --state. Nothing was done."
            )
        return begun(state)

    def _embedder(self, pair: Pair, stop: threading.Event) -> Embedder:
        made: Embed = (
            Function(self.embed or "")
            if self.embed_command is None
            else Command(self.embed_command, pair.size, timeout=self.embed_timeout)
        )
        return Embedder(made, pair.size, batch=self.embed_batch, stop=stop)


def begun(state: State) -> Anew | None:
    """How vectors are made in a rollover that was begun."""
    return None if state.anew is None else Anew(state.anew["field"] or "", state.anew["model"])
