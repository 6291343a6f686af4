"""Reading points: by id, by page, counted, and counted by value."""

from __future__ import annotations

from typing import Any

import qdrant_edge as engine
from qdrant_client.http import models

from embedded import strict
from embedded.convert import to_engine
from embedded.errors import NotFound
from embedded.parse import at_least, point_id
from embedded.points import id_out, record_out
from embedded.query import order_by
from embedded.routes.base import Call, Route

_PAGE = 10


def selector(value: Any, default: bool) -> Any:
    """`with_payload` or `with_vector` for the engine."""
    return default if value is None else to_engine(value)


def condition(value: models.Filter | None) -> Any:
    """A filter for the engine."""
    return None if value is None else to_engine(value)


def _one(call: Call) -> dict[str, Any]:
    collection = call.collection()
    text = call.path["id"]
    key = point_id(int(text) if text.isascii() and text.isdigit() else text)
    found = collection.read(lambda shard: shard.retrieve([key], True, True))
    if not found:
        raise NotFound(f"Point with id {key} does not exists!")
    return record_out(found[0], payload=True, vector=True)


def _retrieve(call: Call) -> list[dict[str, Any]]:
    request = call.parse(models.PointRequest)
    collection = call.collection()
    keys: list[Any] = [point_id(key) for key in request.ids]
    payload, vector = selector(request.with_payload, True), selector(request.with_vector, False)
    found = collection.read(lambda shard: shard.retrieve(keys, payload, vector))
    return [record_out(r, payload is not False, vector is not False) for r in found]


def _scroll(call: Call) -> dict[str, Any]:
    request = call.parse(models.ScrollRequest)
    at_least("scroll_request.limit", request.limit, 1)
    collection = call.collection()
    limit = _PAGE if request.limit is None else request.limit
    strict.check_limit(collection, limit)
    strict.check_filter(collection, request.filter)
    payload, vector = selector(request.with_payload, True), selector(request.with_vector, False)
    scroll = engine.ScrollRequest(
        offset=None if request.offset is None else point_id(request.offset),
        limit=limit,
        filter=condition(request.filter),
        with_payload=payload,
        with_vector=vector,
        order_by=None if request.order_by is None else order_by(request.order_by),
    )
    found, offset = collection.read(lambda shard: shard.scroll(scroll))
    return {
        "points": [record_out(r, payload is not False, vector is not False) for r in found],
        "next_page_offset": None if offset is None else id_out(offset),
    }


def _count(call: Call) -> dict[str, Any]:
    request = call.parse(models.CountRequest)
    collection = call.collection()
    strict.check_filter(collection, request.filter)
    count = engine.CountRequest(request.exact is not False, condition(request.filter))
    return {"count": collection.read(lambda shard: shard.count(count))}


def _facet(call: Call) -> dict[str, Any]:
    request = call.parse(models.FacetRequest)
    at_least("facet_request.limit", request.limit, 1)
    collection = call.collection()
    strict.check_filter(collection, request.filter)
    facet = engine.FacetRequest(
        request.key,
        _PAGE if request.limit is None else request.limit,
        bool(request.exact),
        condition(request.filter),
    )
    hits = collection.read(lambda shard: shard.facet(facet)).hits
    return {"hits": [{"value": hit.value, "count": hit.count} for hit in hits]}


ROUTES = [
    Route("GET", "/collections/{name}/points/{id}", _one),
    Route("POST", "/collections/{name}/points", _retrieve),
    Route("POST", "/collections/{name}/points/scroll", _scroll),
    Route("POST", "/collections/{name}/points/count", _count),
    Route("POST", "/collections/{name}/facet", _facet),
]
