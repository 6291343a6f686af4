"""Audit: what the engine counts against what the model says of the same payloads."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from comemory.audit import (
    SINGLE_VALUED,
    WRONG_TENANT,
    Check,
    EmbeddingSpace,
    checks,
    countable_reasons,
    has_value,
    is_tenant_id,
    payload_problems,
    several_values,
)
from comemory.filters import every, filter_keys
from comemory.indexes import PAYLOAD_INDEXES, IndexSpec
from comemory.payload import Payload
from tests.comemory.conftest import Points
from tests.comemory.payloads import good_payload, spoil

SPACE = EmbeddingSpace(dim=4, metric="cosine", model="model-a")
NOT_INDEXED = {"embedding.dim": "integer", "embedding.metric": "keyword"}
FIELDS = [
    *SINGLE_VALUED, "source_id", "fingerprint", "created_at", "updated_at", "importance",
    "embedding.dim", "embedding.metric", "embedding.model",
]  # fmt: skip


def whole_payload(**changes: Any) -> dict[str, Any]:
    optional = {
        "ttl_days": 7,
        "importance": 0.5,
        "updated_at": "2026-01-26T12:00:00Z",
        "embedding": {"model": "model-a", "dim": 4, "metric": "cosine"},
    }
    return good_payload(**(optional | changes))


@pytest.fixture(scope="module")
def points(qdrant: QdrantClient) -> Iterator[Points]:
    name = f"test_{uuid.uuid4().hex}"
    qdrant.create_collection(name, {"dense": {"size": 1, "distance": "Dot"}})  # type: ignore[dict-item]
    extra = [IndexSpec(field=field, type=kind) for field, kind in NOT_INDEXED.items()]  # type: ignore[arg-type]
    for index in [*PAYLOAD_INDEXES, *extra]:
        qdrant.create_payload_index(name, index.field, index.field_schema(), wait=True)  # type: ignore[arg-type]
    yield Points(qdrant, name)
    qdrant.delete_collection(name)


def all_checks() -> list[Check]:
    return [*checks(SPACE), *(Check(f"{field}.list", several_values(field)) for field in SINGLE_VALUED)]


@st.composite
def payloads(draw: st.DrawFn) -> dict[str, Any]:
    """Payloads with none to three fields spoilt."""
    payload = whole_payload(visibility=draw(st.sampled_from(["public", "confidential", "private"])))
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=3, unique=True)):
        if draw(st.booleans()):
            spoil(draw, payload, field)
            continue
        *path, last = field.split(".")
        holder = payload[path[0]] if path else payload
        values: list[Any] = ["secret", "agt_z", "2026-13-01", 0, -3, 5, 5.0, 1.5, -0.5, {"a": 1}]
        holder[last] = draw(st.sampled_from(values))
    return payload


def as_the_engine_reads(payload: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The payload with every field as the indexes see it, and the fields that hold several values."""
    read, several = copy.deepcopy(payload), set()
    for field in FIELDS:
        *path, last = field.split(".")
        holder: Any = read[path[0]] if path else read
        if not isinstance(holder, dict) or last not in holder:
            continue
        value = holder[last]
        if value == []:
            del holder[last]
        elif isinstance(value, list) and len(value) > 1:
            several.add(field)
        elif isinstance(value, list):
            # A list of one value is that value; null or a list in it is a value of no type.
            holder[last] = {} if value[0] is None or isinstance(value[0], list) else value[0]
        if field in ("ttl_days", "embedding.dim") and isinstance(holder.get(last), float) and holder[last] % 1 == 0:
            holder[last] = int(holder[last])
    return read, several


def expected_reasons(payload: dict[str, Any]) -> tuple[set[str], set[str]]:
    """What the engine must find, and the fields about which it may say what it likes."""
    read, several = as_the_engine_reads(payload)
    reasons = set(payload_problems(read, SPACE, lenient=True))
    for field in ("created_at", "updated_at"):  # the index of times cannot tell a wrong type from a wrong text
        if f"{field}.wrong_type" in reasons:
            reasons = (reasons - {f"{field}.wrong_type"}) | {f"{field}.malformed"}
    reasons = {reason for reason in reasons if reason in countable_reasons() and reason != WRONG_TENANT}
    listed = {f"{field}.list" for field in several if field in SINGLE_VALUED}
    return {r for r in reasons if not r.endswith(".list")} | listed, several


