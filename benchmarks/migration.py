"""What a migration costs beside a bare loop that scrolls and upserts, and how much memory it takes.

A million points of 64 numbers, as LangChain writes them, are copied once by the bare loop (the payload as it is,
with the same batch size, and no reading ahead) and once by `comemory migrate run`, in a process of its own, after a
plan was made. Neither target has payload indexes, since the old payload has nothing that they would index.

`MIGRATION_POINTS` makes it smaller, to try a change: the limits hold for a million.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from benchmarks.dataset import SERVER, connect, endpoint
from benchmarks.report import Row
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
SOURCE, BARE, TARGET = "bench_old_docs", "cm_bench_64_v1", "cm_bench_64_v2"
DENSE = {"size": SIZE, "distance": "Dot"}


def rows() -> list[Row]:
    """The run as a multiple of the bare loop, and the most memory that its process took."""
    logs.configure(LogSettings(level="warning"))
    with tempfile.TemporaryDirectory() as name, _server(Path(name) / "data") as url, connect(url) as session:
        for collection, vectors in ((SOURCE, DENSE), (BARE, {"dense": DENSE}), (TARGET, {"dense": DENSE})):
            session.request("DELETE", f"/collections/{collection}")
            session.request("PUT", f"/collections/{collection}", {"vectors": vectors})
        began = time.monotonic()
        for some in _batches():
            session.request("PUT", f"/collections/{SOURCE}/points?wait=true", {"points": some})
        print(f"    loaded {POINTS:,} points in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        began = time.perf_counter()
        _bare(session)
        bare = time.perf_counter() - began
        told = _in_a_process(url, Path(name) / "state")
        there = session.count(TARGET)
        if there != POINTS or session.count(BARE) != POINTS:
            raise RuntimeError(f"the target has {there:,} points, the source {POINTS:,}")
        for collection in (SOURCE, BARE, TARGET):
            session.request("DELETE", f"/collections/{collection}")
    pace = f"{told['run']:.1f} s, {POINTS / told['run']:,.0f}/s, after a plan of {told['plan']:.1f} s"
    what = f"migration of {POINTS:,} points ({pace})"
    return [
        Row(
            f"{what} as a multiple of a bare scroll and upsert ({bare:.1f} s)", told["run"] / bare, TIMES_BARE, "x"
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


def _batches() -> Iterator[list[dict[str, Any]]]:
    chance = random.Random(5)
    vectors = [[round(chance.random(), 6) for _ in range(SIZE)] for _ in range(1000)]
    for first in range(0, POINTS, 2000):
        yield [
            {
                "id": number,
                "vector": vectors[number % 1000],
                "payload": {
                    "page_content": f"Passage {number}: " + "what a document says about it. " * 10,
                    "metadata": {
                        "source": f"handbook-{number // 40}.md", "start_index": number % 40 * 400,
                        "page": number % 40,
                        "created_at": f"2025-03-{number % 28 + 1:02d}T09:30:00+02:00",
                    },
                },
            }
            for number in range(first, min(first + 2000, POINTS))
        ]  # fmt: skip


def _bare(session: Session) -> None:
    for page in session.scroll(SOURCE, payload=True, vector=True, page=BATCH):
        points = [{**point, "vector": {"dense": point["vector"]}} for point in page]
        session.request("PUT", f"/collections/{BARE}/points?wait=true", {"points": points})


def _in_a_process(url: str, folder: Path) -> dict[str, float]:
    """A fresh interpreter, so that its memory is the migration's alone."""
    context = multiprocessing.get_context("spawn")
    answer = context.SimpleQueue()
    process = context.Process(target=_migrate, args=(url, folder, answer))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the migration ended with {process.exitcode}; its error is above")
    told: dict[str, float] = json.loads(answer.get())
    return told


def _migrate(url: str, folder: Path, answer: Any) -> None:
    logs.configure(LogSettings(level="warning"))
    gc.freeze()  # as the command `comemory` does
    rule = {"name": "docs", "collections": SOURCE, "agent": "agt_helion", "scope": "docs"}
    rules = RuleSet(tenant="t_daarion", target=TARGET, rules=[rule])
    key = os.environ.get("QDRANT_API_KEY") if SERVER else None
    with connect(url) as target, SourceSession(url, api_key=SecretStr(key) if key else None, timeout=600) as source:
        sides = Sides(source, target, rules, BATCH)
        began = time.perf_counter()
        plan = make_plan(sides)
        planned = time.perf_counter() - began
        state = State(folder, "benchmark")
        state.resume()
        began = time.perf_counter()
        report = run_migration(sides, state, plan, Settings())
        taken = time.perf_counter() - began
        state.close()
    if report.outcome != "success" or report.handled != POINTS:
        raise RuntimeError(f"the migration did not succeed: {report.problems}, {report.handled} points")
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer.put(json.dumps({"plan": planned, "run": taken, "megabytes": megabytes}))
