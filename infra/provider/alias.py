"""The resource `Alias`."""

from __future__ import annotations

from pulumi.provider.experimental import provider as protocol
from pydantic import Field

from comemory.drift import InPlace
from comemory.specs import Spec
from infra.provider.errors import NotFoundError, ProviderError
from infra.provider.properties import plain_map, to_properties, without_unknown
from infra.provider.resource import Context, difference, invalid, validated
from infra.provider.rest import Rest


class AliasSpec(Spec):
    """Another name for a collection, which can be pointed to the next version in one step."""

    name: str = Field(min_length=1, max_length=255)
    collection: str = Field(min_length=1)


class AliasHandler:
    """Makes, reads, moves and deletes aliases.

    Moving is one request: no reader meets a moment without the alias.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Refuse missing and unknown properties, and an alias named as its own collection."""
        values = plain_map(request.new_inputs)
        wrong = invalid(AliasSpec, values)
        if not wrong and values["name"] == values["collection"] and isinstance(values["name"], str):
            wrong = [
                protocol.CheckFailure("name", f"{values['name']} is the collection's own name; choose another")
            ]
        return protocol.CheckResponse(inputs=request.new_inputs, failures=wrong)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Another collection moves the alias in place; another name makes a new one."""
        new, old = plain_map(request.new_inputs), plain_map(request.old_state)
        known = without_unknown(new)
        unknown = sorted(new.keys() - known.keys())
        if "name" in known and known["name"] != old.get("name"):
            return difference((), unknown, replaces=["name"])
        moved = "collection" in known and known["collection"] != old.get("collection")
        change = InPlace(str(new["name"]), ("collection",), old.get("collection"), known.get("collection"))
        return difference([change] if moved else [], unknown)

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Make the alias; one that points elsewhere already is somebody's and is not moved."""
        if request.preview:
            return protocol.CreateResponse(properties=dict(request.properties))
        spec = validated(AliasSpec, plain_map(request.properties))
        rest = self._context.connection.rest()
        there = (await rest.aliases()).get(spec.name)
        if there is None:
            await _point(rest, spec, replace=False)
        elif there != spec.collection:
            raise ProviderError(
                f"alias {spec.name} exists already on {rest.url} and points to {there}; "
                f"import it (`pulumi import qdrant:index:Alias <name> {spec.name}`) to manage it here, or "
                f"choose another name"
            )
        return protocol.CreateResponse(spec.name, dict(request.properties))

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """Read where it points to."""
        collection = (await self._context.connection.rest().aliases()).get(request.resource_id)
        if collection is None:
            return protocol.ReadResponse()
        properties = to_properties({"name": request.resource_id, "collection": collection})
        return protocol.ReadResponse(request.resource_id, properties, properties)

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Point it to another collection in one step."""
        if not request.preview:
            await _point(
                self._context.connection.rest(), validated(AliasSpec, plain_map(request.news)), replace=True
            )
        return protocol.UpdateResponse(properties=dict(request.news))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """Delete the alias if it still points where this stack pointed it."""
        name, collection = request.resource_id, plain_map(request.properties).get("collection")
        rest = self._context.connection.rest()
        there = (await rest.aliases()).get(name)
        if there is None:
            return
        if there != collection:
            await self._context.log.warning(
                request.urn,
                f"alias {name} points to {there} and not to {collection} any more; it is left on the server",
            )
            return
        await rest.change_aliases([{"delete_alias": {"alias_name": name}}], f"delete alias {name}")


async def _point(rest: Rest, spec: AliasSpec, *, replace: bool) -> None:
    create = {"create_alias": {"alias_name": spec.name, "collection_name": spec.collection}}
    delete = [{"delete_alias": {"alias_name": spec.name}}] if replace else []
    try:
        await rest.change_aliases([*delete, create], f"point alias {spec.name} to {spec.collection}")
    except NotFoundError:
        raise ProviderError(
            f"alias {spec.name}: collection {spec.collection} does not exist on {rest.url}; declare it, and "
            f"give the alias "
            "its name as `collection=collection.name` so that it waits for it"
        ) from None
