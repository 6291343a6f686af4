"""Tokens in place of keys: what each claim lets its holder do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest

pytestmark = pytest.mark.embedded_only("starts an endpoint with keys")
KEY = "the-admin-key-with-more-than-thirty-two-bytes"
DAY = 24 * 3600


def signed(key: str = KEY, **claims: Any) -> str:
    # Some are made when the tests are collected, long before their turn.
    return jwt.encode({"exp": int(time.time()) + DAY, **claims}, key, "HS256")


MINE = signed(access=[{"collection": "mine", "access": "rw"}, {"collection": "seen", "access": "r"}])


@pytest.fixture(scope="module")
def url(start_endpoint: Callable[..., Any]) -> str:
    endpoint = start_endpoint(api_key=KEY, read_only_api_key="the-reader-key", jwt_rbac="true")
    for name in ("mine", "seen", "other"):
        body = {"vectors": {"size": 2, "distance": "Dot"}}
        httpx.put(f"{endpoint.url}/collections/{name}", json=body, headers={"api-key": KEY}).raise_for_status()
        action = {"create_alias": {"collection_name": name, "alias_name": f"alias_{name}"}}
        body = {"actions": [action]}
        httpx.post(f"{endpoint.url}/collections/aliases", json=body, headers={"api-key": KEY}).raise_for_status()
    return str(endpoint.url)


def ask(url: str, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = httpx.request(method, url + path, json=body, headers={"api-key": token})
    if not answer.headers["content-type"].startswith("application/json"):
        return answer.status_code, answer.text
    found = answer.json()
    return answer.status_code, found.get("result") if answer.is_success else found["status"]["error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/collections/mine", None, 200),
        ("PUT", "/collections/mine/points", {"points": [{"id": 1, "vector": [1, 2]}]}, 200),
        ("PUT", "/collections/mine/index", {"field_name": "a", "field_schema": "keyword"}, 200),
        ("POST", "/collections/mine/points/delete", {"filter": {}}, 200),
        ("PATCH", "/collections/mine", {"metadata": {"a": 1}}, 403),
        ("DELETE", "/collections/mine", None, 403),
        ("PUT", "/collections/new", {}, 403),
        ("POST", "/collections/seen/points/count", {}, 200),
        ("POST", "/collections/seen/points/delete", {"filter": {}}, 403),
        ("GET", "/collections/other", None, 403),
        ("GET", "/collections/alias_mine", None, 403),
        ("GET", "/collections/other/exists", None, 403),
        ("GET", "/collections/there_is_none", None, 403),
        ("POST", "/collections/aliases", {"actions": []}, 403),
        ("GET", "/metrics", None, 403),
        ("GET", "/telemetry", None, 403),
        ("GET", "/cluster", None, 403),
        ("GET", "/readyz", None, 200),
    ],
)
def test_a_token_for_collections(url: str, method: str, path: str, body: Any, status: int):
    answered, said = ask(url, MINE, method, path, body)
    assert answered == status, said


def test_a_token_for_collections_sees_no_others(url: str):
    assert ask(url, MINE, "GET", "/collections") == (200, {"collections": [{"name": "mine"}, {"name": "seen"}]})
    _, aliases = ask(url, MINE, "GET", "/aliases")
    assert [row["collection_name"] for row in aliases["aliases"]] == ["mine", "seen"]
    query = {"query": 1, "lookup_from": {"collection": "other"}}
    status, said = ask(url, MINE, "POST", "/collections/mine/points/query", query)
    assert (status, said) == (403, "Forbidden: Access to collection other is required")


@pytest.mark.parametrize(
    ("claims", "reads", "writes"), [({"access": "r"}, 200, 403), ({"access": "m"}, 200, 200), ({}, 200, 200)]
)
def test_a_token_for_everything_and_one_without_the_claim(url: str, claims: Any, reads: int, writes: int):
    token = signed(**claims)
    assert ask(url, token, "GET", "/metrics")[0] == reads
    assert ask(url, token, "PATCH", "/collections/other", {"metadata": {"a": 1}})[0] == writes


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (signed("another-key-with-more-than-thirty-two-bytes", access="m"), 401),
        (jwt.encode({"access": "m"}, "", "none"), 401),
        (signed(access="everything"), 401),
        (signed(access="r", exp=int(time.time()) - DAY), 403),
        (signed(access="r", value_exists={"collection": "mine", "matches": []}), 403),
        (signed(access="r")[:-4], 401),
    ],
)
def test_a_token_that_is_not_taken(url: str, token: str, status: int):
    assert ask(url, token, "GET", "/collections")[0] == status


def test_without_the_setting_no_token_is_taken(start_endpoint: Callable[..., Any]):
    assert ask(start_endpoint(api_key=KEY).url, signed(access="m"), "GET", "/collections")[0] == 401
