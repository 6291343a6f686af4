"""Writing points: upsert, vectors, payload, delete, and several of these in one request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import qdrant_edge as engine
from pydantic import BaseModel
from qdrant_client.http import models

from embedded import strict
from embedded.convert import to_engine
from embedded.errors import BadRequest, FormatError, UnknownVector
from embedded.keys import Access
from embedded.parse import MAX_DEPTH, parse, point_id, too_deep
from embedded.points import points_in, vector_in
from embedded.routes.base import Call, Route
from embedded.storage import Collection

Update = engine.UpdateOperation
Operation = Callable[[dict[str, Any], bytes, Collection], engine.UpdateOperation]


class _UpsertOptions(BaseModel):
    """What an upsert says besides its points."""

    update_filter: models.Filter | None = None
    update_mode: models.UpdateMode | None = None


def _upsert(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    rest = {name: value for name, value in data.items() if name not in {"points", "batch"}}
    options = parse(_UpsertOptions, rest, body)
    points = points_in(data, collection)
    if not points:
        raise BadRequest("Empty update request")
    strict.check_batch(collection, len(points), "upsert")
    strict.check_points(collection, len(points))
    strict.check_filter(collection, options.update_filter, write=True)
    return Update.upsert_points(
        points,
        None if options.update_filter is None else to_engine(options.update_filter),
        None if options.update_mode is None else to_engine(options.update_mode),
    )


def _select(
    data: dict[str, Any], body: bytes, collection: Collection, required: str
) -> tuple[list[Any] | None, Any]:
    """The points that a write names: by ids, or by a filter."""
    if isinstance(data.get("points"), list):
        return [point_id(key) for key in data["points"]], None
    if isinstance(data.get("filter"), dict):
        chosen = parse(models.FilterSelector, {"filter": data["filter"]}, body).filter
        strict.check_filter(collection, chosen, write=True)
        return None, to_engine(chosen)
    raise FormatError(required)


_NO_SELECTOR = "data did not match any variant of untagged enum PointsSelector"
_NEITHER = "either list of point ids or filter must be provided"


def _delete(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    ids, chosen = _select(data, body, collection, _NO_SELECTOR)
    return Update.delete_points_by_filter(chosen) if ids is None else Update.delete_points(ids)


def _clear_payload(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    ids, chosen = _select(data, body, collection, _NO_SELECTOR)
    return Update.clear_payload_by_filter(chosen) if ids is None else Update.clear_payload(ids)


def _payload(data: dict[str, Any], body: bytes) -> tuple[dict[str, Any], str | None]:
    payload, key = data.get("payload"), data.get("key")
    if not isinstance(payload, dict):
        raise FormatError("missing field `payload`" if payload is None else "payload: expected a map", body)
    if key is not None and not isinstance(key, str):
        raise FormatError("key: expected a JSON path", body)
    if key is not None and too_deep(payload, MAX_DEPTH - 1 - key.count(".") - key.count("[")):
        raise FormatError(f"key: under it the payload would be nested more than {MAX_DEPTH} levels deep")
    return payload, key


def _set_payload(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    payload, key = _payload(data, body)
    ids, chosen = _select(data, body, collection, _NEITHER)
    if ids is None:
        return Update.set_payload_by_filter(chosen, payload, key)
    return Update.set_payload(ids, payload, key)


def _overwrite_payload(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    payload, key = _payload(data, body)
    ids, chosen = _select(data, body, collection, _NEITHER)
    if ids is None:
        return Update.overwrite_payload_by_filter(chosen, payload, key)
    return Update.overwrite_payload(ids, payload, key)


def _names(data: dict[str, Any], field: str, body: bytes) -> list[str]:
    names = data.get(field)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f"missing field `{field}`: expected a list of names", body)
    return names


def _delete_payload(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    keys = _names(data, "keys", body)
    ids, chosen = _select(data, body, collection, _NEITHER)
    return Update.delete_payload_by_filter(chosen, keys) if ids is None else Update.delete_payload(ids, keys)


def _update_vectors(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    rows = data.get("points")
    if not isinstance(rows, list):
        raise FormatError("missing field `points`", body)
    if not rows:
        raise BadRequest("Empty update request")
    vectors = []
    for row in rows:
        if not isinstance(row, dict) or "id" not in row or "vector" not in row:
            raise FormatError("points: each needs an `id` and a `vector`", body)
        vectors.append(engine.PointVectors(point_id(row["id"]), vector_in(row["vector"], collection)))
    options = parse(_UpsertOptions, {k: v for k, v in data.items() if k != "points"}, body)
    strict.check_filter(collection, options.update_filter, write=True)
    chosen = None if options.update_filter is None else to_engine(options.update_filter)
    return Update.update_vectors(vectors, chosen)


def _delete_vectors(data: dict[str, Any], body: bytes, collection: Collection) -> engine.UpdateOperation:
    names = _names(data, "vector", body)
    for name in names:
        if name not in collection.dense and name not in collection.sparse:
            raise UnknownVector(name)
    ids, chosen = _select(data, body, collection, _NEITHER)
    return Update.delete_vectors_by_filter(chosen, names) if ids is None else Update.delete_vectors(ids, names)


_OPERATIONS: dict[str, Operation] = {
    "upsert": _upsert,
    "delete": _delete,
    "set_payload": _set_payload,
    "overwrite_payload": _overwrite_payload,
    "delete_payload": _delete_payload,
    "clear_payload": _clear_payload,
    "update_vectors": _update_vectors,
    "delete_vectors": _delete_vectors,
}


_BY_FILTER = 1_000


def _size(data: dict[str, Any]) -> int:
    """About how many points a write touches; of a filter it is not known beforehand."""
    points = data.get("points", data.get("batch"))
    if isinstance(points, dict):
        points = points.get("ids")
    return len(points) if isinstance(points, list) else _BY_FILTER


def _handler(operation: Operation) -> Callable[[Call], dict[str, Any]]:
    def handle(call: Call) -> dict[str, Any]:
        data = call.json
        collection = call.collection(Access.WRITE)
        with collection.lock:  # what was checked against the collection's vectors still holds when it is written
            try:
                built = operation(data, call.body, collection)
            except UnknownVector:
                collection.update(Update.delete_points([]))
                raise
            return call.done(collection.update(built, points=_size(data)))

    return handle


def _batch(call: Call) -> list[dict[str, Any]]:
    rows = call.json.get("operations")
    if not isinstance(rows, list):
        raise FormatError("missing field `operations`", call.body)
    collection = call.collection(Access.WRITE)
    with collection.lock:
        built = []
        for row in rows:
            if not isinstance(row, dict) or len(row) != 1 or next(iter(row)) not in _OPERATIONS:
                raise FormatError("data did not match any variant of untagged enum UpdateOperation", call.body)
            ((kind, data),) = row.items()
            if not isinstance(data, dict):
                raise FormatError(f"{kind}: expected an object", call.body)
            built.append(_OPERATIONS[kind](data, call.body, collection))
        return [call.done(collection.update(operation)) for operation in built]


ROUTES = [
    Route("PUT", "/collections/{name}/points", _handler(_upsert)),
    Route("POST", "/collections/{name}/points/delete", _handler(_delete)),
    Route("PUT", "/collections/{name}/points/vectors", _handler(_update_vectors)),
    Route("POST", "/collections/{name}/points/vectors/delete", _handler(_delete_vectors)),
    Route("POST", "/collections/{name}/points/payload", _handler(_set_payload)),
    Route("PUT", "/collections/{name}/points/payload", _handler(_overwrite_payload)),
    Route("POST", "/collections/{name}/points/payload/delete", _handler(_delete_payload)),
    Route("POST", "/collections/{name}/points/payload/clear", _handler(_clear_payload)),
    Route("POST", "/collections/{name}/points/batch", _batch),
]
