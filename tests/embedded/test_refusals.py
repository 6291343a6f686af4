"""What the endpoint does not do is said by name, and what it cannot read is said where."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from embedded.routes.unsupported import FEATURES

pytestmark = pytest.mark.embedded_only("a server does these things")


@pytest.fixture
def collection(qdrant_url: str, collection_name: str) -> str:
    body = {"vectors": {"dense": {"size": 2, "distance": "Dot"}}}
    httpx.put(f"{qdrant_url}/collections/{collection_name}", json=body).raise_for_status()
    return f"{qdrant_url}/collections/{collection_name}"


def error_of(answer: httpx.Response) -> str:
    text: str = answer.json()["status"]["error"]
    return text


@pytest.mark.parametrize(("method", "path"), FEATURES)
def test_a_path_of_a_server_that_is_not_served_names_the_feature(qdrant_url: str, method: str, path: str):
    for name in ("name", "snapshot", "shard", "peer"):
        path = path.replace(f"{{{name}}}", "x")
    answer = httpx.request(method, qdrant_url + path, json={} if method in {"POST", "PUT"} else None)
    assert answer.status_code == 501
    assert error_of(answer).startswith("Not supported by the embedded endpoint: ")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"shard_number": 2}, "shard_number 2"),
        ({"replication_factor": 3}, "replication_factor 3"),
        ({"sharding_method": "custom"}, "sharding_method `custom`"),
    ],
)
def test_a_setting_that_one_process_cannot_give_is_refused_by_name(
    qdrant_url: str, body: dict[str, Any], named: str
):
    given = {"vectors": {"a": {"size": 2, "distance": "Dot"}}} | body
    answer = httpx.put(f"{qdrant_url}/collections/refused", json=given)
    assert answer.status_code == 501
    assert named in error_of(answer)
    assert httpx.get(f"{qdrant_url}/collections/refused").status_code == 404


def test_inference_is_refused_by_name(collection: str):
    document = {"text": "hello", "model": "some/model"}
    point = {"points": [{"id": 1, "vector": {"dense": document}}]}
    for answer in (
        httpx.put(f"{collection}/points", json=point),
        httpx.post(f"{collection}/points/query", json={"query": document, "using": "dense"}),
    ):
        assert answer.status_code == 501
        assert "inference" in error_of(answer)
        assert "some/model" in error_of(answer)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("points/scroll", {"shard_key": "a"}),
        ("points/delete", {"points": [1], "shard_key": ["a"]}),
        ("points/query/batch", {"searches": [{"query": [1, 2], "using": "dense", "shard_key": "a"}]}),
        ("points/batch", {"operations": [{"delete": {"points": [1], "shard_key": "a"}}]}),
    ],
)
def test_a_shard_key_is_refused_and_not_taken_for_everything(collection: str, path: str, body: dict[str, Any]):
    answer = httpx.post(f"{collection}/{path}", json=body)
    assert answer.status_code == 501
    assert "shard_key" in error_of(answer)


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("points/scroll", "{", 400, "Format error in JSON body: "),
        ("points/scroll", "[]", 400, "Format error in JSON body: "),
        ("points/scroll", '{"limit": "many"}', 400, "limit"),
        ("points/query", '{"limit": 0}', 422, "value 0 invalid"),
        ("points/count", '{"filter": {"must": [{"has_id": ["nope"]}]}}', 400, "value nope is not a valid point ID"),
        ("points/payload", '{"payload": {"a": 1}}', 400, "either list of point ids or filter"),
        ("points/payload", '{"points": [1]}', 400, "missing field `payload`"),
        (
            "points/vectors/delete",
            '{"vector": ["other"], "points": [1]}',
            400,
            "Not existing vector name error: other",
        ),
        ("points/batch", '{"operations": [{"explode": {}}]}', 400, "UpdateOperation"),
        ("points/query", '{"query": [1, 2, 3], "using": "dense"}', 400, "expected dim: 2, got 3"),
        ("points/query", '{"query": {"fusion": "rrf"}}', 400, "Wrong input: "),
        (
            "points/query",
            '{"query": {"indices": [1, 2], "values": [1]}}',
            422,
            "must be the same length as indices",
        ),
        ("points/query", '{"query": [[1, 2], [3]], "using": "dense"}', 400, "Format error in JSON body: 'query'"),
        ("points/query", '{"query": [1, 2], "using": "dense", "offset": -1}', 400, "'offset': can't convert"),
        ("points/count", '{"filter": {"must": [{"is_null": {"key": "a[b"}}]}}', 400, "invalid JSON path a[b"),
        ("points/payload", '{"payload": {}, "key": "a[b", "points": [1]}', 400, "'key': invalid JSON path a[b"),
        ("points/payload/delete", '{"keys": [""], "points": [1]}', 400, "'keys': invalid JSON path"),
        ("points/payload", '{"payload": {}, "points": [1]}', 404, "No point with id 1"),
    ],
)
def test_a_request_that_cannot_be_carried_out_says_why(
    collection: str, path: str, body: str, status: int, text: str
):
    answer = httpx.post(f"{collection}/{path}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert text in error_of(answer)


def nested(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = [inner]
    return inner


def test_what_is_nested_deeper_than_a_server_reads_is_refused_and_never_stored(collection: str):
    def upsert(value: Any) -> tuple[str, str, Any]:
        return "PUT", "points", {"points": [{"id": 1, "vector": {"dense": [1, 2]}, "payload": {"deep": value}}]}

    def under(key: str, value: Any) -> tuple[str, str, Any]:
        return "POST", "points/payload", {"payload": {"deep": value}, "key": key, "points": [1]}

    deep_filter: dict[str, Any] = {"must": []}
    for _ in range(300):
        deep_filter = {"must": [deep_filter]}
    for (method, path, body), status in (
        (upsert(nested(123)), 200),
        (upsert(nested(124)), 400),
        (upsert(nested(500)), 400),
        (under("a.b", nested(124)), 200),
        (under("a.b", nested(125)), 400),
        (under(".".join("a" * 126), 1), 200),
        (under(".".join("a" * 127), 1), 400),
        (("POST", "points/scroll", {"filter": deep_filter}), 400),
    ):
        answer = httpx.request(method, f"{collection}/{path}", json=body)
        assert answer.status_code == status, answer.text
        assert httpx.post(f"{collection}/points/scroll", json={}).status_code == 200


@pytest.mark.parametrize("text", ["x", "-1", "%C2%B2", "%D9%A1", "1.0"])
def test_a_point_is_asked_for_by_a_number_or_a_uuid(collection: str, text: str):
    answer = httpx.get(f"{collection}/points/{text}")
    assert answer.status_code == 400
    assert "is not a valid point ID" in error_of(answer)


def test_unknown_fields_are_ignored_outside_a_filter(collection: str):
    body = {"filter": {"must": [{"key": "a", "match": {"value": 1}, "extra": 1}]}, "bogus": [1], "limit": 3}
    assert httpx.post(f"{collection}/points/scroll", json=body).status_code == 200
    nested = {"hnsw_config": {"m": 8, "bogus": 1}, "optimizers_config": {"unheard_of": True}}
    assert httpx.patch(collection, json=nested).status_code == 200
    assert httpx.get(collection).json()["result"]["config"]["hnsw_config"]["m"] == 8
    body["filter"] = {"must": [{"must": [], "mustard": []}]}
    answer = httpx.post(f"{collection}/points/scroll", json=body)
    assert answer.status_code == 400
    assert "unknown field `mustard`" in error_of(answer)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"hnsw_config": {"ef_construct": 3}}, "hnsw_config.ef_construct: value 3 invalid"),
        (
            {"optimizers_config": {"deleted_threshold": 1.5}},
            "optimizers_config.deleted_threshold: value 1.5 invalid",
        ),
        ({"optimizers_config": {"vacuum_min_vector_number": 1}}, "vacuum_min_vector_number: value 1 invalid"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(collection: str, settings: dict[str, Any], text: str):
    answer = httpx.patch(collection, json=settings)
    assert answer.status_code == 422
    assert text in error_of(answer)
