"""A collection's settings as JSON: the server's defaults, what a create gives, what a patch changes."""

from __future__ import annotations

from typing import Any

import qdrant_edge as engine
from pydantic import BaseModel
from qdrant_client.http import models

from embedded.convert import build, to_engine
from embedded.errors import Unsupported, ValidationFailed, WrongInput

_HNSW = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000, "max_indexing_threads": 0, "on_disk": False}
_OPTIMIZERS = {
    "deleted_threshold": 0.2,
    "vacuum_min_vector_number": 1000,
    "default_segment_number": 0,
    "max_segment_size": None,
    "memmap_threshold": None,
    "indexing_threshold": 10000,
    "flush_interval_sec": 5,
    "max_optimization_threads": None,
    "prevent_unoptimized": None,
}
_WAL = {"wal_capacity_mb": 32, "wal_segments_ahead": 0, "wal_retain_closed": 1}
# The lowest value a server takes, by the name of the field.
_LOWEST = {"ef_construct": 4, "full_scan_threshold": 10, "vacuum_min_vector_number": 100, "shard_number": 1,
           "replication_factor": 1, "write_consistency_factor": 1, "wal_capacity_mb": 1}  # fmt: skip
# What only the engine's optimizer has no use for; a server keeps and reports it, and so does this endpoint.
_UNUSED_BY_ENGINE = ("memmap_threshold", "flush_interval_sec", "max_optimization_threads")
MAX_SIZE = 65536
_PLACEHOLDER = "no-vectors"


def dump(model: BaseModel) -> dict[str, Any]:
    """A model's JSON without what is not set."""
    return model.model_dump(mode="json", exclude_none=True, by_alias=True)


def _check(model: BaseModel, path: str) -> None:
    for name in type(model).model_fields:
        value = getattr(model, name)
        at = f"{path}.{name}" if path else name
        if isinstance(value, BaseModel):
            _check(value, at)
        elif isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, BaseModel):
                    _check(item, f"{at}.{key}")
        elif name in _LOWEST and isinstance(value, int) and value < _LOWEST[name]:
            raise ValidationFailed(at, f"value {value} invalid, must be {_LOWEST[name]} or larger")
        elif name == "deleted_threshold" and value is not None and not 0.0 <= value <= 1.0:
            raise ValidationFailed(at, f"value {value} invalid, must be from 0.0 to 1.0")
        elif isinstance(model, models.VectorParams) and name == "size" and not 1 <= value <= MAX_SIZE:
            raise ValidationFailed(at, f"value {value} invalid, must be from 1 to {MAX_SIZE}")


def create(request: models.CreateCollection) -> dict[str, Any]:
    """The `config` that a server reports for a collection made by `request`.

    Raises `ValidationFailed` for a value out of range and `Unsupported` for what one process cannot give.
    """
    _check(request, "")
    if (request.shard_number or 1) > 1:
        raise Unsupported(f"shard_number {request.shard_number}: it keeps one shard a collection")
    if (request.replication_factor or 1) > 1:
        raise Unsupported(f"replication_factor {request.replication_factor}: it is one process")
    if request.sharding_method == models.ShardingMethod.CUSTOM:
        raise Unsupported("sharding_method `custom`: it keeps one shard a collection")
    given = dump(request)
    params = {
        "vectors": given.get("vectors", {}),
        "shard_number": 1,
        "replication_factor": 1,
        "write_consistency_factor": given.get("write_consistency_factor", 1),
        "on_disk_payload": given.get("on_disk_payload", True),
    }
    for name in ("sharding_method", "payload", "sparse_vectors"):
        if name in given:
            params[name] = given[name]
    config = {
        "params": params,
        "hnsw_config": _HNSW | given.get("hnsw_config", {}),
        "optimizer_config": _OPTIMIZERS | given.get("optimizers_config", {}),
        "wal_config": _WAL | given.get("wal_config", {}),
        "quantization_config": given.get("quantization_config"),
    }
    for name in ("strict_mode_config", "metadata"):
        if given.get(name):
            config[name] = request.metadata if name == "metadata" else given[name]
    return config


