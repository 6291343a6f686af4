"""Payload indexes."""

from __future__ import annotations

from typing import Any

from qdrant_client.http import models

from embedded import strict
from embedded.convert import to_engine
from embedded.errors import FormatError, engine_errors
from embedded.keys import Access
from embedded.routes.base import Call, Route


def _create(call: Call) -> dict[str, Any]:
    request = call.parse(models.CreateFieldIndex, "PayloadFieldSchema")
    collection = call.collection(Access.WRITE)
    if request.field_schema is None:
        raise FormatError("missing field `field_schema`: name the type of the index", call.body)
    strict.check_index_count(collection, request.field_name)
    with engine_errors():
        schema = to_engine(request.field_schema)
    return call.done(collection.create_index(request.field_name, schema))


def _drop(call: Call) -> dict[str, Any]:
    return call.done(call.collection(Access.WRITE).drop_index(call.path["field"]))


ROUTES = [
    Route("PUT", "/collections/{name}/index", _create),
    Route("DELETE", "/collections/{name}/index/{field}", _drop),
]
