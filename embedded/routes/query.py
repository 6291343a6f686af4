"""Queries: one, several at once, and grouped by a payload field."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import qdrant_edge as engine
from qdrant_client.http import models

from embedded import strict
from embedded.errors import Unsupported
from embedded.parse import at_least, parse
from embedded.points import record_out, scored_out
from embedded.query import query_request, widen
from embedded.routes.base import Call, Route
from embedded.routes.points import selector
from embedded.storage import Collection

_GROUPS = 10
_GROUP_SIZE = 3


def _search(collection: Collection, built: engine.QueryRequest) -> list[engine.ScoredPoint]:
    return collection.read(lambda shard: shard.query(built))


def _run(call: Call, collection: Collection, request: models.QueryRequest) -> list[dict[str, Any]]:
    built = query_request(call.store, collection, request)
    found = _search(collection, built)
    payload, vector = request.with_payload not in (None, False), request.with_vector not in (None, False)
    return [scored_out(point, payload, vector) for point in found]


def _query(call: Call) -> dict[str, Any]:
    request = parse(models.QueryRequest, widen(call.json), call.body)
    at_least("query_request.limit", request.limit, 1)
    return {"points": _run(call, call.collection(), request)}


def _batch(call: Call) -> list[dict[str, Any]]:
    request = parse(models.QueryRequestBatch, widen(call.json), call.body)
    collection = call.collection()
    strict.check_batch(collection, len(request.searches), "search")
    for i, search in enumerate(request.searches):
        at_least(f"query_request_batch.searches[{i}].limit", search.limit, 1)
    return [{"points": _run(call, collection, search)} for search in request.searches]


def _at(payload: Any, path: list[str]) -> list[Any]:
    if not path:
        return payload if isinstance(payload, list) else [payload]
    name = path[0].removesuffix("[]").strip('"')
    if isinstance(payload, list):
        return [value for item in payload for value in _at(item, path)]
    return _at(payload[name], path[1:]) if isinstance(payload, dict) and name in payload else []


def _ties_by_id(hits: list[Any]) -> list[Any]:
    """Hits of one score in the order of their ids, so that a group's best does not depend on chance."""
    ordered: list[Any] = []
    for _, run in groupby(hits, key=lambda hit: hit.score):
        ordered += sorted(
            run, key=lambda hit: (isinstance(hit.id, str), hit.id if isinstance(hit.id, int) else 0, str(hit.id))
        )
    return ordered


def _grouped(points: list[dict[str, Any]], path: list[str], groups: int, size: int) -> list[dict[str, Any]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for point in points:
        for value in _at(point["group"], path):
            if isinstance(value, bool) or not isinstance(value, str | int):
                continue
            if value not in found and len(found) == groups:
                continue
            hits = found.setdefault(value, [])
            if len(hits) < size and point not in hits:
                hits.append(point)
    return [{"id": value, "hits": hits} for value, hits in found.items()]


def _groups(call: Call) -> dict[str, Any]:
    request = parse(models.QueryGroupsRequest, widen(call.json), call.body)
    at_least("query_groups_request.limit", request.limit, 1)
    at_least("query_groups_request.group_size", request.group_size, 1)
    if request.with_lookup is not None:
        raise Unsupported("`with_lookup` of a grouped query")
    collection = call.collection()
    groups, size = request.limit or _GROUPS, request.group_size or _GROUP_SIZE
    strict.check_limit(collection, groups)
    strict.check_limit(collection, size, "group_size")
    common = {
        name: getattr(request, name)
        for name in ("prefetch", "query", "using", "filter", "params", "score_threshold", "lookup_from")
    }
    path = request.group_by.split(".")
    total = collection.read(lambda shard: shard.info()).points_count
    step = groups * size * 2
    while True:
        inner = models.QueryRequest.model_construct(
            **common, limit=step, offset=None, with_payload=[path[0].removesuffix("[]")], with_vector=False
        )
        built = query_request(call.store, collection, inner, limited=False)
        hits = _ties_by_id(_search(collection, built))
        rows = [{"id": hit.id, "group": hit.payload or {}, "hit": hit} for hit in hits]
        found = _grouped(rows, path, groups, size)
        full = len(found) == groups and all(len(group["hits"]) == size for group in found)
        if full or len(hits) < step or step >= total:
            break
        step *= 4
    return {"groups": _dressed(collection, found, request)}


def _dressed(
    collection: Collection, groups: list[dict[str, Any]], request: models.QueryGroupsRequest
) -> list[dict[str, Any]]:
    """The groups with the payload and the vectors that were asked for."""
    payload, vector = selector(request.with_payload, False), selector(request.with_vector, False)
    keys = list({row["id"]: None for group in groups for row in group["hits"]})
    records = {r.id: r for r in collection.read(lambda shard: shard.retrieve(keys, payload, vector))}
    for group in groups:
        group["hits"] = [
            scored_out(row["hit"], payload=False, vector=False)
            | record_out(records[row["id"]], payload is not False, vector is not False)
            for row in group["hits"]
            if row["id"] in records
        ]
    return groups


ROUTES = [
    Route("POST", "/collections/{name}/points/query", _query),
    Route("POST", "/collections/{name}/points/query/batch", _batch),
    Route("POST", "/collections/{name}/points/query/groups", _groups),
]
