"""Points on their way in and out, without a model object for each: this is where the volume is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import qdrant_edge as engine

from embedded.errors import FormatError, UnknownVector, Unsupported, ValidationFailed, WrongInput
from embedded.parse import are_numbers, point_id
from embedded.storage import Collection

_NO_VECTOR = "data did not match any variant of untagged enum VectorStruct"
_INFERENCE = {"text": "a document", "image": "an image", "object": "an object"}


def vector_in(value: Any, collection: Collection) -> Any:
    """A point's vector: one unnamed, or several by name; checked against the collection's vectors.

    Whatever the engine refuses of it has to be refused here: the engine writes an operation to its log before it
    looks at it, and a replay of the log does not refuse but carries out what it can, over what was there.
    """
    if isinstance(value, dict):
        _no_inference(value)
        return {name: _named(name, item, collection) for name, item in value.items()}
    return _named("", value, collection)


def _named(name: str, value: Any, collection: Collection) -> Any:
    made = sparse_in(value) if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        raise FormatError(_NO_VECTOR)
    params = collection.dense.get(name)
    if params is None and name not in collection.sparse:
        raise UnknownVector(name)
    if isinstance(value, dict) != (params is None):
        raise WrongInput(f"Wrong usage of sparse vectors for vector '{name}'")
    if params is None:
        return made
    several = bool(value) and isinstance(value[0], list)
    if several and params.multivector_config is None:
        raise WrongInput(f"Wrong usage of multi vectors for vector '{name}'")
    for row in value if several else [value]:
        if not isinstance(row, list) or not are_numbers(row):
            raise FormatError(_NO_VECTOR)
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
    """A sparse vector as it stands in a request."""
    _no_inference(value)
    indices, values = value.get("indices"), value.get("values")
    if not isinstance(indices, list) or not isinstance(values, list):
        raise FormatError(_NO_VECTOR)
    if not are_numbers(values) or not all(type(i) is int and 0 <= i < 2**32 for i in indices):
        raise FormatError(_NO_VECTOR)
    return sparse_vector(indices, values)


def sparse_vector(indices: Sequence[int], values: Sequence[float]) -> engine.SparseVector:
    """A sparse vector whose parts fit together: the engine does not look, and fails for good when it reads one of
    different lengths.
    """
    if len(indices) != len(values):
        raise ValidationFailed("vector.values", "must be the same length as indices")
    if len(set(indices)) != len(indices):
        raise ValidationFailed("vector.indices", "must be unique")
    return engine.SparseVector(list(indices), [float(v) for v in values])


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
