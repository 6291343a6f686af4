"""What the `dedup` job costs, beside a bare scroll that reads nothing but `fingerprint`, and the memory it takes.

One point in twenty is a copy. The bare scroll is raw REST, one page of 5,000 after another, decoded and thrown
away. The full run is measured as a dry run, which finds and decides everything, and as a run that also deletes:
that one beside the scroll and a deletion of as many points by nothing but their ids.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from benchmarks.dataset import COPIES, NAME, NOW, POINTS, ROOT, connect, fresh, load
from benchmarks.report import Row
from comemory.duplicates import fingerprint_hash
from ops import logs
from ops.jobs.base import Context
from ops.jobs.dedup import PAGE, DedupJob
from ops.jobs.dedup_state import DedupState
from ops.jobs.groups import PointGroups
from ops.report import JobReport
from ops.session import Session
from ops.settings import DedupSettings, LogSettings, Settings

TIMES_BARE = 1.5
PART_OF_FULL = 0.05
NEW_POINTS = 0.01
MEGABYTES = 200.0
MILLION = 1_000_000


def rows() -> list[Row]:
    """The full run as a multiple of the scroll, the incremental one as a part of it, and the peak of memory."""
    logs.configure(LogSettings(level="warning"))
    state = DedupState()
    full, incremental = DedupJob("full", state=state), DedupJob("incremental", state=state)
    with fresh() as session:
        bare = _seconds(lambda: _scroll(session))
        dry = _seconds(lambda: _run(session, full, dry_run=True))
        peak = _peak(session.url)
        deleting = _seconds(lambda: _run(session, full))
        load(session, POINTS, int(POINTS * NEW_POINTS), age=timedelta(hours=-1))
        later = NOW + timedelta(hours=2)
        whole = _seconds(lambda: _run(session, full, dry_run=True, now=later))
        some = _seconds(lambda: _run(session, incremental, now=later))
        deletes = _seconds(lambda: _delete(session, POINTS // COPIES))
    what = f"dedup of {POINTS:,} points"
    return [
        Row(
            f"{what}, full ({dry:.1f} s), as a multiple of a bare scroll of fingerprints ({bare:.1f} s)",
            dry / bare,
            TIMES_BARE,
            "x",
        ),
        Row(
            f"{what}, full, with the copies deleted ({deleting:.1f} s), as a multiple of that scroll and of "
            f"deleting as many points by id ({deletes:.1f} s)",
            deleting / (bare + deletes),
            TIMES_BARE,
            "x",
        ),
        Row(
            f"{what}, incremental with 1 % new ({some:.2f} s), as a part of a full run ({whole:.1f} s)",
            some / whole,
            PART_OF_FULL,
            "x",
        ),
        Row("dedup of 1,000,000 points: highest memory of the whole process", peak, MEGABYTES, "MB"),
    ]


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _scroll(session: Session) -> None:
    for _ in session.scroll(NAME, payload=("fingerprint",), page=PAGE):
        pass


def _delete(session: Session, number: int) -> None:
    """Delete as many points as there were copies, in batches of the same size, by nothing but their ids."""
    batch = DedupSettings().batch
    for page in session.scroll(NAME, page=batch):
        ids = [point["id"] for point in page[: min(batch, number)]]
        session.request("POST", f"/collections/{NAME}/points/delete?wait=true", {"points": ids})
        number -= len(ids)
        if not number:
            return


def _run(session: Session, job: DedupJob, *, dry_run: bool = False, now: datetime = NOW) -> JobReport:
    settings = Settings(collections={"include": (NAME,)}, dedup={"points_per_second": None})
    report = job.run(Context(session=session, settings=settings, now=lambda: now, dry_run=dry_run))
    if report.outcome != "success" or not report.found:
        raise RuntimeError(f"the job found {report.found} copies and says {report.problems}")
    return report


def _peak(url: str) -> float:
    """Megabytes that a process of its own needed at most."""
    arguments = [sys.executable, "-m", "benchmarks.dedup", url]
    return float(subprocess.run(arguments, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def measure_memory(url: str) -> float:
    """The highest memory, in MB, of a full run followed by one over a million points.

    The points of the collection are read until a million have been, each time with other ids and other
    fingerprints, so that all of them are held at once; one in twenty is a copy. What is read of candidates does not
    grow with their number, so the run before stands for it.
    """
    logs.configure(LogSettings(level="warning"))
    with connect(url) as session:
        _run(session, DedupJob("full"), dry_run=True)
        groups = PointGroups()
        turn = 0
        while len(groups) < MILLION:
            turn += 1
            for page in session.scroll(NAME, payload=("fingerprint",), page=PAGE):
                coded = []
                for point in page:
                    code = fingerprint_hash(point["payload"]["fingerprint"])
                    if code is not None:
                        coded.append((code ^ turn, f"{turn:08x}{point['id'][8:]}"))
                groups.add(coded)
        copies = sum(len(groups.ids(places)) for places in groups.shared())
    if copies < len(groups) // 20:
        raise RuntimeError(f"{copies} candidates in {len(groups)} points are too few to measure by")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(measure_memory(sys.argv[1]))
