"""Points on their way in and out, without a model object for each: this is where the volume is."""

from __future__ import annotations

from typing import Any

import numpy as np
import qdrant_edge as engine

from embedded.errors import FormatError, Unsupported, WrongInput
from embedded.parse import point_id
from embedded.storage import Collection

_INFERENCE = {"text": "a document", "image": "an image", "object": "an object"}


def vector_in(value: Any, collection: Collection) -> Any:
    """A point's vector: one unnamed, or several by name; checked against the collection's sizes."""
    if isinstance(value, dict):
        _no_inference(value)
        return {name: _named(name, item, collection) for name, item in value.items()}
    return _named("", value, collection)


def _named(name: str, value: Any, collection: Collection) -> Any:
    if isinstance(value, dict):
        return sparse_in(value)
    if not isinstance(value, list):
        raise FormatError("data did not match any variant of untagged enum VectorStruct")
    params = collection.dense.get(name)
    if params is not None:
        rows = value if value and isinstance(value[0], list) else [value]
        for row in rows:
            if len(row) != params.size:
                raise WrongInput(
                    f"Vector dimension error: expected dim: {params.size}, got {len(row)} for vector '{name}'"
                )
    return value


def _no_inference(value: dict[str, Any]) -> None:
    if "model" in value and isinstance(value["model"], str):
        kind = next((text for field, text in _INFERENCE.items() if field in value), "an object")
        raise Unsupported(f"inference: a vector made from {kind} by model `{value['model']}`")


def sparse_in(value: dict[str, Any]) -> engine.SparseVector:
    """A sparse vector."""
    _no_inference(value)
    try:
        return engine.SparseVector(value["indices"], [float(v) for v in value["values"]])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError("data did not match any variant of untagged enum VectorStruct") from error


def _point(value: Any, collection: Collection) -> engine.Point:
    if not isinstance(value, dict):
        raise FormatError("data did not match any variant of untagged enum PointInsertOperations")
    if "id" not in value:
        raise FormatError("missing field `id`")
    if "vector" not in value:
        raise FormatError("missing field `vector`")
    payload = value.get("payload")
    if payload is not None and not isinstance(payload, dict):
        raise FormatError("invalid type: expected a map as payload")
    return engine.Point(point_id(value["id"]), vector_in(value["vector"], collection), payload)


def points_in(body: dict[str, Any], collection: Collection) -> list[engine.Point]:
    """The points of an upsert, given as a list or by columns."""
    if isinstance(body.get("points"), list):
        rows = body["points"]
    elif isinstance(body.get("batch"), dict):
        rows = _rows(body["batch"])
    else:
        raise FormatError("data did not match any variant of untagged enum PointInsertOperations")
    return [_point(row, collection) for row in rows]


def _rows(batch: dict[str, Any]) -> list[dict[str, Any]]:
    ids, vectors, payloads = batch.get("ids"), batch.get("vectors"), batch.get("payloads")
    if not isinstance(ids, list) or not isinstance(vectors, list | dict):
        raise FormatError("data did not match any variant of untagged enum PointInsertOperations")
    columns = vectors.values() if isinstance(vectors, dict) else [vectors]
    if any(not isinstance(column, list) or len(column) != len(ids) for column in columns):
        raise WrongInput("number of ids and vectors must be equal")
    if payloads is not None and len(payloads) != len(ids):
        raise WrongInput("number of ids and payloads must be equal")
    return [
        {
            "id": key,
            "vector": {n: column[i] for n, column in vectors.items()} if isinstance(vectors, dict) else vectors[i],
            "payload": None if payloads is None else payloads[i],
        }
        for i, key in enumerate(ids)
    ]


def vector_out(value: Any) -> Any:
    """A vector as JSON: single precision, so that a number is as short as the server writes it."""
    if isinstance(value, dict):
        return {name: vector_out(item) for name, item in value.items()}
    if isinstance(value, list):
        return np.asarray(value, dtype=np.float32)
    if isinstance(value, engine.SparseVector):
        return {"indices": list(value.indices), "values": np.asarray(value.values, dtype=np.float32)}
    return value


def id_out(value: Any) -> int | str:
    """A point's id as JSON."""
    return value if isinstance(value, int) else str(value)


def record_out(record: Any, payload: bool, vector: bool) -> dict[str, Any]:
    """A point as a scroll or a retrieval gives it."""
    found: dict[str, Any] = {"id": id_out(record.id)}
    if payload:
        found["payload"] = record.payload or {}
    if vector:
        found["vector"] = vector_out(record.vector) if record.vector is not None else {}
    if record.order_value is not None:
        found["order_value"] = record.order_value
    return found


def scored_out(point: Any, payload: bool, vector: bool) -> dict[str, Any]:
    """A point as a query gives it."""
    return record_out(point, payload, vector) | {"version": point.version, "score": np.float32(point.score)}
