"""Two collections as `pulumi up` makes them, and a rollover between them, step by step as processes do it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient
from qdrant_client import models as m

from comemory.rollover import MARKER
from ops.budget import Budget
from ops.report import JobReport
from ops.rollover.catch_up import Rollover
from ops.rollover.embedding import Embedder
from ops.rollover.pair import Anew, open_pair
from ops.rollover.run import check_rollover, run_rollover
from ops.rollover.state import State
from ops.rollover.switch import after, is_switched, prepare, switch
from ops.session import Session
from ops.settings import Settings
from tests.comemory.payloads import good_payload
from tests.conftest import SERVER_KEY
from tests.support.memory import memory


def payload(**changes: Any) -> dict[str, Any]:
    """A good payload; what is None is left out."""
    return {key: value for key, value in good_payload(**changes).items() if value is not None}


def vector(number: int) -> list[float]:
    """A vector of four numbers that no other number gives."""
    return [1.0, 0.001 * (number % 1000), 0.001 * (number // 1000), 0.0]


@dataclass
class Sides:
    """Both collections and an alias that names the old one.

    Each step opens a session and the folder anew, as a process does.
    """

    url: str
    client: QdrantClient
    old: str
    new: str
    alias: str
    folder: Path
    anew: Anew | None = None
    embed: Callable[[Session], Embedder] | None = None
    batch: int = 500
    removals: int = 1000
    stop: threading.Event = field(default_factory=threading.Event)
    told: list[Any] = field(default_factory=list)

    @contextmanager
    def work(self, *, reading: bool = False, session: Callable[..., Session] = Session) -> Iterator[Rollover]:
        with ExitStack() as stack:
            state = stack.enter_context(State(self.folder, self.url, self.old, self.new, reading=reading))
            there = stack.enter_context(session(self.url, api_key=SERVER_KEY, retry_for=30))
            pair = open_pair(there, self.old, self.new, self.anew)
            embedder = self.embed(there) if self.embed is not None and not reading else None
            switched = is_switched(there, self.old, self.new, state.switched)
            yield Rollover(
                pair, state, Budget(stop=self.stop), embedder, self.batch, self.removals, reading, switched,
                self.told.append, save_seconds=0,
            )  # fmt: skip

    def run(self, passes: int = 10, *, session: Callable[..., Session] = Session) -> JobReport:
        with self.work(session=session) as work:
            return run_rollover(work, Settings(), passes=passes)

    def dry_run(self) -> JobReport:
        with self.work(reading=True) as work:
            return run_rollover(work, Settings())

    def check(self) -> JobReport:
        with self.work(reading=True) as work:
            return check_rollover(work, Settings())

    def switch(self, between: Callable[[], None] = lambda: None) -> tuple[JobReport, JobReport]:
        """Prepare, and switch; `between` is what applications do after the check."""
        with self.work() as work:
            before = prepare(work, Settings())
            between()
            return before, switch(work, Settings(), self.alias)

    def after(self) -> JobReport:
        with self.work() as work:
            return after(work, Settings())

    # --- what applications do ----------------------------------------------------------------------------------

    def put(self, name: str, point_id: int | str, made: Mapping[str, Any], number: int | None = None) -> None:
        where = vector(number if number is not None else point_id if isinstance(point_id, int) else 0)
        self.client.upsert(
            name, [m.PointStruct(id=point_id, vector={"dense": where}, payload=dict(made))], wait=True
        )

    def set(self, name: str, point_id: int | str, **fields: Any) -> None:
        self.client.set_payload(name, fields, [point_id], wait=True)

    def delete(self, name: str, *ids: int | str) -> None:
        self.client.delete(name, list(ids), wait=True)

    def clear(self) -> None:
        """Empty both, and let the alias name the old one again."""
        for name in (self.old, self.new):
            self.client.delete(name, m.FilterSelector(filter=m.Filter(must=[])), wait=True)
        self.point(self.old)

    def point(self, name: str) -> None:
        """Let the alias name a collection."""
        self.client.update_collection_aliases(
            [
                m.DeleteAliasOperation(delete_alias=m.DeleteAlias(alias_name=self.alias)),
                m.CreateAliasOperation(create_alias=m.CreateAlias(collection_name=name, alias_name=self.alias)),
            ]
        )

    # --- what is there -----------------------------------------------------------------------------------------

    def points(self, name: str) -> dict[int | str, dict[str, Any]]:
        """Payloads by id, without markers."""
        found, _ = self.client.scroll(name, limit=10_000, with_payload=True)
        return {one.id: {k: v for k, v in (one.payload or {}).items() if k != MARKER} for one in found}

    def vectors(self, name: str) -> dict[int | str, Any]:
        found, _ = self.client.scroll(name, limit=10_000, with_payload=False, with_vectors=True)
        return {one.id: one.vector for one in found}

    def markers(self) -> dict[int | str, dict[str, Any]]:
        found, _ = self.client.scroll(self.new, limit=10_000, with_payload=[MARKER])
        return {one.id: one.payload[MARKER] for one in found if one.payload}

    def target(self) -> str:
        """What the alias names."""
        return next(a.collection_name for a in self.client.get_aliases().aliases if a.alias_name == self.alias)


@contextmanager
def two_sides(client: QdrantClient, url: str, folder: Path, **more: Any) -> Iterator[Sides]:
    """Two empty collections; `more` is about the new one."""
    with memory(client) as old, memory(client, **more) as new:
        alias = f"test_{uuid.uuid4().hex[:12]}"
        client.update_collection_aliases(
            [m.CreateAliasOperation(create_alias=m.CreateAlias(collection_name=old.name, alias_name=alias))]
        )
        try:
            yield Sides(url, client, old.name, new.name, alias, folder)
        finally:
            client.update_collection_aliases([m.DeleteAliasOperation(delete_alias=m.DeleteAlias(alias_name=alias))])


def reasons(report: JobReport) -> dict[str, int]:
    """How many points by what was done with them."""
    found: dict[str, int] = {}
    for row in report.rows:
        found[row.reason] = found.get(row.reason, 0) + row.count
    return found
