"""Collections of memory with points of tenants that no other test knows, and running an erasure over them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from qdrant_client import QdrantClient, models

from comemory.indexes import PAYLOAD_INDEXES
from comemory.tenancy import NAMING_FIELDS, Subject
from ops.budget import Budget
from ops.jobs.base import Context
from ops.report import JobReport
from ops.session import Session
from ops.settings import Settings
from ops.tenant.erase import erase
from ops.tenant.log import ErasureLog
from tests.comemory.payloads import good_payload
from tests.conftest import SERVER_KEY, SERVER_URL

INDEXES = tuple(index for index in PAYLOAD_INDEXES if index.field in {"tenant_id", "owner_id", *NAMING_FIELDS})
"""Those that are filtered by: making all of them takes longer than most of the tests do."""
VECTOR = {"dense": [1.0, 0.0, 0.0, 0.0]}


def payload(tenant: Any, **changes: Any) -> dict[str, Any]:
    """A payload of a tenant; what is None is left out."""
    made = good_payload(tenant_id=tenant, text=f"of {tenant}", **changes)
    return {key: value for key, value in made.items() if value is not None}


def unique(prefix: str = "t") -> str:
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


def put(client: QdrantClient, name: str, points: Mapping[Any, Mapping[str, Any]]) -> None:
    rows = [models.PointStruct(id=key, vector=VECTOR, payload=dict(value)) for key, value in points.items()]
    client.upsert(name, rows, wait=True)


def everything(client: QdrantClient, name: str) -> dict[Any, tuple[Any, Any]]:
    """Payload and vectors by id."""
    points, _ = client.scroll(name, limit=10_000, with_payload=True, with_vectors=True)
    return {point.id: (point.payload, point.vector) for point in points}


@dataclass
class Tenancy:
    """A server and a folder with the record; each call has a session of its own, as a process does."""

    url: str
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log" / "erasures.jsonl"

    def context(self, session: Session, **changes: Any) -> Context:
        sections = changes.pop("sections", {})
        return Context(session, Settings(**sections), changes.pop("budget", Budget()), **changes)

    def session(
        self, *, api_key: str | None = SERVER_KEY if SERVER_URL else None, retry_for: float = 20
    ) -> Session:
        return Session(self.url, api_key=None if api_key is None else SecretStr(api_key), retry_for=retry_for)

    def erase(
        self,
        tenant: str,
        owner: str | None = None,
        *,
        dry_run: bool = False,
        batch: int = 2000,
        include: Iterable[str] = (),
        budget: Budget | None = None,
        **session: Any,
    ) -> JobReport:
        sections: dict[str, Any] = {"tenant": {"batch": batch}, "collections": {"include": tuple(include)}}
        with self.session(**session) as made:
            context = self.context(made, sections=sections, dry_run=dry_run, budget=budget or Budget())
            return erase(context, Subject(tenant, owner), None if dry_run else ErasureLog(self.log))
