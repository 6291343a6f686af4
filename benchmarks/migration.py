"""What a migration costs beside a bare loop that scrolls and upserts, and how much memory it takes.

A million points of 64 numbers, as LangChain writes them, stand in ten collections. Each is copied by a bare loop as
it is, by a bare loop that writes what the migration writes (the mapping of which is not counted), and by
`comemory migrate run`, in one process of its own that had made the plan before: in turns, so that all meet whatever
else the machine does. The batch size is the same; the bare loops do not read ahead. The first of them tells what a
payload of the schema costs the server, the second what the tool adds. No target has payload indexes.

`MIGRATION_POINTS` makes it smaller, to try a change: the limits hold for a million.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from benchmarks.dataset import SERVER, connect, endpoint
from benchmarks.report import Row
from comemory.migration.mapping import Mapped, Mapper
from comemory.migration.rules import RuleSet
from ops import logs
from ops.migrate.copy import run_migration
from ops.migrate.plan import make_plan
from ops.migrate.sides import Sides
from ops.migrate.source import SourceSession
from ops.migrate.state import State
from ops.session import Session
from ops.settings import LogSettings, Settings

POINTS = int(os.environ.get("MIGRATION_POINTS", "1000000"))
SIZE = 64
BATCH = 500
TIMES_BARE = 1 / 0.7
MEGABYTES = 300
PARTS = 10
SOURCES = tuple(f"bench_old_docs_{part}" for part in range(PARTS))
BARE, NEW, TARGET = "cm_bench_64_v1", "cm_bench_64_v2", "cm_bench_64_v3"
DENSE = {"size": SIZE, "distance": "Dot"}


def rows() -> list[Row]:
    """The run as a multiple of the bare loop, and the most memory that its process took."""
    logs.configure(LogSettings(level="warning"))
    with tempfile.TemporaryDirectory() as name, _server(Path(name) / "data") as url, connect(url) as session:
        shapes = {**dict.fromkeys(SOURCES, DENSE), **{goal: {"dense": DENSE} for goal in (BARE, NEW, TARGET)}}
        for collection, vectors in shapes.items():
            session.request("DELETE", f"/collections/{collection}")
            session.request("PUT", f"/collections/{collection}", {"vectors": vectors})
        began = time.monotonic()
        for part, some in _batches():
            session.request("PUT", f"/collections/{SOURCES[part]}/points?wait=true", {"points": some})
        print(f"    loaded {POINTS:,} points in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        told = _in_turns(session, url, Path(name) / "state")
        if not session.count(TARGET) == session.count(BARE) == session.count(NEW) == POINTS:
            raise RuntimeError(f"{session.count(TARGET):,} points were migrated of {POINTS:,}")
        for collection in shapes:
            session.request("DELETE", f"/collections/{collection}")
    pace = f"{told['run']:.1f} s, {POINTS / told['run']:,.0f}/s, after a plan of {told['plan']:.1f} s"
    what = f"migration of {POINTS:,} points ({pace})"
    return [
        Row(
            f"{what} as a multiple of a bare loop that writes the same ({told['as_new']:.1f} s)",
            told["run"] / told["as_new"],
            TIMES_BARE,
            "x",
        ),
        Row(
            f"the same as a multiple of a bare loop that copies the old payload as it is ({told['as_is']:.1f} s)",
            told["run"] / told["as_is"],
            TIMES_BARE,
            "x",
        ),
        Row(f"most memory of the process that migrates {POINTS:,} points", told["megabytes"], MEGABYTES, "MB"),
    ]


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    if SERVER:
        yield SERVER
        return
    with endpoint(folder) as url:
        yield url


def _batches() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    chance = random.Random(5)
    vectors = [[round(chance.random(), 6) for _ in range(SIZE)] for _ in range(1000)]
    each = POINTS // PARTS
    for part in range(PARTS):
        last = POINTS if part == PARTS - 1 else (part + 1) * each
        for first in range(part * each, last, 2000):
            yield part, [_point(number, vectors[number % 1000]) for number in range(first, min(first + 2000, last))]


def _point(number: int, vector: list[float]) -> dict[str, Any]:
    return {
        "id": number,
        "vector": vector,
        "payload": {
            "page_content": f"Passage {number}: " + "what a document says about it. " * 10,
            "metadata": {
                "source": f"handbook-{number // 40}.md", "start_index": number % 40 * 400, "page": number % 40,
                "created_at": f"2025-03-{number % 28 + 1:02d}T09:30:00+02:00",
            },
        },
    }  # fmt: skip


Page = list[dict[str, Any]]


def _bare(session: Session, source: str, target: str, convert: Callable[[Page], Page]) -> float:
    """Seconds that scrolling and upserting take, without `convert`."""
    pages = session.scroll(source, payload=True, vector=True, page=BATCH)
    taken = 0.0
    while True:
        began = time.perf_counter()
        page = next(pages, None)
        taken += time.perf_counter() - began
        if page is None:
            return taken
        points = convert(page)
        began = time.perf_counter()
        session.request("PUT", f"/collections/{target}/points?wait=true", {"points": points})
        taken += time.perf_counter() - began


def _as_it_is(page: Page) -> Page:
    return [{**point, "vector": {"dense": point["vector"]}} for point in page]


def _as_migrated(source: str) -> Callable[[Page], Page]:
    mapper = Mapper(_rules(), source)

    def convert(page: Page) -> Page:
        outcomes = [(mapper.map(point["id"], point["payload"]), point["vector"]) for point in page]
        return [
            {"id": made.id, "vector": {"dense": vector}, "payload": made.payload}
            for made, vector in outcomes
            if isinstance(made, Mapped)
        ]

    return convert


def _rules() -> RuleSet:
    rule = {"name": "docs", "collections": "bench_old_docs_.*", "agent": "agt_helion", "scope": "docs"}
    return RuleSet(tenant="t_daarion", target=TARGET, rules=[rule])


def _in_turns(session: Session, url: str, folder: Path) -> dict[str, float]:
    """Seconds of each way over all parts (`plan`, `run`, `as_is`, `as_new`), and `megabytes` of the migration."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    # A fresh interpreter, so that its memory is the migration's alone.
    process = multiprocessing.get_context("spawn").Process(target=_migrate, args=(url, folder, there))
    process.start()
    there.close()
    try:
        told = {"plan": here.recv(), "run": 0.0, "as_is": 0.0, "as_new": 0.0}
        for source in SOURCES:
            told["as_is"] += _bare(session, source, BARE, _as_it_is)
            here.send(source)
            told["run"] += here.recv()
            told["as_new"] += _bare(session, source, NEW, _as_migrated(source))
        here.send(None)
        told["megabytes"] = here.recv()
    except EOFError:
        raise RuntimeError("the migrating process ended; its error is above") from None
    finally:
        here.close()
        process.join()
    return told


def _migrate(url: str, folder: Path, parent: Connection) -> None:
    """Make the plan; then migrate each collection that the parent names, and tell the seconds it took."""
    logs.configure(LogSettings(level="warning"))
    gc.freeze()  # as the command `comemory` does
    key = os.environ.get("QDRANT_API_KEY") if SERVER else None
    secret = SecretStr(key) if key else None
    with connect(url) as target, SourceSession(url, api_key=secret, timeout=600) as source:
        sides = Sides(source, target, _rules(), BATCH)
        began = time.perf_counter()
        plan = make_plan(sides)
        parent.send(time.perf_counter() - began)
        while (name := parent.recv()) is not None:
            state = State(folder / name, "benchmark")
            state.resume()
            sides.only = name
            began = time.perf_counter()
            report = run_migration(sides, state, plan, Settings())
            taken = time.perf_counter() - began
            state.close()
            if report.outcome != "success":
                raise RuntimeError(f"the migration did not succeed: {report.problems}")
            parent.send(taken)
        parent.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