def patch(config: dict[str, Any], request: models.UpdateCollection) -> dict[str, Any]:
    """The `config` after a patch: each section is merged field by field, metadata by its top-level keys."""
    _check(request, "")
    given = dump(request)
    if (given.get("params", {}).get("replication_factor") or 1) > 1:
        raise Unsupported(f"replication_factor {given['params']['replication_factor']}: it is one process")
    new = dict(config)
    for name, section in (
        ("params", "params"),
        ("hnsw_config", "hnsw_config"),
        ("optimizers_config", "optimizer_config"),
        ("strict_mode_config", "strict_mode_config"),
    ):
        if name in given:
            new[section] = config.get(section, {}) | given[name]
    if request.metadata is not None:
        merged = config.get("metadata", {}) | request.metadata
        new["metadata"] = {key: value for key, value in merged.items() if value is not None}
    if request.quantization_config is not None:
        off = isinstance(request.quantization_config, models.Disabled)
        new["quantization_config"] = None if off else given["quantization_config"]
    for kind, changes in (("vectors", given.get("vectors")), ("sparse_vectors", given.get("sparse_vectors"))):
        if changes:
            new["params"] = new["params"] | {kind: _patch_vectors(new["params"].get(kind, {}), changes)}
    return new


def _patch_vectors(present: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    unnamed = "size" in present and not isinstance(present["size"], dict)
    vectors = {"": present} if unnamed else dict(present)
    for name, change in changes.items():
        if name not in vectors:
            raise WrongInput(f"Not existing vector name error: {name}")
        merged = dict(vectors[name])
        for field, value in change.items():
            if value == "Disabled":
                merged.pop(field, None)
            elif field in {"hnsw_config", "index"}:
                merged[field] = merged.get(field, {}) | value
            else:
                merged[field] = value
        vectors[name] = merged
    return vectors[""] if unnamed else vectors


def dense(config: dict[str, Any]) -> dict[str, models.VectorParams]:
    """The dense vectors by name; the unnamed one has the name ""."""
    vectors = config["params"]["vectors"]
    if "size" in vectors and not isinstance(vectors["size"], dict):
        vectors = {"": vectors}
    return {name: models.VectorParams.model_validate(params) for name, params in vectors.items()}


def sparse(config: dict[str, Any]) -> dict[str, models.SparseVectorParams]:
    """The sparse vectors by name."""
    vectors = config["params"].get("sparse_vectors", {})
    return {name: models.SparseVectorParams.model_validate(params) for name, params in vectors.items()}


def _hnsw(given: dict[str, Any], defaults: dict[str, Any]) -> Any:
    return build("HnswIndexConfig", models.HnswConfigDiff.model_validate(defaults | given))


def edge_config(config: dict[str, Any]) -> engine.EdgeConfig:
    """The engine's configuration for a collection's `config`."""
    hnsw = config["hnsw_config"]
    vectors = {
        name: build(
            "EdgeVectorParams",
            params,
            hnsw_config=None if params.hnsw_config is None else _hnsw(dump(params.hnsw_config), hnsw),
        )
        for name, params in dense(config).items()
    }
    optimizers = {k: v for k, v in config["optimizer_config"].items() if k not in _UNUSED_BY_ENGINE}
    quantization = config["quantization_config"]
    parsed = models.CollectionParams.model_validate(config["params"])
    memory = None if parsed.payload is None else parsed.payload.memory
    holder = models.CreateCollection(quantization_config=quantization)
    sparse_vectors = {name: to_engine(params) for name, params in sparse(config).items()}
    if not vectors and not sparse_vectors:
        # The engine insists on a vector; a server's collection may have none. No point ever gets this one.
        sparse_vectors[_PLACEHOLDER] = engine.EdgeSparseVectorParams()
    return engine.EdgeConfig(
        vectors=vectors,
        sparse_vectors=sparse_vectors,
        on_disk_payload=None if memory is not None else config["params"]["on_disk_payload"],
        payload_memory=None if memory is None else to_engine(memory),
        hnsw_config=_hnsw({}, hnsw),
        quantization_config=to_engine(holder.quantization_config),
        optimizers=to_engine(models.OptimizersConfigDiff.model_validate(optimizers)),
    )
