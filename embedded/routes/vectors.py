"""Named vectors of a collection, added and dropped while it has points."""

from __future__ import annotations

from typing import Any

import qdrant_edge as engine
from pydantic import BaseModel
from qdrant_client.http import models

from embedded import settings
from embedded.convert import to_engine
from embedded.errors import FormatError, WrongInput
from embedded.keys import Access
from embedded.routes.base import Call, Route

Update = engine.UpdateOperation


class _VectorName(BaseModel):
    """One of the two kinds of vector."""

    dense: models.DenseVectorConfig | None = None
    sparse: models.SparseVectorConfig | None = None


def _dense(name: str, given: models.DenseVectorConfig) -> engine.UpdateOperation:
    return Update.create_dense_vector(
        name,
        given.size,
        to_engine(given.distance),
        None if given.multivector_config is None else to_engine(given.multivector_config),
        None if given.datatype is None else to_engine(given.datatype),
    )


def _sparse(name: str, given: models.SparseVectorConfig) -> engine.UpdateOperation:
    plain = given.modifier in (None, models.Modifier.NONE)
    datatype = None if given.datatype is None else to_engine(given.datatype)
    return Update.create_sparse_vector(name, None if plain else to_engine(given.modifier), datatype)


def _create(call: Call) -> dict[str, Any]:
    request = call.parse(_VectorName)
    name = call.path["vector"]
    collection = call.collection(Access.MANAGE)
    with collection.lock:
        params = dict(collection.config["params"])
        if request.dense is not None:
            if name in collection.sparse:
                raise WrongInput(f"Sparse vector `{name}` already exists")
            operation = _dense(name, request.dense)
            field = "vectors"
            given = settings.dump(models.VectorParams.model_validate(settings.dump(request.dense)))
        elif request.sparse is not None:
            if name in collection.dense:
                raise WrongInput(f"Dense vector `{name}` already exists")
            operation = _sparse(name, request.sparse)
            field = "sparse_vectors"
            given = {} if request.sparse.modifier is None else {"modifier": request.sparse.modifier.value}
            if request.sparse.datatype is not None:
                given["index"] = {"datatype": request.sparse.datatype.value}
        else:
            raise FormatError("expected `dense` or `sparse`", call.body)
        if "" in collection.dense and field == "vectors":
            raise WrongInput("A collection with an unnamed vector takes no other dense vector")
        number = collection.update(operation)
        if name not in params.get(field, {}):
            params[field] = params.get(field, {}) | {name: given}
            collection.change(collection.config | {"params": params})
    return call.done(number)


def _drop(call: Call) -> dict[str, Any]:
    name = call.path["vector"]
    collection = call.collection(Access.MANAGE)
    with collection.lock:
        params = dict(collection.config["params"])
        field = "vectors" if name in collection.dense else "sparse_vectors"
        if not name or name not in params.get(field, {}):
            raise WrongInput(f"Not existing vector name error: {name}")
        params[field] = {key: value for key, value in params[field].items() if key != name}
        collection.change(collection.config | {"params": params})
        return call.done(collection.update(Update.delete_vector_name(name)))


ROUTES = [
    Route("PUT", "/collections/{name}/vectors/{vector}", _create),
    Route("DELETE", "/collections/{name}/vectors/{vector}", _drop),
]
