"""Collections: create, read, change, delete."""

from __future__ import annotations

from typing import Any

from qdrant_client.http import models

from embedded import settings
from embedded.errors import FormatError, ValidationFailed
from embedded.keys import Access
from embedded.routes.base import Call, Route

_MAX_NAME = 255


def _valid_name(name: str) -> None:
    path = "path parameters"
    for letter in ("/", "\\", "\0"):
        if letter in name:
            raise ValidationFailed("collection_name", f'collection name cannot contain "{letter}" char', path)
    if not 1 <= len(name) <= _MAX_NAME:
        raise ValidationFailed(
            "collection_name", f'value "{name}" invalid, must be from 1 to {_MAX_NAME} characters', path
        )


def _list(call: Call) -> dict[str, Any]:
    return {"collections": [{"name": name} for name in sorted(call.store.collections) if call.rights.to(name)]}


def _exists(call: Call) -> dict[str, Any]:
    call.see(call.name)
    return {"exists": call.name in call.store.collections or call.name in call.store.aliases}


def _create(call: Call) -> bool:
    request = call.parse(models.CreateCollection, "VectorsConfig")
    for params in request.vectors.values() if isinstance(request.vectors, dict) else [request.vectors]:
        if params is not None and params.size == 0:  # no size at all to the server, unlike one that is too large
            raise FormatError("data did not match any variant of untagged enum VectorsConfig", call.body)
    _valid_name(call.name)
    call.manage()
    call.store.create(call.name, settings.create(request))
    return True


def _get(call: Call) -> dict[str, Any]:
    collection = call.collection()
    info = collection.read(lambda shard: shard.info())
    counts = {field: index.points for field, index in info.payload_schema.items()}
    return {
        "status": "green",
        "optimizer_status": "ok",
        "indexed_vectors_count": info.indexed_vectors_count,
        "points_count": info.points_count,
        "segments_count": info.segments_count,
        "config": collection.config,
        "payload_schema": {
            field: index | {"points": counts.get(field, 0)} for field, index in collection.index_schema().items()
        },
        "update_queue": {"length": 0},
    }


def _update(call: Call) -> bool:
    request = call.parse(models.UpdateCollection)
    collection = call.collection(Access.MANAGE)
    with collection.lock:
        changed = settings.patch(collection.config, request)
        if changed != collection.config:
            collection.change(changed)
    return True


def _delete(call: Call) -> bool:
    call.manage()
    return call.store.delete(call.name)


def _cluster(call: Call) -> dict[str, Any]:
    points = call.collection().read(lambda shard: shard.info()).points_count
    return {
        "peer_id": 0,
        "shard_count": 1,
        "local_shards": [{"shard_id": 0, "points_count": points, "state": "Active"}],
        "remote_shards": [],
        "shard_transfers": [],
    }


ROUTES = [
    Route("GET", "/collections", _list),
    Route("GET", "/collections/{name}", _get),
    Route("PUT", "/collections/{name}", _create),
    Route("PATCH", "/collections/{name}", _update),
    Route("DELETE", "/collections/{name}", _delete),
    Route("GET", "/collections/{name}/exists", _exists),
    Route("GET", "/collections/{name}/cluster", _cluster),
]
