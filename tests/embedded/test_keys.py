"""The API key and the read-only key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from embedded.keys import Access, Keys, Rights, Unauthorized

pytestmark = pytest.mark.embedded_only("starts an endpoint with keys")
BOTH = Keys("the-admin-key", "the-reader-key")


@pytest.fixture(scope="module")
def keyed(start_endpoint: Callable[..., Any]) -> Any:
    endpoint = start_endpoint(api_key="the-admin-key", read_only_api_key="the-reader-key")
    body = {"vectors": {"size": 2, "distance": "Dot"}}
    httpx.put(endpoint.url + "/collections/c", json=body, headers={"api-key": "the-admin-key"}).raise_for_status()
    return endpoint


def test_a_key_gives_what_it_is_for():
    assert BOTH.rights("/collections", {"api-key": "the-admin-key"}) == Rights(Access.MANAGE)
    assert BOTH.rights("/collections", {"authorization": "bearer the-admin-key"}) == Rights(Access.MANAGE)
    assert BOTH.rights("/collections", {"api-key": "the-reader-key"}) == Rights(Access.READ)
    assert Keys().rights("/collections", {}) == Rights(Access.MANAGE)


@pytest.mark.parametrize(
    "headers", [{}, {"api-key": ""}, {"api-key": "the-admin-ke"}, {"authorization": "Basic x"}]
)
def test_no_key_or_a_wrong_one_is_refused(headers: dict[str, str]):
    with pytest.raises(Unauthorized):
        BOTH.rights("/collections", headers)


def test_a_key_that_is_not_ascii_is_refused_and_breaks_nothing():
    with pytest.raises(Unauthorized):
        BOTH.rights("/collections", {"api-key": "ключ"})


def test_a_key_is_not_in_the_text_of_its_holder():
    assert "the-admin-key" not in repr(BOTH)


@pytest.mark.parametrize("path", ["/", "/healthz", "/livez", "/readyz"])
def test_a_probe_needs_no_key(keyed: Any, path: str):
    assert httpx.get(keyed.url + path).status_code == 200


def test_metrics_need_a_key(keyed: Any):
    assert httpx.get(keyed.url + "/metrics").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/collections/d", {}),
        ("DELETE", "/collections/c", None),
        ("PATCH", "/collections/c", {"metadata": {"a": 1}}),
        ("POST", "/collections/aliases", {"actions": []}),
        ("PUT", "/collections/c/index", {"field_name": "a", "field_schema": "keyword"}),
        ("DELETE", "/collections/c/index/a", None),
        ("PUT", "/collections/c/vectors/v", {"sparse": {}}),
        ("PUT", "/collections/c/points", {"points": [{"id": 1, "vector": [1, 2]}]}),
        ("POST", "/collections/c/points/delete", {"filter": {}}),
        ("POST", "/collections/c/points/payload", {"payload": {}, "points": [1]}),
        ("POST", "/collections/c/points/batch", {"operations": []}),
    ],
)
def test_the_reader_may_not_write(keyed: Any, method: str, path: str, body: Any):
    answer = httpx.request(method, keyed.url + path, json=body, headers={"api-key": "the-reader-key"})
    assert answer.status_code == 403
    assert answer.json()["status"]["error"].startswith("Forbidden: ")


@pytest.mark.parametrize("path", ["", "/points/scroll", "/points/count", "/points/query"])
def test_the_reader_may_read(keyed: Any, path: str):
    method = "POST" if path else "GET"
    body = {"query": [1, 2]} if path.endswith("query") else {}
    answer = httpx.request(
        method, f"{keyed.url}/collections/c{path}", json=body, headers={"api-key": "the-reader-key"}
    )
    assert answer.status_code == 200


def test_no_key_is_in_the_log_or_on_the_command_line(keyed: Any):
    httpx.get(keyed.url + "/collections", headers={"api-key": "the-wrong-key"})
    log = (keyed.folder.parent / f"{keyed.folder.name}.log").read_text()
    assert "with keys" in log
    command = Path(f"/proc/{keyed.process.pid}/cmdline").read_text()
    assert not [key for key in ("the-admin-key", "the-reader-key", "the-wrong-key") if key in log + command]
