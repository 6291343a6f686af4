"""What a handler gets and what a route says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from embedded.errors import Forbidden, FormatError, Unsupported
from embedded.keys import Access, Rights
from embedded.parse import load_json, parse
from embedded.storage import Collection, Store

if TYPE_CHECKING:
    from embedded.metrics import Metrics

Model = TypeVar("Model", bound=BaseModel)


def _refuse_shard_keys(data: dict[str, Any]) -> None:
    """Refuse a write or a read of some shards: the answer would be from all there is."""
    if data.get("shard_key") is not None:
        raise Unsupported(f"shard_key `{data['shard_key']}`: it keeps one shard a collection")
    for inner in (*_listed(data, "searches"), *_listed(data, "operations")):
        _refuse_shard_keys(inner)
        for operation in inner.values():
            if isinstance(operation, dict):
                _refuse_shard_keys(operation)


def _looked_up(value: Any) -> Iterator[str]:
    """The other collections that a query takes vectors from, at any depth."""
    if isinstance(value, dict):
        found = value.get("lookup_from")
        if isinstance(found, dict) and isinstance(found.get("collection"), str):
            yield found["collection"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _looked_up(inner)


def _listed(data: dict[str, Any], field: str) -> list[dict[str, Any]]:
    rows = data.get(field)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


@dataclass
class Call:
    """One request on its way to a handler."""

    store: Store
    metrics: Metrics
    rights: Rights
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def name(self) -> str:
        """The collection's name in the path."""
        return self.path["name"]

    @cached_property
    def json(self) -> dict[str, Any]:
        """The body, which must be a JSON object."""
        value = load_json(self.body)
        if not isinstance(value, dict):
            raise FormatError("invalid type: expected an object", self.body)
        _refuse_shard_keys(value)
        if self.rights.scoped and b'"lookup_from"' in self.body:
            for name in _looked_up(value):
                self.see(name)
        return value

    def parse(self, model: type[Model], untagged: str = "") -> Model:
        """The body as a model."""
        return parse(model, self.json, self.body, untagged)

    def collection(self, access: Access = Access.READ) -> Collection:
        """The collection in the path, provided the caller may do this to it."""
        self.see(self.name)
        collection = self.store.get(self.name)
        if self.rights.to(self.name) < access:
            if self.rights.scoped and access == Access.MANAGE:
                raise Forbidden("Manage access for this operation is required")
            verb = "Write" if access == Access.WRITE else "Manage"
            raise Forbidden(f"{verb} access to collection `{collection.name}` is required")
        return collection

    def see(self, name: str) -> None:
        """Refuse a caller whose token does not name the collection; an alias is another name."""
        if self.rights.to(name) == Access.NONE:
            raise Forbidden(f"Access to collection {name} is required")

    def manage(self) -> None:
        """Refuse a caller who may not change what collections there are."""
        if self.rights.scoped:
            raise Forbidden("Global access is required")
        if self.rights.everything < Access.MANAGE:
            raise Forbidden("Global manage access is required")

    def everything(self) -> None:
        """Refuse a caller who may not read what is about the whole server."""
        if self.rights.scoped:
            raise Forbidden("Global access is required")

    @property
    def wait(self) -> bool:
        """Whether the caller waits for the write."""
        return self.query.get("wait", "false").lower() == "true"

    def done(self, operation: int) -> dict[str, Any]:
        """The result of a write. It is applied in either case; the word is what the caller expects to read."""
        return {"operation_id": operation, "status": "completed" if self.wait else "acknowledged"}


@dataclass(frozen=True)
class Text:
    """A result that is sent as it is, and not as JSON."""

    text: str
    media_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Bare:
    """JSON without the envelope of `result`, `status` and `time`."""

    value: Any


@dataclass(frozen=True)
class Route:
    """A method, a path with `{names}`, and the function that answers."""

    method: str
    path: str
    handler: Callable[[Call], Any]
