"""Sends the recorded requests to an endpoint and compares each answer with the one a server gave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

DATA = Path(__file__).parent / "data"
RECORDING = DATA / "qdrant_rest_1.19.jsonl"
DIFFERENCES = DATA / "replay_differences.json"
TOLERANCE = 1e-6
# The collection `bad` is made by two recorded requests, and the second says nothing of the first: it was deleted in
# between, by a request that is not in the recording.
UNRECORDED = {"create unknown field": ("DELETE", "/collections/bad")}


def recording() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDING.read_text().splitlines()]


def replay(url: str, keyed_url: str) -> dict[str, list[str]]:
    """For each request, the places in which its answer is not the recorded one."""
    found = {}
    with httpx.Client(timeout=60) as client:
        for entry in recording():
            base = keyed_url if entry["name"].startswith("keyed ") else url
            if entry["name"] in UNRECORDED:
                method, path = UNRECORDED[entry["name"]]
                client.request(method, base + path).raise_for_status()
            found[entry["name"]] = _places(client, base, entry)
    return found


def _places(client: httpx.Client, base: str, entry: dict[str, Any]) -> list[str]:
    request, expected = entry["request"], entry["response"]
    headers = dict(request["headers"])
    content = None
    if request["body"] is not None:
        # The spacing of the recorder: the column in an error counts it.
        content = json.dumps(request["body"])
        headers["content-type"] = "application/json"
    answer = client.request(request["method"], base + request["path"], content=content, headers=headers)
    places = [] if answer.status_code == expected["status"] else ["status"]
    actual = _body(answer)
    if isinstance(actual, dict):
        actual.pop("time", None)
    places += _different(_normal(actual, request), _normal(expected["body"], request), "body")
    return places


def _body(answer: httpx.Response) -> Any:
    if not answer.content:
        return None
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()
    return answer.text


def _normal(body: Any, request: dict[str, Any]) -> Any:
    """Without what two servers differ in too: the id of the peer, and the order of points of one order value."""
    if not isinstance(body, dict) or not isinstance(body.get("result"), dict):
        return body
    result = dict(body["result"])
    if "peer_id" in result:
        assert isinstance(result["peer_id"], int)
        result["peer_id"] = 0
    if "order_by" in (request["body"] or {}) and "points" in result:
        points = sorted(result["points"], key=lambda point: (point["order_value"], str(point["id"])))
        if request["body"].get("order_by", {}).get("direction") == "desc":
            points.reverse()
        # Which of the points of the last value come before the limit is open as well.
        last = points[-1]["order_value"]
        result["points"] = [p | {"id": "any of its value"} if p["order_value"] == last else p for p in points]
    return body | {"result": result}


def _different(actual: Any, expected: Any, path: str) -> Iterator[str]:
    if isinstance(actual, dict) and isinstance(expected, dict):
        for key in sorted(actual.keys() | expected.keys()):
            if key in actual and key in expected:
                yield from _different(actual[key], expected[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        for i, pair in enumerate(zip(actual, expected, strict=True)):
            yield from _different(*pair, f"{path}[{i}]")
    elif isinstance(actual, float) and isinstance(expected, int | float) and not isinstance(expected, bool):
        if abs(actual - expected) > TOLERANCE:
            yield path
    elif type(actual) is not type(expected) or actual != expected:
        yield path
