"""Filters: which payload indexes one needs."""

from __future__ import annotations

from datetime import UTC, datetime

from qdrant_client import models

from comemory import Principal, expired_filter, invalid_retention_filter, read_filter
from comemory.filters import ANY_INDEX, filter_keys
from tests.comemory.conftest import INDEXES


def test_every_key_that_our_filters_ask_for_is_indexed_with_a_type_that_serves() -> None:
    principal = Principal("t_a", "agent", "agt_a", ("team_a",), ("agt_a",), ("role_a",))
    filters = (
        read_filter(principal, scopes=["docs"], tags=["a"], project_ids=["proj_a"]),
        expired_filter(datetime(2026, 1, 1, tzinfo=UTC), 7, tenant_id="t_a", scope="docs"),
        invalid_retention_filter(tenant_id="t_a", scope="docs"),
    )
    needed = [filter_keys(condition) for condition in filters]
    assert {len(keys) for keys in needed} == {13, 6, 5}
    for keys in needed:
        for key, serving in keys.items():
            assert INDEXES[key].value in serving, key


def test_each_condition_says_what_serves_it() -> None:
    def field(**kind: object) -> models.FieldCondition:
        return models.FieldCondition.model_validate({"key": "k", **kind})

    assert filter_keys(field(match={"value": True})) == {"k": frozenset({"bool"})}
    assert filter_keys(field(match={"value": 1})) == {"k": frozenset({"integer"})}
    assert filter_keys(field(match={"any": ["a"]})) == {"k": frozenset({"keyword"})}
    assert filter_keys(field(match={"except": ["a"]})) == {"k": frozenset({"keyword"})}
    assert filter_keys(field(match={"text": "a"})) == {"k": frozenset({"text"})}
    assert filter_keys(field(range={"gt": 1})) == {"k": frozenset({"integer", "float"})}
    assert filter_keys(field(range={"gt": "2026-01-01T00:00:00Z"})) == {"k": frozenset({"datetime"})}
    assert filter_keys(field(values_count={"lt": 1})) == {"k": ANY_INDEX}
    nested = models.NestedCondition(
        nested=models.Nested(key="a", filter=models.Filter(must=[field(match={"value": 1})]))
    )
    negated = models.Filter(
        must_not=[nested], min_should=models.MinShould(conditions=[field(match={"value": "x"})], min_count=1)
    )
    assert filter_keys(negated) == {"a[].k": frozenset({"integer"}), "k": frozenset({"keyword"})}
    assert filter_keys(models.Filter(must=field(match={"value": 1}), should=[field(match={"value": "x"})])) == {
        "k": frozenset()
    }
