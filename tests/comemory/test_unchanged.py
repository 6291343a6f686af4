"""A filter that holds a write to what was read: on the real engine, with the indexes of a memory collection."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from comemory.live import LiveCollection, LiveIndex
from comemory.unchanged import MOST_VALUES, unchanged
from tests.comemory.payloads import good_payload, malformed, spoil
from tests.support.memory import Memory, context_for, memory

FIELDS = (
    "schema_version", "tenant_id", "team_id", "project_id", "agent_id", "owner_kind", "owner_id", "scope",
    "visibility", "indexed", "acl", "acl.read_team_ids", "acl.read_agent_ids", "acl.read_role_ids", "source_kind",
    "source_id", "chunk", "chunk.chunk_id", "chunk.chunk_idx", "fingerprint", "created_at", "updated_at", "tags",
    "lang", "importance", "ttl_days",
)  # fmt: skip
"""What may be spoilt; the indexed fields and those that hold them."""

ODD = (
    0, -1, 7, 7.0, 7.5, 2**63, 2**70, -(2**63), 1e300, -0.0, 0.1, "2026-01-26", "2026-01-26T12:00:00.1234567+02:00",
    "0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "24:00", ["2026-01-26", "x", 3], [1, 2, 2.5, None, True],
    {"read_team_ids": [["a"]]}, [{"read_team_ids": ["team_a"]}], [{"chunk_idx": 1}, None], "\u0000", "é",
    "x" * 3000,
    [f"tag{number}" for number in range(MOST_VALUES + 3)], list(range(MOST_VALUES + 3)),
)  # fmt: skip


class Held:
    """A collection with its indexes as the server tells them, and which of the points meet their own filters."""

    def __init__(self, points: Memory, indexes: Mapping[str, LiveIndex]) -> None:
        self.points, self.indexes = points, indexes

    def found(self, read: list[dict[str, Any]], now: list[dict[str, Any]], *, most: int | None = None) -> set[int]:
        """Points 0 to n-1 are `now`; those that meet the filters of `read`."""
        self.points.put(now)
        own: list[models.Condition] = [unchanged(i, one, self.indexes, most=most) for i, one in enumerate(read)]
        found, _ = self.points.client.scroll(
            self.points.name, scroll_filter=models.Filter(should=own), limit=len(own) + 1, with_payload=False
        )
        return {int(point.id) for point in found}


@pytest.fixture(scope="module")
def held(qdrant: QdrantClient, qdrant_url: str) -> Iterator[Held]:
    with memory(qdrant) as points, context_for(qdrant_url, points.name) as context:
        live = LiveCollection.from_rest(points.name, context.session.collection(points.name))
        assert {"keyword", "bool", "integer", "float", "datetime"} == {one.type for one in live.indexes.values()}
        yield Held(points, live.indexes)


@st.composite
def any_payloads(draw: st.DrawFn) -> dict[str, Any]:
    """A payload with up to four fields spoilt, some in ways that only one kind of index minds."""
    payload = copy.deepcopy(FULL)
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=4, unique=True)):
        if draw(st.booleans()):
            spoil(draw, payload, field)
        else:
            put(payload, field, draw(st.sampled_from(ODD) | malformed("team_a")))
    return payload


FULL: dict[str, Any] = good_payload(
    acl={"read_team_ids": ["team_a"], "read_agent_ids": [], "read_role_ids": ["role_a", "role_b"]},
    tags=["a", "b"], lang="en", importance=0.5, ttl_days=30, updated_at="2026-01-27T12:00:00.000001Z",
)  # fmt: skip


def put(payload: dict[str, Any], field: str, value: Any) -> None:
    *path, last = field.split(".")
    for step in path:
        inner = payload.get(step)
        payload[step] = inner if isinstance(inner, dict) else {}
        payload = payload[step]
    payload[last] = value


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(any_payloads(), min_size=1, max_size=12), st.sampled_from([None, 1, 2, 5, 30]))
def test_a_payload_meets_its_own_filter(held: Held, payloads: list[dict[str, Any]], most: int | None) -> None:
    assert held.found(payloads, payloads, most=most) == set(range(len(payloads)))


CHANGES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("schema_version", "tenant_id", "team_id", "project_id", "agent_id", "owner_kind", "owner_id", "scope",
         "visibility", "fingerprint"),
        ("other", None, 5, [], ["other", "third"]),
    ),
    **dict.fromkeys(
        ("acl.read_team_ids", "acl.read_agent_ids", "acl.read_role_ids", "tags"),
        (["other"], ["team_a", "other"], ["role_a", "role_b", "other"], "other", ["role_b"]),
    ),
    "indexed": (False, None, "true"),
    "created_at": ("2026-01-26T12:00:01Z", "2027-01-01", None),
    "updated_at": ("2026-01-27T12:00:00.000002Z", "2027-01-01", None),
    "ttl_days": (31, None, -30),
    "importance": (0.25, 0.5000001, None),
}  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from([(field, value) for field, values in CHANGES.items() for value in values]),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_a_payload_of_which_an_indexed_field_changed_does_not(held: Held, changes: list[tuple[str, Any]]) -> None:
    changed = []
    for field, value in changes:
        changed.append(copy.deepcopy(FULL))
        put(changed[-1], field, value)
    assert held.found([FULL] * len(changed), changed) == set()


def test_who_reads_is_asked_about_first_where_conditions_are_few(held: Held) -> None:
    changed = [{**FULL, "visibility": "public"}, {**FULL, "owner_id": "agt_b"}, {**FULL, "tenant_id": "t_b"}]
    assert held.found([FULL] * 3, changed, most=40) == set()
    assert len(unchanged(0, FULL, held.indexes, most=7).must_not or ()) <= 6


def test_a_collection_without_indexes_is_asked_for_the_point_alone() -> None:
    assert unchanged(3, FULL, {}) == models.Filter(must=[models.HasIdCondition(has_id=[3])])
