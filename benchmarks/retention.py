"""What the `ttl` job costs, beside one bare delete-by-filter per `ttl_days`, and beside what people do today.

Bare: for each value a delete by `ttl_days`, `created_at` and `schema_version`; it counts nothing, cannot be stopped
and misreads malformed payloads. Today: `qdrant-client` pages through all points with their payloads, Python adds
the days, and what is expired is deleted by id, page by page. Every way starts from the same points. The job's speed
limit (`ttl.points_per_second`) is off here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from qdrant_client import QdrantClient, models

from benchmarks.dataset import NAME, NOW, POINTS, TTL_DAYS, fresh
from benchmarks.report import Row
from comemory.filters import every, matches
from comemory.payload import SCHEMA_VERSION
from ops import logs
from ops.jobs.base import Context
from ops.jobs.ttl import TtlJob
from ops.session import Session
from ops.settings import LogSettings, Settings

TIMES_BARE = 1.5
PART_OF_TODAY = 0.1
TODAYS_PAGE = 1000


def rows() -> list[Row]:
    """The job as a multiple of the bare deletes, and as a part of today's way."""
    logs.configure(LogSettings(level="warning"))
    taken: dict[str, float] = {}
    left: dict[str, int] = {}
    ways: dict[str, Callable[[Session], None]] = {"bare": _bare, "job": _job, "today": _today}
    for name, way in ways.items():
        with fresh() as session:
            began = time.perf_counter()
            way(session)
            taken[name] = time.perf_counter() - began
            left[name] = session.count(NAME)
    if len(set(left.values())) > 1:
        raise RuntimeError(f"the ways of deleting do not agree on what is left: {left}")
    what = f"ttl of {POINTS - left['job']:,} expired among {POINTS:,} points ({taken['job']:.1f} s)"
    return [
        Row(
            f"{what} as a multiple of a bare delete per ttl_days ({taken['bare']:.1f} s)",
            taken["job"] / taken["bare"],
            TIMES_BARE,
            "x",
        ),
        Row(
            f"{what} as a part of scrolling with qdrant-client and deleting by id ({taken['today']:.1f} s)",
            taken["job"] / taken["today"],
            PART_OF_TODAY,
            "x",
        ),
    ]


def _bare(session: Session) -> None:
    for days in TTL_DAYS:
        until = models.DatetimeRange(lte=NOW - timedelta(days=days))
        session.delete(
            NAME,
            every(
                matches("ttl_days", days),
                models.FieldCondition(key="created_at", range=until),
                matches("schema_version", SCHEMA_VERSION),
            ),
        )


def _job(session: Session) -> None:
    settings = Settings(collections={"include": (NAME,)}, ttl={"points_per_second": None})
    report = TtlJob().run(Context(session=session, settings=settings, now=lambda: NOW))
    if report.outcome != "success":
        raise RuntimeError(f"the job did not succeed: {report.problems}")


def _today(session: Session) -> None:
    client = QdrantClient(url=session.url, api_key=os.environ.get("QDRANT_API_KEY"), timeout=600)
    offset: models.ExtendedPointId | None = None
    while True:
        found, offset = client.scroll(NAME, limit=TODAYS_PAGE, offset=offset, with_payload=True)
        expired = []
        for point in found:
            payload = point.payload or {}
            days = payload.get("ttl_days")
            if days and datetime.fromisoformat(payload["created_at"]) + timedelta(days=days) <= NOW:
                expired.append(point.id)
        if expired:
            client.delete(NAME, expired, wait=True)
        if offset is None:
            client.close()
            return
