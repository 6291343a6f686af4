"""Source collections that hold fixtures, a target under strict mode, and running a migration between them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models

from comemory.indexes import PAYLOAD_INDEXES
from comemory.migration.rules import RuleSet
from ops.migrate.copy import run_migration
from ops.migrate.plan import make_plan
from ops.migrate.sides import Sides
from ops.migrate.source import SourceSession
from ops.migrate.state import State
from ops.migrate.verify import verify_migration
from ops.report import JobReport
from ops.session import Session
from ops.settings import Settings
from tests.migration.fixtures import SIZE, fixture
from tests.support.memory import STRICT

DENSE = {"size": SIZE, "distance": "Cosine"}


FILTERED = {
    "schema_version", "tenant_id", "team_id", "owner_kind", "owner_id", "visibility", "indexed",
    "acl.read_team_ids", "acl.read_agent_ids", "acl.read_role_ids",
}  # fmt: skip


def unique(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


@contextmanager
def collection(session: Session, name: str, params: Mapping[str, Any], *, target: bool = False) -> Iterator[str]:
    """A collection with these parameters, removed afterwards; a target has strict mode and the filters' indexes."""
    more = {"strict_mode_config": STRICT.model_dump(exclude_none=True)} if target else {}
    session.request("PUT", f"/collections/{name}", {**params, **more})
    try:
        if target:
            for index in (index for index in PAYLOAD_INDEXES if index.field in FILTERED):
                body = {"field_name": index.field, "field_schema": index.field_schema()}
                session.request("PUT", f"/collections/{name}/index?wait=true", body)
        yield name
    finally:
        session.request("DELETE", f"/collections/{name}")


@contextmanager
def target_collection(session: Session, **more: Any) -> Iterator[str]:
    params = {"vectors": {"dense": DENSE}, "sparse_vectors": {"sparse": {}}, **more}
    with collection(session, unique("cm_text"), params, target=True) as name:
        yield name


@contextmanager
def source_of(session: Session, shape: str, name: str | None = None) -> Iterator[str]:
    """A collection as a framework made it."""
    made = fixture(shape)
    params = {key: made.params[key] for key in ("vectors", "sparse_vectors") if made.params.get(key)}
    with collection(session, name or unique(f"old_{shape}"), params) as collection_name:
        put(session, collection_name, made.points)
        yield collection_name


def put(session: Session, name: str, points: Iterable[Mapping[str, Any]]) -> None:
    session.request("PUT", f"/collections/{name}/points?wait=true", {"points": list(points)})


def everything(session: Session, name: str) -> list[dict[str, Any]]:
    """All points with payload and vectors, by id."""
    return [point for page in session.scroll(name, payload=True, vector=True) for point in page]


def clear(client: QdrantClient, name: str) -> None:
    client.delete(name, models.FilterSelector(filter=models.Filter(must=[])), wait=True)


class Migration:
    """A migration between two addresses, with a folder; each step opens sessions of its own, as a process does."""

    def __init__(
        self, url: str, folder: Path, rules: RuleSet, *, source_url: str | None = None, batch: int = 50
    ) -> None:
        self.url, self.source_url, self.folder, self.rules, self.batch = (
            url,
            source_url or url,
            folder,
            rules,
            batch,
        )
        self.stop = threading.Event()
        self.told: list[Any] = []

    @contextmanager
    def sides(self, target: type[Session] = Session) -> Iterator[Sides]:
        with SourceSession(self.source_url, retry_for=30) as source, target(self.url, retry_for=30) as there:
            yield Sides(source, there, self.rules, self.batch, None, self.stop, self.told.append)

    def plan(self) -> dict[str, Any]:
        with self.sides() as sides:
            return make_plan(sides)

    def run(
        self,
        plan: Mapping[str, Any] | None = None,
        *,
        target: type[Session] = Session,
        save: float = 1.0,
        replacing: bool = False,
    ) -> JobReport:
        found = plan or self.plan()
        state = State(self.folder, "digest")
        state.resume(replacing=replacing)
        try:
            with self.sides(target) as sides:
                return run_migration(sides, state, found, Settings(), save_seconds=save)
        finally:
            state.close()

    def verify(self, plan: Mapping[str, Any] | None = None) -> JobReport:
        found = plan or self.plan()
        with self.sides() as sides:
            return verify_migration(sides, found, Settings())
