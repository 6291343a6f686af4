"""`comemory doctor` calls an index missing in earnest exactly where the server then refuses what we ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from comemory.access import Principal, read_filter
from comemory.catalog import PAYLOAD_INDEXES
from comemory.retention import any_expired_filter
from ops.doctor import ACCESS, Check, examine
from ops.jobs.registry import connect
from ops.session import Session
from ops.settings import Settings

ANYBODY = Principal.agent("t_a", "agt_a", team_ids=("team_a",), role_ids=("role_a",))
REFUSING = {"unindexed_filtering_retrieve": False, "unindexed_filtering_update": False}
Strict = dict[str, bool]


@pytest.fixture
def collection(qdrant: QdrantClient, collection_name: str) -> str:
    qdrant.create_collection(
        collection_name, vectors_config={"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)}
    )
    for index in PAYLOAD_INDEXES:
        qdrant.create_payload_index(collection_name, index.field, index.field_schema(), wait=True)
    lasting = {"tenant_id": "t_a", "ttl_days": 30, "created_at": datetime.now(UTC).isoformat()}
    qdrant.upsert(
        collection_name, [models.PointStruct(id=1, vector={"dense": [1, 0, 0, 0]}, payload=lasting)], wait=True
    )
    return collection_name


@pytest.fixture
def settings(qdrant_url: str, collection: str) -> Settings:
    key = os.environ.get("QDRANT_API_KEY")
    return Settings.model_validate(
        {"qdrant": {"url": qdrant_url, "api_key": key}, "collections": {"include": [collection]}}
    )


@pytest.fixture
def session(settings: Settings) -> Iterator[Session]:
    with connect(settings) as connected:
        yield connected


def refused(qdrant: QdrantClient, collection: str) -> set[str]:
    """What the server does not do."""
    expired = any_expired_filter(datetime.now(UTC), (1,))
    asked: dict[str, Callable[[], Any]] = {
        "query": lambda: qdrant.scroll(collection, scroll_filter=read_filter(ANYBODY), limit=1),
        "look for expired": lambda: qdrant.count(collection, count_filter=expired),
        "expire": lambda: qdrant.delete(collection, models.FilterSelector(filter=expired), wait=True),
        "count tenants": lambda: qdrant.facet(collection, "tenant_id"),
        "count days": lambda: qdrant.facet(collection, "ttl_days"),
    }
    found = set()
    for what, ask in asked.items():
        try:
            ask()
        except UnexpectedResponse as error:
            assert error.status_code == 400
            found.add(what)
    return found


@pytest.mark.parametrize(
    "strict",
    [
        {"enabled": True},
        {"enabled": True, **REFUSING},
        {"enabled": True, "unindexed_filtering_retrieve": True, "unindexed_filtering_update": False},
    ],
    ids=["filters allowed", "filters refused", "deletions refused"],
)
def test_an_index_is_missing_in_earnest_where_the_server_refuses_what_we_ask(
    qdrant: QdrantClient, collection: str, settings: Settings, session: Session, strict: Strict
) -> None:
    qdrant.update_collection(collection, strict_mode_config=models.StrictModeConfig(**strict))
    assert not refused(qdrant, collection)

    def found() -> list[Check]:
        return [check for check in examine(settings, session) if check.name == f"{collection}: indexes"]

    assert [check.verdict for check in found()] == ["ok"]
    seen: dict[str, set[str]] = {}
    for index in PAYLOAD_INDEXES:
        # An index of another type is as good as none; a few tell that.
        for there in (None, "geo") if index.field in ("visibility", "ttl_days", "lang") else (None,):
            qdrant.delete_payload_index(collection, index.field, wait=True)
            if there is not None:
                qdrant.create_payload_index(collection, index.field, there, wait=True)
            (check,) = found()
            no = refused(qdrant, collection)
            assert check.verdict == ("failed" if no else "warning"), (index.field, there, no, check)
            assert ("every query" in check.advice) == ("query" in no)
            assert index.field in check.found
            seen.setdefault(check.verdict, set()).add(index.field)
        qdrant.delete_payload_index(collection, index.field, wait=True)
        qdrant.create_payload_index(collection, index.field, index.field_schema(), wait=True)
    if strict == {"enabled": True, **REFUSING}:
        assert seen["failed"] >= ACCESS.keys()
        assert seen["warning"] >= {"lang", "importance", "source_id"}


def test_other_parameters_of_an_index_break_nothing(
    qdrant: QdrantClient, collection: str, settings: Settings, session: Session
) -> None:
    qdrant.update_collection(collection, strict_mode_config=models.StrictModeConfig(enabled=True, **REFUSING))
    qdrant.delete_payload_index(collection, "tenant_id", wait=True)
    qdrant.create_payload_index(collection, "tenant_id", "keyword", wait=True)
    (check,) = [check for check in examine(settings, session) if check.name == f"{collection}: indexes"]
    assert (check.verdict, "is_tenant" in check.found) == ("warning", True)
    assert "it answers as it is" in check.advice
    assert not refused(qdrant, collection)


def test_the_access_filter_is_known_whole() -> None:
    assert ACCESS.keys() == {
        "schema_version", "tenant_id", "indexed", "visibility", "owner_kind", "owner_id", "team_id",
        "acl.read_agent_ids", "acl.read_team_ids", "acl.read_role_ids",
    }  # fmt: skip