def test_the_engine_counts_what_the_model_complains_of(points: Points) -> None:
    @given(st.lists(payloads(), min_size=60, max_size=60))
    # Shrinking sixty payloads takes longer than reading the one that the message shows.
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def agree(batch: list[dict[str, Any]]) -> None:
        points.put(batch)
        found: list[set[str]] = [set() for _ in batch]
        for check in all_checks():
            for place in points.found(check.condition):
                found[place].add(check.reason)
        for payload, reasons in zip(batch, found, strict=True):
            expected, several = expected_reasons(payload)
            unclear = {"visibility", "owner_kind", "owner_id"} & several

            def told(reason: str, several: set[str] = several, unclear: set[str] = unclear) -> bool:
                field, _, what = reason.rpartition(".")
                return what == "list" or (field not in several and not (what == "no_owner" and unclear))

            assert set(filter(told, reasons)) == set(filter(told, expected)), payload

    agree()


def test_a_payload_that_is_right_meets_no_check(points: Points) -> None:
    points.put([whole_payload(), good_payload()])
    assert [check.reason for check in all_checks() if points.found(check.condition)] == []


def test_every_reason_can_be_met(points: Points) -> None:
    wrong: list[dict[str, Any]] = [good_payload(visibility="private", owner_id=None)]
    for field in FIELDS:
        for value in (None, "secret", "x", 5, 5.5, -1, {"a": 1}, ["a", "b"]):
            payload = whole_payload()
            if "." in field:
                payload["embedding"] = payload["embedding"] | {field.split(".")[1]: value}
            else:
                payload[field] = value
            wrong.append(payload)
        payload = whole_payload()
        payload.pop(field, None)
        wrong.append(payload)
    points.put(wrong)
    never = [check.reason for check in all_checks() if not points.found(check.condition)]
    assert never == []


@pytest.mark.parametrize("field", SINGLE_VALUED)
def test_an_index_holds_more_values_than_points_where_there_are_lists(points: Points, field: str) -> None:
    ordinary = whole_payload()[field]
    other = {"indexed": False, "ttl_days": 30}.get(field, "other")
    for value, more in ((ordinary, False), ([ordinary], False), ([ordinary, other], True), (None, False)):
        points.put([whole_payload(**{field: value}), whole_payload()])
        hits = points.client.facet(points.name, field, every(models.HasIdCondition(has_id=[0, 1])), exact=True).hits
        assert (sum(hit.count for hit in hits) > len(points.found(has_value(field)))) is more


def test_every_key_is_indexed_with_the_right_type_but_for_two() -> None:
    declared = {index.field: index.type for index in PAYLOAD_INDEXES} | NOT_INDEXED
    for check in all_checks():
        for key, serving in filter_keys(check.condition).items():
            assert declared[key] in serving, (check.reason, key)


def test_reasons_are_those_of_the_model() -> None:
    assert payload_problems(whole_payload(), SPACE) == []
    assert payload_problems(whole_payload(scope="secret", ttl_days=0), SPACE) == [
        "scope.unknown",
        "ttl_days.out_of_range",
    ]
    assert [p.code for p in Payload.problems(whole_payload(scope="secret"))] == ["scope.unknown"]
    assert len({check.reason for check in checks(SPACE)}) == len(checks(SPACE))


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({"embedding": {"dim": 768}}, ["embedding.dim.mismatch"]),
        ({"embedding": {"metric": "dot"}}, ["embedding.metric.mismatch"]),
        ({"embedding": {"model": "model-b"}}, ["embedding.model.mismatch"]),
        ({"embedding": None}, []),
        ({"visibility": "confidential", "owner_id": None}, ["confidential.no_owner", "owner_id.null"]),
        ({"visibility": "private", "owner_kind": "robot"}, ["owner_kind.unknown", "private.no_owner"]),
    ],
)
def test_what_the_model_alone_cannot_see(changes: dict[str, Any], reasons: list[str]) -> None:
    assert payload_problems(good_payload(**changes), SPACE) == reasons


def test_nothing_contradicts_a_space_that_is_not_known() -> None:
    assert (
        payload_problems(good_payload(embedding={"dim": 3, "metric": "dot", "model": "m"}), EmbeddingSpace()) == []
    )


def test_lenient_lets_pass_what_readers_accept() -> None:
    payload = good_payload(source_id="doc_01HQ", created_at="2026-01-26")
    assert payload_problems(payload, SPACE, lenient=True) == []
    assert payload_problems(payload, SPACE) == ["created_at.malformed", "source_id.malformed"]


def test_a_space_is_read_from_the_collection() -> None:
    vector = {"size": 4, "distance": "Cosine"}
    assert EmbeddingSpace.of(vector, {"embedding_model": "model-a"}) == SPACE
    assert EmbeddingSpace.of(None, {}) == EmbeddingSpace()


@pytest.mark.parametrize(
    ("value", "right"),
    [("t_a", True), ("t_a-b_c", True), ("tenant_a", False), ("t_", False), ("T_a", False), ("", False)],
)
def test_a_tenant_has_its_prefix(value: str, right: bool) -> None:
    assert is_tenant_id(value) is right
