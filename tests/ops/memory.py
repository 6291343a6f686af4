"""A memory collection for tests of the jobs: strict mode on, every index there, and a clock that stands still."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr
from qdrant_client import QdrantClient, models

from comemory.indexes import PAYLOAD_INDEXES
from ops.budget import Budget
from ops.jobs.base import Context, Job, Selection
from ops.report import JobReport
from ops.session import Session
from ops.settings import Settings
from tests.comemory.payloads import good_payload
from tests.conftest import SERVER_KEY, SERVER_URL

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PointId = int | str
STRICT = models.StrictModeConfig(enabled=True, unindexed_filtering_retrieve=False, unindexed_filtering_update=False)


def days_ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat()


def payload(**changes: Any) -> dict[str, Any]:
    """A good payload; what is None is left out."""
    return {key: value for key, value in good_payload(**changes).items() if value is not None}


@dataclass
class Memory:
    """One collection. `run` gives a job a context of its own."""

    client: QdrantClient
    url: str
    name: str

    def put(self, points: Mapping[Any, Mapping[str, Any]], vectors: Iterable[str] = ("dense",)) -> None:
        rows = [
            models.PointStruct(id=key, vector={name: [1.0, 0.0] for name in vectors}, payload=dict(value))
            for key, value in points.items()
        ]
        self.client.upsert(self.name, rows, wait=True)

    def ids(self) -> set[PointId]:
        points, _ = self.client.scroll(self.name, limit=100_000, with_payload=False)
        return {point.id for point in points}

    def clear(self) -> None:
        if ids := self.ids():
            self.client.delete(self.name, list(ids), wait=True)

    def run(
        self,
        job: Job,
        *,
        url: str | None = None,
        api_key: str | None = SERVER_KEY if SERVER_URL else None,
        dry_run: bool = False,
        now: datetime = NOW,
        tenant: str | None = None,
        scope: str | None = None,
        collection: str | None = None,
        budget: Budget | None = None,
        retry_for: float = 20,
        timeout: float = 60,
        include: Iterable[str] | None = None,
        before: Callable[[Session], None] = lambda _: None,
        **sections: Any,
    ) -> JobReport:
        """Run a job over this collection (or those of `include`)."""
        settings = Settings(collections={"include": tuple(include or (self.name,))}, **sections)
        key = None if api_key is None else SecretStr(api_key)
        with Session(url or self.url, api_key=key, retry_for=retry_for, timeout=timeout) as session:
            before(session)
            return job.run(
                Context(
                    session=session,
                    settings=settings,
                    budget=budget or Budget(),
                    selection=Selection(collection, tenant, scope),
                    dry_run=dry_run,
                    now=lambda: now,
                )
            )


def create(
    client: QdrantClient, name: str, *, without: Iterable[str] = (), vectors: Iterable[str] = ("dense",)
) -> None:
    """A collection as the stack makes it, but for the indexes in `without`."""
    params = {v: models.VectorParams(size=2, distance=models.Distance.DOT) for v in vectors}
    client.create_collection(name, params, strict_mode_config=STRICT)
    for index in PAYLOAD_INDEXES:
        if index.field not in set(without):
            schema = index.field_schema()
            field_schema: Any = schema["type"] if len(schema) == 1 else schema
            client.http.indexes_api.create_field_index(
                name, wait=True,
                create_field_index=models.CreateFieldIndex(field_name=index.field, field_schema=field_schema),
            )  # fmt: skip


@contextmanager
def memory(client: QdrantClient, url: str, **options: Any) -> Iterator[Memory]:
    """A collection that is removed afterwards."""
    name = f"test_{uuid.uuid4().hex}"
    create(client, name, **options)
    try:
        yield Memory(client, url, name)
    finally:
        client.delete_collection(name)
