"""The resource `PayloadIndex`."""

from __future__ import annotations

import contextlib

from pulumi.provider.experimental import provider as protocol
from pydantic import Field

from comemory.catalog import DeletionPolicy
from comemory.drift import IndexRebuild, compare_index, observed
from comemory.indexes import IndexSpec
from comemory.live import LiveCollection, LiveIndex
from comemory.ownership import owner_text, standing
from infra.provider.errors import ProviderError, counted, unmarked
from infra.provider.properties import plain_map, to_properties, without_unknown
from infra.provider.resource import Context, difference, invalid, validated
from infra.provider.rest import Rest


class PayloadIndexSpec(IndexSpec):
    """An index and the collection that it belongs to; a deletion policy of its own goes before the collection's."""

    collection: str = Field(min_length=1)
    deletion_policy: DeletionPolicy | None = None

    def index(self) -> IndexSpec:
        """The index alone."""
        return IndexSpec.model_validate(self.model_dump(exclude={"collection", "deletion_policy"}))


class PayloadIndexHandler:
    """Builds, reads, rebuilds and drops payload indexes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._found: dict[str, dict[str, LiveIndex]] = {}
        self._kept: set[str] = set()

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Refuse unknown types and parameters that do not belong to the type."""
        wrong = invalid(PayloadIndexSpec, plain_map(request.new_inputs))
        return protocol.CheckResponse(inputs=request.new_inputs, failures=wrong)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Compare, and name an index that has to be dropped and rebuilt."""
        new, old = plain_map(request.new_inputs), plain_map(request.old_state)
        known = without_unknown(new)
        unknown = sorted(new.keys() - known.keys())
        replaces = [key for key in ("collection", "field") if key in known and known[key] != old.get(key)]
        if replaces or {"collection", "field", "type"} & set(unknown):
            return difference((), unknown, replaces)
        spec = validated(PayloadIndexSpec, known)
        seen = {key: value for key, value in old.items() if key in IndexSpec.model_fields}
        with contextlib.suppress(ValueError):
            # The defaults of the declaration hold for what was declared before, too.
            seen = IndexSpec.model_validate(seen).declared()
        params = {key: value for key, value in seen.items() if key not in ("field", "type")}
        changes = list(compare_index(spec.collection, spec.index(), LiveIndex(old.get("type", ""), params)))
        for change in changes:
            if isinstance(change, IndexRebuild):
                await self._context.log.warning(request.urn, change.text)
        response = difference(changes, unknown)
        if known.get("deletion_policy") != old.get("deletion_policy"):
            kind = protocol.PropertyDiff(protocol.PropertyDiffKind.UPDATE, True)
            response.detailed_diff["deletion_policy"] = kind
            response.diffs.append("deletion_policy")
            response.changes = True
        return response

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Build the index.

        One that is there already is kept when it is as declared, else rebuilt, and that is said.
        """
        values = without_unknown(plain_map(request.properties))
        if request.preview:
            if {"collection", "field", "type"} <= values.keys():
                await self._foresee(request.urn, validated(PayloadIndexSpec, values))
            return protocol.CreateResponse(properties=dict(request.properties))
        spec = validated(PayloadIndexSpec, values)
        rest = self._context.connection.rest()
        await self._say_rebuild(request.urn, rest, spec)
        await rest.create_index(spec.collection, spec.field, spec.index().field_schema())
        return protocol.CreateResponse(f"{spec.collection}/{spec.field}", dict(request.properties))

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """Read type and declared parameters; for an import, all parameters."""
        collection, _, field = request.resource_id.partition("/")
        if not field:
            raise ProviderError(
                f"{request.resource_id!r} names no index; the id is collection/field, such as "
                f"cm_text_1024_v1/tenant_id"
            )
        live = await self._context.connection.rest().collection(collection)
        index = live.indexes.get(field) if live else None
        if index is None:
            return protocol.ReadResponse()
        declared = plain_map(request.inputs)
        if declared:
            seen = {**index.params, "type": index.type}
            parameters = {key: value for key, value in declared.items() if key in IndexSpec.model_fields}
            inputs = observed({key: value for key, value in parameters.items() if key != "field"}, seen)
            if "deletion_policy" in declared:
                inputs["deletion_policy"] = declared["deletion_policy"]
        else:
            inputs = {"type": index.type, **{k: v for k, v in index.params.items() if k in IndexSpec.model_fields}}
        inputs = {"collection": collection, "field": field, **inputs}
        properties = to_properties(inputs, secret_as=request.inputs)
        return protocol.ReadResponse(request.resource_id, properties, properties)

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Drop the index and build it anew, as far as it is not as declared."""
        if not request.preview:
            spec = validated(PayloadIndexSpec, plain_map(request.news))
            rest = self._context.connection.rest()
            if self._differs(spec, await rest.collection(spec.collection)):
                # The server replaces an index that cannot serve the new schema by itself: no moment without
                # one is added.
                await rest.create_index(spec.collection, spec.field, spec.index().field_schema())
                if self._differs(spec, await rest.collection(spec.collection)):
                    await rest.delete_index(spec.collection, spec.field)
                    await rest.create_index(spec.collection, spec.field, spec.index().field_schema())
        return protocol.UpdateResponse(properties=dict(request.news))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """Drop the index, unless the collection holds points or is left on the server.

        A destroy comes to the indexes before it comes to their collection: dropping them first would leave a
        collection that is then refused, or retained, without the indexes that its readers filter on.
        """
        collection, _, field = request.resource_id.partition("/")
        rest = self._context.connection.rest()
        live = await rest.collection(collection)
        if live is None or field not in live.indexes:
            return
        own = plain_map(request.properties).get("deletion_policy")
        whose = standing(live.metadata, self._context.owner(request.urn))
        if own is None and whose == "foreign":
            await self._context.log.warning(
                request.urn,
                f"index {field} of {collection} is left: the collection belongs to {owner_text(live.metadata)}",
            )
            return
        stored = live.metadata.get("deletion_policy")
        policy = own or (stored if whose == "ours" or stored == "retain" else None) or "delete_if_empty"
        if policy == "retain":
            await self._context.log.info(
                request.urn, f"index {field} of {collection} is left (deletion_policy retain)"
            )
            return
        if policy == "delete_if_empty" and (points := await rest.count(collection)):
            unsure = own is None and whose == "unowned"
            raise ProviderError(
                unmarked(collection, rest.url, points) if unsure else self._refusal(collection, field, points)
            )
        await rest.delete_index(collection, field)

    def _refusal(self, collection: str, field: str, points: int) -> str:
        if collection in self._kept:
            return f"index {field} is kept with its collection {collection}"
        self._kept.add(collection)
        return (
            f"collection {collection} holds {counted(points)}, so neither it nor its index on {field} is deleted; "
            "empty the collection, or set its deletion_policy to 'delete' (with its data) or 'retain' (leave it on "
            f"the server), or that of the index on {field} to 'delete' (drop this index alone), and run up before"
        )

    def _differs(self, spec: PayloadIndexSpec, live: LiveCollection | None) -> bool:
        if live is None:
            raise ProviderError(
                f"index {spec.field}: collection {spec.collection} is gone; run `pulumi refresh`, and the next "
                f"up makes both"
            )
        return bool(list(compare_index(spec.collection, spec.index(), live.indexes.get(spec.field))))

    async def _foresee(self, urn: str, spec: PayloadIndexSpec) -> None:
        try:
            await self._say_rebuild(urn, self._context.connection.rest(), spec)
        except ProviderError:
            # The preview of the collection has said that the server does not answer.
            return

    async def _say_rebuild(self, urn: str, rest: Rest, spec: PayloadIndexSpec) -> None:
        """Say when another index on the field is in the way; a collection is looked at once per process."""
        if spec.collection not in self._found:
            live = await rest.collection(spec.collection)
            self._found[spec.collection] = dict(live.indexes) if live else {}
        there = self._found[spec.collection].get(spec.field)
        if there is None:
            return
        for change in compare_index(spec.collection, spec.index(), there):
            await self._context.log.warning(urn, change.text)
