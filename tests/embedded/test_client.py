"""Every call of `qdrant-client` that this project makes, on whatever endpoint the session talks to."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.common.version_check import is_compatible
from qdrant_client.http.exceptions import UnexpectedResponse

A = "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"


def where(key: str, value: Any) -> models.Filter:
    return models.Filter(must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))])


@pytest.fixture
def points(qdrant: QdrantClient, collection_name: str) -> str:
    """Eight points with a dense and a sparse vector, and three indexes."""
    qdrant.create_collection(
        collection_name,
        vectors_config={"dense": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        sparse_vectors_config={"bm25": models.SparseVectorParams()},
    )
    for field, kind in (("tenant", "keyword"), ("n", "integer"), ("at", "datetime"), ("on", "bool")):
        qdrant.create_payload_index(collection_name, field, kind, wait=True)
    rows = [
        models.PointStruct(
            id=A if i == 7 else i,
            vector={"dense": [1.0, i / 8], "bm25": models.SparseVector(indices=[i], values=[1.0])},
            payload={"tenant": "ab"[i % 2], "n": i, "at": f"2026-01-0{i + 1}T00:00:00Z", "on": i < 3},
        )
        for i in range(8)
    ]
    qdrant.upsert(collection_name, rows, wait=True)
    return collection_name


INDEXES: dict[str, Any] = {
    "keyword": models.KeywordIndexParams(type="keyword", is_tenant=True, on_disk=True, enable_hnsw=False),
    "integer": models.IntegerIndexParams(type="integer", lookup=True, range=False, is_principal=False),
    "float": models.FloatIndexParams(type="float", is_principal=True),
    "bool": models.BoolIndexParams(type="bool", on_disk=True),
    "datetime": models.DatetimeIndexParams(type="datetime", is_principal=True, on_disk=False),
    "uuid": models.UuidIndexParams(type="uuid", is_tenant=True),
    "geo": models.GeoIndexParams(type="geo", on_disk=True),
    "text": models.TextIndexParams(
        type="text", tokenizer=models.TokenizerType.WORD, min_token_len=2, max_token_len=20, lowercase=True,
        phrase_matching=True, stopwords=models.StopwordsSet(languages=[models.Language.ENGLISH], custom=["x"]),
        stemmer=models.SnowballParams(type="snowball", language="english"), on_disk=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_comes_back_as_it_was_asked_for(qdrant: QdrantClient, points: str, kind: str):
    qdrant.create_payload_index(points, "plain", kind, wait=True)
    qdrant.create_payload_index(points, "detailed", INDEXES[kind], wait=True)
    schema = qdrant.get_collection(points).payload_schema
    assert schema["plain"].data_type == kind
    assert schema["plain"].params is None
    assert schema["detailed"].params == INDEXES[kind]


def test_another_schema_rebuilds_an_index_and_the_same_does_not(qdrant: QdrantClient, points: str):
    qdrant.create_payload_index(points, "n", "integer", wait=True)
    assert qdrant.get_collection(points).payload_schema["n"].points == 8
    qdrant.create_payload_index(points, "n", models.IntegerIndexParams(type="integer", range=True), wait=True)
    index = qdrant.get_collection(points).payload_schema["n"]
    assert index.points == 8
    assert index.params.range
    qdrant.delete_payload_index(points, "n", wait=True)
    assert "n" not in qdrant.get_collection(points).payload_schema


def test_the_settings_of_a_collection_come_back(qdrant: QdrantClient, collection_name: str):
    dense = models.VectorParams(
        size=8, distance="Dot", on_disk=True, datatype="float16",
        hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
        quantization_config=models.ScalarQuantization(scalar=models.ScalarQuantizationConfig(type="int8")),
    )  # fmt: skip
    many = models.VectorParams(
        size=4, distance="Cosine", multivector_config=models.MultiVectorConfig(comparator="max_sim")
    )
    qdrant.create_collection(
        collection_name,
        vectors_config={"dense": dense, "many": many},
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier="idf")},
        hnsw_config=models.HnswConfigDiff(m=32),
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=20_000),
        quantization_config=models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
        strict_mode_config=models.StrictModeConfig(enabled=True, max_query_limit=5),
        metadata={"owner": {"stack": "test"}},
        on_disk_payload=False,
    )
    config = qdrant.get_collection(collection_name).config
    assert config.params.vectors == {"dense": dense, "many": many}
    assert config.params.sparse_vectors == {"bm25": models.SparseVectorParams(modifier="idf")}
    assert (config.hnsw_config.m, config.hnsw_config.ef_construct) == (32, 100)
    assert config.optimizer_config.indexing_threshold == 20_000
    assert config.quantization_config.binary.always_ram
    assert config.metadata == {"owner": {"stack": "test"}}
    assert config.params.on_disk_payload is False
    qdrant.update_collection(
        collection_name,
        vectors_config={"dense": models.VectorParamsDiff(hnsw_config=models.HnswConfigDiff(payload_m=8))},
        quantization_config=models.Disabled.DISABLED,
        metadata={"more": 1},
        strict_mode_config=models.StrictModeConfig(max_query_limit=6),
    )
    config = qdrant.get_collection(collection_name).config
    assert config.params.vectors["dense"].hnsw_config == models.HnswConfigDiff(m=0, payload_m=8)
    assert config.quantization_config is None
    assert config.metadata == {"owner": {"stack": "test"}, "more": 1}
    assert (config.strict_mode_config.enabled, config.strict_mode_config.max_query_limit) == (True, 6)


def test_a_scroll_sees_every_point_once_in_pages(qdrant: QdrantClient, points: str):
    seen: list[Any] = []
    offset = None
    while True:
        page, offset = qdrant.scroll(points, limit=3, offset=offset, with_payload=["n"], with_vectors=["dense"])
        assert all(set(record.vector) == {"dense"} and set(record.payload) == {"n"} for record in page)
        seen += [record.id for record in page]
        if offset is None:
            break
    assert seen == [0, 1, 2, 3, 4, 5, 6, A]


def test_a_scroll_in_an_order_starts_where_it_is_told(qdrant: QdrantClient, points: str):
    order = models.OrderBy(key="at", direction="desc", start_from="2026-01-05T00:00:00Z")
    page, _ = qdrant.scroll(points, limit=3, order_by=order)
    assert [record.payload["n"] for record in page] == [4, 3, 2]


def test_counts_and_facets(qdrant: QdrantClient, points: str):
    assert qdrant.count(points, where("tenant", "a"), exact=True).count == 4
    assert qdrant.count(points, where("on", True), exact=True).count == 3
    hits = qdrant.facet(points, "tenant", facet_filter=where("on", True), exact=True).hits
    assert {hit.value: hit.count for hit in hits} == {"a": 2, "b": 1}
    assert {hit.value for hit in qdrant.facet(points, "on", exact=True).hits} == {True, False}


def test_update_modes_and_conditions_of_an_upsert(qdrant: QdrantClient, points: str):
    def row(key: int, n: int) -> models.PointStruct:
        return models.PointStruct(id=key, vector={"dense": [1.0, 0.0]}, payload={"n": n})

    qdrant.upsert(points, [row(1, 101), row(50, 150)], update_mode="insert_only", wait=True)
    qdrant.upsert(points, [row(2, 102), row(51, 151)], update_mode="update_only", wait=True)
    qdrant.upsert(points, [row(3, 103), row(4, 104)], update_filter=where("tenant", "a"), wait=True)
    records = qdrant.retrieve(points, [1, 2, 3, 4, 50, 51])
    assert {record.id: record.payload["n"] for record in records} == {1: 1, 2: 102, 3: 3, 4: 104, 50: 150}
    batch = models.Batch(ids=[60, 61], vectors={"dense": [[1.0, 0.0], [0.0, 1.0]]}, payloads=[{"n": 60}, {"n": 61}])
    qdrant.upsert(points, batch, wait=True)
    assert [record.payload["n"] for record in qdrant.retrieve(points, [60, 61])] == [60, 61]


def test_payload_writes(qdrant: QdrantClient, points: str):
    qdrant.set_payload(points, {"x": {"y": 1}}, points=[1, 2], wait=True)
    qdrant.set_payload(points, {"z": 2}, points=models.Filter(must=[models.HasIdCondition(has_id=[1])]), key="x")
    qdrant.overwrite_payload(points, {"only": 1}, points=[3], wait=True)
    qdrant.delete_payload(points, ["n", "at", "on", "x"], points=[2], wait=True)
    qdrant.clear_payload(points, points_selector=[4], wait=True)
    payloads = {record.id: record.payload for record in qdrant.retrieve(points, [1, 2, 3, 4])}
    assert payloads[1]["x"] == {"y": 1, "z": 2}
    assert payloads[2] == {"tenant": "a"}
    assert payloads[3] == {"only": 1}
    assert payloads[4] == {}


def test_vectors_are_changed_and_removed(qdrant: QdrantClient, points: str):
    qdrant.update_vectors(points, [models.PointVectors(id=1, vector={"dense": [0.0, 2.0]})], wait=True)
    qdrant.delete_vectors(points, ["bm25"], points=where("tenant", "b"), wait=True)
    records = {r.id: r.vector for r in qdrant.retrieve(points, [1, 2], with_vectors=True)}
    assert records[1] == {"dense": [0.0, 1.0]}
    assert set(records[2]) == {"dense", "bm25"}


def test_a_named_vector_is_added_and_dropped(qdrant: QdrantClient, points: str):
    config = models.DenseVectorNameConfig(dense=models.DenseVectorConfig(size=3, distance="Dot"))
    qdrant.create_vector_name(points, "late", config, wait=True)
    qdrant.update_vectors(points, [models.PointVectors(id=1, vector={"late": [1.0, 2.0, 3.0]})], wait=True)
    assert qdrant.query_points(points, [1.0, 0.0, 0.0], using="late").points[0].score == 1.0
    assert set(qdrant.get_collection(points).config.params.vectors) == {"dense", "late"}
    qdrant.delete_vector_name(points, "late", wait=True)
    assert set(qdrant.get_collection(points).config.params.vectors) == {"dense"}


def test_points_are_deleted_by_ids_and_by_a_condition(qdrant: QdrantClient, points: str):
    condition = models.Filter(must=[models.HasIdCondition(has_id=[0, 1, 2]), *where("tenant", "a").must])
    qdrant.delete(points, points_selector=models.FilterSelector(filter=condition), wait=True)
    assert qdrant.count(points, exact=True).count == 6
    qdrant.delete(points, points_selector=[1, A, 999], wait=True)
    assert qdrant.count(points, exact=True).count == 4


def test_several_writes_in_one_request(qdrant: QdrantClient, points: str):
    results = qdrant.batch_update_points(
        points,
        [
            models.SetPayloadOperation(set_payload=models.SetPayload(payload={"x": 1}, points=[1])),
            models.DeleteOperation(delete=models.PointIdsList(points=[2])),
        ],
        wait=True,
    )
    assert [result.status for result in results] == ["completed", "completed"]
    assert qdrant.retrieve(points, [1, 2])[0].payload["x"] == 1


def ids(response: models.QueryResponse) -> list[Any]:
    return [point.id for point in response.points]


def test_queries(qdrant: QdrantClient, points: str):
    near = qdrant.query_points(points, [1, 0], using="dense", query_filter=where("tenant", "b"), limit=2)
    assert ids(near) == [1, 3]
    assert ids(qdrant.query_points(points, 0, using="dense", limit=2)) == [1, 2]
    recommended = models.RecommendQuery(recommend=models.RecommendInput(positive=[0], negative=[6]))
    assert ids(qdrant.query_points(points, recommended, using="dense", limit=1)) == [1]
    both = [
        models.Prefetch(query=[1.0, 0.0], using="dense", limit=4),
        models.Prefetch(query=models.SparseVector(indices=[3], values=[1.0]), using="bm25", limit=4),
    ]
    for fusion in (
        models.FusionQuery(fusion="rrf"),
        models.FusionQuery(fusion="dbsf"),
        models.RrfQuery(rrf={"k": 9}),
    ):
        assert 3 in ids(qdrant.query_points(points, fusion, prefetch=both, limit=3))
    by_n = models.OrderByQuery(order_by=models.OrderBy(key="n", direction="desc"))
    assert ids(qdrant.query_points(points, by_n, limit=2)) == [A, 6]
    boosted = models.FormulaQuery(
        formula=models.SumExpression(sum=["$score", models.MultExpression(mult=[2.0, where("on", True).must[0]])])
    )
    first = models.Prefetch(query=[0.0, 1.0], using="dense", limit=8)
    assert set(ids(qdrant.query_points(points, boosted, prefetch=first, limit=3))) == {0, 1, 2}
    diverse = models.NearestQuery(nearest=[1.0, 0.0], mmr=models.Mmr(diversity=0.5, candidates_limit=8))
    assert ids(qdrant.query_points(points, diverse, using="dense", limit=2))[0] == 0
    assert len(ids(qdrant.query_points(points, models.SampleQuery(sample="random"), limit=3))) == 3


def test_queries_in_a_batch_and_in_groups(qdrant: QdrantClient, points: str):
    request = models.QueryRequest(query=[1.0, 0.0], using="dense", limit=1, with_payload=True)
    answers = qdrant.query_batch_points(points, [request, request])
    assert [ids(answer) for answer in answers] == [[0], [0]]
    groups = qdrant.query_points_groups(points, "tenant", [1.0, 0.0], using="dense", limit=2, group_size=3).groups
    assert [(group.id, [hit.id for hit in group.hits]) for group in groups] == [("a", [0, 2, 4]), ("b", [1, 3, 5])]


def test_an_alias_moves_in_one_step(qdrant: QdrantClient, points: str):
    alias = f"alias_{points}"
    create = models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=points, alias_name=alias))
    rename = models.RenameAliasOperation(
        rename_alias=models.RenameAlias(old_alias_name=alias, new_alias_name=f"{alias}_2")
    )
    qdrant.update_collection_aliases([create, rename])
    assert [row.alias_name for row in qdrant.get_collection_aliases(points).aliases] == [f"{alias}_2"]
    assert qdrant.count(f"{alias}_2").count == 8
    missing = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=f"{points}_none", alias_name=alias)
    )
    drop = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=f"{alias}_2"))
    with pytest.raises(UnexpectedResponse):
        qdrant.update_collection_aliases([drop, missing])
    assert qdrant.count(f"{alias}_2").count == 8
    qdrant.update_collection_aliases([drop])
    assert not qdrant.get_collection_aliases(points).aliases


def test_a_payload_comes_back_as_it_was_written(qdrant: QdrantClient, points: str):
    payload = {
        "null": None, "text": "Ґанок 🏡", "whole": 2**53, "low": -(2**63), "float": 0.1, "seven": 7.0, "empty": {},
        "list": [None, True, {"a": []}], "a.b": 1,
    }  # fmt: skip
    qdrant.upsert(points, [models.PointStruct(id=9, vector={"dense": [1.0, 1.0]}, payload=payload)], wait=True)
    found = qdrant.retrieve(points, [9])[0].payload
    assert found == payload
    assert isinstance(found["seven"], float)


def test_the_client_takes_the_version_for_compatible(qdrant: QdrantClient):
    assert is_compatible(importlib.metadata.version("qdrant-client"), qdrant.info().version)
