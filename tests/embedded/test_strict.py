"""Strict mode refuses what a collection's owner does not want paid for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

CONDITIONS: dict[str, Any] = {
    "keyword": {"match": {"value": "x"}},
    "integer": {"match": {"value": 1}},
    "bool": {"match": {"value": True}},
    "datetime": {"range": {"lt": "2026-01-01T00:00:00Z"}},
    "float": {"range": {"lt": 1.5}},
    "geo": {"geo_radius": {"center": {"lon": 1.0, "lat": 1.0}, "radius": 5.0}},
    "text": {"match": {"text": "x"}},
    "uuid": {"match": {"value": "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"}},
}


@pytest.fixture
def strict(qdrant: QdrantClient, collection_name: str) -> str:
    qdrant.create_collection(
        collection_name,
        vectors_config={"dense": models.VectorParams(size=2, distance="Dot")},
        strict_mode_config=models.StrictModeConfig(
            enabled=True, unindexed_filtering_retrieve=False, unindexed_filtering_update=False, max_query_limit=10,
            search_max_hnsw_ef=50, search_allow_exact=False, upsert_max_batchsize=2, max_payload_index_count=8,
            filter_max_conditions=3, condition_max_size=4,
        ),
    )  # fmt: skip
    return collection_name


@pytest.mark.parametrize("kind", CONDITIONS)
def test_a_condition_needs_an_index_that_serves_it(qdrant: QdrantClient, strict: str, kind: str):
    condition = models.Filter.model_validate({"must": [{"key": "a.b", **CONDITIONS[kind]}]})
    with pytest.raises(UnexpectedResponse) as refused:
        qdrant.count(strict, condition)
    text = json.loads(refused.value.content)["status"]["error"]
    assert text.startswith('Bad request: Index required but not found for "a.b" of one of the following types: [')
    assert kind in text
    with pytest.raises(UnexpectedResponse, match="Index required"):
        qdrant.delete(strict, points_selector=condition)
    qdrant.create_payload_index(strict, "a.b", kind, wait=True)
    assert qdrant.count(strict, condition).count == 0
    assert qdrant.scroll(strict, condition, limit=5) == ([], None)


def test_a_condition_deep_in_a_filter_is_seen(qdrant: QdrantClient, strict: str):
    inner = models.FieldCondition(key="k", match=models.MatchAny(any=["x"]))
    for condition in (
        models.Filter(should=[models.Filter(must_not=[inner])]),
        models.Filter(min_should=models.MinShould(conditions=[inner], min_count=1)),
    ):
        with pytest.raises(UnexpectedResponse, match="Index required"):
            qdrant.count(strict, condition)
        with pytest.raises(UnexpectedResponse, match="Index required"):
            prefetch = models.Prefetch(query=[1.0, 1.0], using="dense", filter=condition)
            qdrant.query_points(strict, models.FusionQuery(fusion="rrf"), prefetch=prefetch)


def test_limits(qdrant: QdrantClient, strict: str):
    query: dict[str, Any] = {"collection_name": strict, "query": [1.0, 1.0], "using": "dense"}
    ids = models.HasIdCondition(has_id=list(range(5)))
    point = models.PointStruct(id=1, vector={"dense": [1.0, 1.0]})
    refused: dict[str, Callable[[], Any]] = {
        "11 > 10": lambda: qdrant.scroll(strict, limit=11),
        "11 > 10 ": lambda: qdrant.query_points(**query, limit=11),
        "hnsw_ef": lambda: qdrant.query_points(**query, search_params=models.SearchParams(hnsw_ef=51)),
        "exact": lambda: qdrant.query_points(**query, search_params=models.SearchParams(exact=True)),
        "3 > 2": lambda: qdrant.upsert(strict, [point] * 3, wait=True),
        "5 > 4": lambda: qdrant.count(strict, models.Filter(must=[ids])),
        "4 > 3": lambda: qdrant.count(strict, models.Filter(must=[models.HasIdCondition(has_id=[1])] * 4)),
    }
    for text, call in refused.items():
        with pytest.raises(UnexpectedResponse, match=text.strip()) as error:
            call()
        assert error.value.status_code == 400
    qdrant.upsert(strict, [point] * 2, wait=True)
    assert len(qdrant.query_points(**query, limit=10).points) == 1


def test_the_number_of_indexes_is_limited(qdrant: QdrantClient, strict: str):
    for i in range(8):
        qdrant.create_payload_index(strict, f"f{i}", "keyword", wait=True)
    with pytest.raises(UnexpectedResponse, match="maximum number of payload ind"):
        qdrant.create_payload_index(strict, "f8", "keyword", wait=True)
    qdrant.create_payload_index(strict, "f7", "keyword", wait=True)


def test_switched_off_nothing_is_refused(qdrant: QdrantClient, strict: str):
    qdrant.update_collection(strict, strict_mode_config=models.StrictModeConfig(enabled=False))
    condition = models.Filter(must=[models.FieldCondition(key="k", match=models.MatchValue(value="x"))])
    assert qdrant.count(strict, condition).count == 0
    assert qdrant.scroll(strict, limit=100) == ([], None)
