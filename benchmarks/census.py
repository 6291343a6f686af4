"""What the census and a scrape cost: 200,000 points of 1,000 tenants, beside counting each tenant and scope singly.

Singly: for every tenant and scope an exact count of its points and one of those that are expired, as is written by
hand today, over the same connection. A sample of them, evenly spread, is timed and scaled to all 5,000 pairs. The
census gives the same numbers, and besides what will expire, the oldest, vectors, and drift.

Scrapes are by HTTP from the daemon's own server, with nothing else to do, and of more than 5,000 series.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import httpx

from benchmarks.dataset import NAME, NOW, POINTS, TENANTS, TTL_DAYS, fresh
from benchmarks.report import Row
from comemory.filters import every, matches
from comemory.payload import SCOPES
from comemory.retention import due_filter
from ops.exposition import Exposition
from ops.http import HttpServer, application
from ops.jobs.base import Context
from ops.jobs.census import CensusJob
from ops.results import Results
from ops.session import Session
from ops.settings import HttpSettings, Settings
from ops.snapshot import SnapshotStore

PART_OF_SINGLY = 1 / 20
SCRAPE_SECONDS = 0.05
SERIES = 5000
PAIRS = 250
SCRAPES = 20


def rows() -> list[Row]:
    """The census as a part of counting singly; a scrape in seconds, the first after a census and later ones."""
    store = SnapshotStore()
    results = Results(("audit", "audit-deep", "census", "dedup", "ttl"))
    shown = Exposition(store, results, max_tenants=TENANTS)
    with fresh() as session:
        singly = _singly(session)
        census, requests = _census(session, store)
    first, others, series = _scrapes(shown)
    what = f"census of {POINTS:,} points, {TENANTS:,} tenants, {requests} requests ({census:.2f} s)"
    return [
        Row(
            f"{what} as a part of counting each tenant and scope ({singly:.1f} s)",
            census / singly,
            PART_OF_SINGLY,
            "x",
        ),
        Row(f"scrape of {series:,} series, the first after a census", first, SCRAPE_SECONDS, "s"),
        Row(f"scrape of {series:,} series, later (median of {SCRAPES})", others, SCRAPE_SECONDS, "s"),
    ]


def _singly(session: Session) -> float:
    pairs = [(f"t_{tenant:04d}", scope) for tenant in range(TENANTS) for scope in SCOPES]
    chosen = pairs[:: max(1, len(pairs) // PAIRS)]
    began = time.perf_counter()
    for tenant, scope in chosen:
        session.count(NAME, every(matches("tenant_id", tenant), matches("scope", scope)))
        session.count(NAME, due_filter(NOW, TTL_DAYS, tenant_id=tenant, scope=scope))
    return (time.perf_counter() - began) * len(pairs) / len(chosen)


def _census(session: Session, store: SnapshotStore) -> tuple[float, int]:
    settings = Settings(collections={"include": (NAME,)})
    began = time.perf_counter()
    report = CensusJob(store).run(Context(session=session, settings=settings, now=lambda: NOW))
    seconds = time.perf_counter() - began
    if report.outcome != "success" or report.found != POINTS:
        raise RuntimeError(f"the census did not count everything: {report.problems}, {report.found} points")
    return seconds, report.requests


def _scrapes(shown: Exposition) -> tuple[float, float, int]:
    app = application(metrics=shown.render, ready=list, status=dict[str, Any])
    server = HttpServer(HttpSettings(port=0), app)
    server.start()
    times: list[float] = []
    text = ""
    try:
        with httpx.Client(base_url=server.url) as client:
            client.get("/healthz").raise_for_status()  # the connection is open before anything is timed
            for _ in range(1 + SCRAPES):
                began = time.perf_counter()
                text = client.get("/metrics").raise_for_status().text
                times.append(time.perf_counter() - began)
    finally:
        server.stop()
    series = sum(1 for line in text.splitlines() if not line.startswith("#"))
    if series < SERIES and TENANTS * len(SCOPES) >= SERIES:
        raise RuntimeError(f"the scrape has {series} series, expected at least {SERIES}")
    return times[0], statistics.median(times[1:]), series
