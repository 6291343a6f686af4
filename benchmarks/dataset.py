"""What retention and deduplication are measured on: 200,000 points of 1,000 tenants, a fifth of them expired.

Loaded once per process into an embedded endpoint, whose folder is then copied for each measurement that deletes
something; with `QDRANT_URL` it is loaded into that server anew each time. `BENCH_POINTS` makes it smaller, to try a
change: the limits hold for 200,000.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from comemory.indexes import PAYLOAD_INDEXES
from comemory.payload import SCHEMA_VERSION, SCOPES
from ops.session import Session

ROOT = Path(__file__).resolve().parent.parent
SERVER = os.environ.get("QDRANT_URL")
NAME = "cm_bench_4_v1"
POINTS = int(os.environ.get("BENCH_POINTS", "200000"))
TENANTS = 1000
TTL_DAYS = (7, 30, 90, 365)
EXPIRED = 0.2
COPIES = 20
"""One point in so many is a copy of the one before."""
NOW = datetime(2026, 6, 1, tzinfo=UTC)
BATCH = 5000


def points(first: int, number: int, *, age: timedelta | None = None) -> Iterator[dict[str, Any]]:
    """Points numbered from `first`; with `age`, all of them so old (none of them expired then).

    Args:
        first: The number of the first; the same number gives the same content.
        number: How many.
        age: None spreads the ages so that a fifth are past their `ttl_days`.
    """
    chance = random.Random(first)
    last: dict[str, Any] = {}
    for place in range(first, first + number):
        payload = _payload(place, chance, age)
        if place % COPIES == COPIES - 1 and last:
            payload = {**last, "created_at": payload["created_at"]}
        else:
            last = payload
        yield {
            "id": str(uuid.UUID(bytes=hashlib.md5(str(place).encode()).digest())),
            "vector": {"dense": [0.1, 0.2, 0.3, 0.4]},
            "payload": payload,
        }


def _payload(place: int, chance: random.Random, age: timedelta | None) -> dict[str, Any]:
    tenant = place % TENANTS
    expired = age is None and chance.random() < EXPIRED
    ttl = chance.choice(TTL_DAYS) if expired or chance.random() < 0.25 else None
    days = ttl + chance.uniform(0.1, 60) if ttl and expired else chance.uniform(0, (ttl or 60) * 0.95)
    created = NOW - (timedelta(days=days) if age is None else age)
    payload = {
        "schema_version": SCHEMA_VERSION,
        "tenant_id": f"t_{tenant:04d}",
        "team_id": f"team_{tenant % 7}",
        "project_id": f"proj_{tenant % 3}",
        "agent_id": f"agt_{tenant % 5}",
        "owner_kind": "agent",
        "owner_id": f"agt_{tenant % 5}",
        "scope": SCOPES[(place // TENANTS) % len(SCOPES)],
        "visibility": "confidential",
        "indexed": True,
        "source_kind": "document",
        "source_id": "doc_01HQ8K9X2N0PQR3FGJKM567890",
        "chunk": {"chunk_id": "chk_01HQ8K9X2N0PQR3FGJKM567890", "chunk_idx": place},
        "fingerprint": f"sha256:{hashlib.sha256(str(place).encode()).hexdigest()}",
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "acl": {"read_team_ids": ["team_x"], "read_agent_ids": ["agt_x", "agt_y"], "read_role_ids": []},
        "tags": ["a", "b"],
        "lang": "uk",
        "importance": 0.5,
    }
    return payload if ttl is None else payload | {"ttl_days": ttl}


def load(session: Session, first: int, number: int, *, age: timedelta | None = None) -> None:
    """Put points into the collection."""
    some: list[dict[str, Any]] = []
    for point in points(first, number, age=age):
        some.append(point)
        if len(some) == BATCH:
            session.request("PUT", f"/collections/{NAME}/points?wait=true", {"points": some})
            some = []
    if some:
        session.request("PUT", f"/collections/{NAME}/points?wait=true", {"points": some})


def connect(url: str) -> Session:
    """A session that waits as long as a loaded machine may need."""
    key = os.environ.get("QDRANT_API_KEY") if SERVER else None
    return Session(url, api_key=SecretStr(key) if key else None, timeout=600)


@contextmanager
def fresh() -> Iterator[Session]:
    """A session of an endpoint that holds the points as they were loaded."""
    if SERVER:
        with connect(SERVER) as session:
            _create(session)
            load(session, 0, POINTS)
            yield session
            session.request("DELETE", f"/collections/{NAME}")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        shutil.copytree(_prepared(), folder)
        with endpoint(folder) as url, connect(url) as session:
            session.count(NAME)  # the first request loads the collection
            yield session


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def _prepared() -> Path:
    folder = Path(_temporary().name) / "prepared"
    began = time.monotonic()
    with endpoint(folder) as url, connect(url) as session:
        _create(session)
        load(session, 0, POINTS)
    print(f"    loaded {POINTS} points in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return folder


def _create(session: Session) -> None:
    session.request("DELETE", f"/collections/{NAME}")
    session.request("PUT", f"/collections/{NAME}", {"vectors": {"dense": {"size": 4, "distance": "Dot"}}})
    for index in PAYLOAD_INDEXES:
        body = {"field_name": index.field, "field_schema": index.field_schema()}
        session.request("PUT", f"/collections/{NAME}/index?wait=true", body)


@contextmanager
def endpoint(folder: Path) -> Iterator[str]:
    """An endpoint of its own on a folder."""
    ready = folder.parent / f"{folder.name}.ready"
    ready.unlink(missing_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("QDRANT_")}
    arguments = ["--path", str(folder), "--port", "0", "--ready-file", str(ready)]
    process = subprocess.Popen(
        [sys.executable, "-m", "embedded", *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        while not ready.exists():
            if process.poll() is not None:
                raise RuntimeError("the embedded endpoint did not start; its message is above")
            time.sleep(0.05)
        yield ready.read_text().strip()
    finally:
        process.terminate()
        process.wait()
