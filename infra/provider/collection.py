"""The resource `Collection`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

from pulumi.provider.experimental import provider as protocol

from comemory.catalog import RESERVED_METADATA, CollectionSpec, VectorSpec
from comemory.drift import (
    Change,
    Impossible,
    InPlace,
    VectorMissing,
    compare,
    compare_metadata,
    observed,
    patch_body,
)
from comemory.live import LiveCollection
from comemory.ownership import marks_of, owner_marks, owner_text, standing
from infra.provider.errors import ConflictError, ProviderError, TimedOutError, counted, unmarked
from infra.provider.properties import (
    Properties,
    has_unknown,
    plain_map,
    property_path,
    to_properties,
    without_unknown,
)
from infra.provider.resource import Context, difference, invalid, validated
from infra.provider.rest import POLL_SECONDS, Rest

IMPORTED = {"imported": "true"}
"""The `owner` of a collection just imported: the next update marks it as this stack's."""


class CollectionHandler:
    """Makes, reads, changes and deletes collections; what they hold is lost only where the declaration says so."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Refuse invalid values, changes that an existing collection cannot take, and a new name while the old
        collection cannot go.
        """
        new, old = plain_map(request.new_inputs), plain_map(request.old_inputs)
        wrong = invalid(CollectionSpec, new)
        if not wrong and not has_unknown(new.get("name")) and old.get("name") not in (None, new["name"]):
            wrong = await self._why_not_replaced(old, new["name"])
        if not wrong and not has_unknown(new) and old.get("name") == new["name"]:
            changes = compare(CollectionSpec.model_validate(new), _live_of(old))
            wrong = [
                protocol.CheckFailure(property_path(change.path), change.text)
                for change in map(_as_far_as_known, changes)
                if isinstance(change, Impossible)
            ]
        return protocol.CheckResponse(inputs=request.new_inputs, failures=wrong)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Compare the declaration with what the state last saw of the server."""
        new, old = plain_map(request.new_inputs), plain_map(request.old_state)
        known = without_unknown(new)
        unknown = sorted(new.keys() - known.keys())
        if {"name", "vectors"} & set(unknown):
            return difference((), unknown)
        spec = validated(CollectionSpec, known)
        if spec.name != old.get("name"):
            return difference((), unknown, replaces=["name"])
        live = _live_of(old)
        changes = compare(spec, live)
        if old.get("owner") != IMPORTED:
            changes += compare_metadata(live, self._marks(request.urn, spec))
        return difference((_as_property(_as_far_as_known(change)) for change in changes), unknown)

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Create the collection, or take over one that an interrupted run of this stack made, or adopt one
        if asked.
        """
        values = plain_map(request.properties)
        known = not has_unknown(values)
        if request.preview:
            if known:
                await self._foresee(request.urn, validated(CollectionSpec, values))
            return protocol.CreateResponse(properties=dict(request.properties))
        spec = validated(CollectionSpec, values)
        rest = self._context.connection.rest()
        await rest.require_supported()
        marks = self._marks(request.urn, spec)
        try:
            await rest.create_collection(spec.name, spec.creation(marks))
        except ConflictError:
            await self._take_over(request.urn, rest, spec)
        except TimedOutError as error:
            if await self._appears(rest, spec.name, request.timeout) is None:
                raise error from None
            await self._take_over(request.urn, rest, spec)
        await self._usable(rest, spec.name, request.timeout)
        return protocol.CreateResponse(spec.name, _state(request.properties, marks))

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """Read what is declared from the server; for an import, everything that a declaration can hold."""
        name = request.resource_id
        live = await self._context.connection.rest().collection(name)
        if live is None:
            return protocol.ReadResponse()
        declared = plain_map(request.inputs)
        if declared:
            metadata = {
                **(declared.get("metadata") or {}),
                **({"embedding_model": declared["embedding_model"]} if "embedding_model" in declared else {}),
            }
            found = observed({**declared, "metadata": metadata}, live.settings)
            inputs = {key: found[key] for key in declared if key in found}
            inputs.update({key: declared[key] for key in ("name", "deletion_policy", "adopt") if key in declared})
            seen = dict(found.get("metadata") or {})
            if "embedding_model" in declared:
                inputs["embedding_model"] = seen.pop("embedding_model", None)
            if "metadata" in declared:
                inputs["metadata"] = seen
            marks = marks_of(live.metadata)
        else:
            if standing(live.metadata, self._context.owner(request.urn)) == "foreign":
                raise ProviderError(_foreign(live, self._context.connection.url))
            inputs, marks = _importable(live), IMPORTED
        properties = to_properties(inputs, secret_as=request.inputs)
        return protocol.ReadResponse(name, _state(properties, marks), properties)

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Bring the collection to the declaration, whatever was done to it since the state was written."""
        if request.preview:
            return protocol.UpdateResponse(properties=dict(request.news))
        spec = validated(CollectionSpec, plain_map(request.news))
        rest = self._context.connection.rest()
        live = await rest.collection(spec.name)
        if live is None:
            raise ProviderError(
                f"collection {spec.name} is gone from {rest.url}; run `pulumi refresh`, and the next up makes "
                f"it anew"
            )
        if standing(live.metadata, self._context.owner(request.urn)) == "foreign":
            raise ProviderError(_foreign(live, rest.url))
        await self._apply(request.urn, rest, spec, live)
        return protocol.UpdateResponse(_state(request.news, self._marks(request.urn, spec)))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """Delete by the deletion policy that the state holds."""
        name, state = request.resource_id, plain_map(request.properties)
        policy = state.get("deletion_policy", "delete_if_empty")
        if policy == "retain":
            await self._context.log.info(
                request.urn, f"collection {name} is left on the server (deletion_policy retain)"
            )
            return
        rest = self._context.connection.rest()
        live = await rest.collection(name)
        if live is None:
            return
        whose = standing(live.metadata, self._context.owner(request.urn))
        if whose == "foreign":
            raise ProviderError(_foreign(live, rest.url))
        if live.metadata.get("deletion_policy") == "retain":
            await self._context.log.info(
                request.urn, f"collection {name} is left on the server (deletion_policy retain in its metadata)"
            )
            return
        if (policy == "delete_if_empty" or whose == "unowned") and (points := await rest.count(name)):
            raise ProviderError(not_empty(name, points) if whose == "ours" else unmarked(name, rest.url, points))
        try:
            await rest.delete_collection(name)
        except TimedOutError as error:
            if not await self._disappears(rest, name, request.timeout):
                raise error from None

    async def _why_not_replaced(self, old: Mapping[str, Any], name: str) -> list[protocol.CheckFailure]:
        """Another name makes another collection, and then deletes the old one. Were that refused, Pulumi would try
        again with every update, by a policy that the program can no longer change.
        """
        if old.get("deletion_policy", "delete_if_empty") != "delete_if_empty":
            return []
        points = 0
        with contextlib.suppress(ProviderError):  # a server that does not answer stops the update by itself
            rest = self._context.connection.rest()
            points = await rest.count(old["name"]) if await rest.collection(old["name"]) else 0
        if not points:
            return []
        reason = (
            f"{old['name']} holds {counted(points)}, so it cannot be replaced by {name}: declare {name} under a "
            f"resource name of its own, or set the deletion_policy of {old['name']} to 'retain' or 'delete' and "
            "run up before"
        )
        return [protocol.CheckFailure("name", reason)]

    def _marks(self, urn: str, spec: CollectionSpec) -> dict[str, str]:
        return owner_marks(self._context.owner(urn), spec.deletion_policy)

    async def _foresee(self, urn: str, spec: CollectionSpec) -> None:
        """In a preview: say already now that the update would meet a collection of that name."""
        rest = self._context.connection.rest()
        try:
            live = await rest.collection(spec.name)
        except ProviderError as error:
            await self._context.log.warning(urn, f"the preview could not look at the server: {error}")
            return
        if live is not None:
            self._may_take_over(urn, spec, live, rest.url)
            changes = compare(spec, live)
            texts = "; ".join(change.text for change in changes) or "it is as declared"
            await self._context.log.info(urn, f"collection {spec.name} exists and is taken over: {texts}")

    async def _take_over(self, urn: str, rest: Rest, spec: CollectionSpec) -> None:
        live = await rest.collection(spec.name)
        if live is None:
            raise ProviderError(f"collection {spec.name} was there and is gone again on {rest.url}; run up again")
        self._may_take_over(urn, spec, live, rest.url)
        await self._apply(urn, rest, spec, live)

    def _may_take_over(self, urn: str, spec: CollectionSpec, live: LiveCollection, url: str) -> None:
        whose = standing(live.metadata, self._context.owner(urn))
        if whose == "foreign":
            raise ProviderError(_foreign(live, url))
        if whose == "unowned" and not spec.adopt:
            raise ProviderError(
                f"collection {spec.name} exists already on {url} and was not made by this stack; "
                "set adopt: true to take it over with its data, or declare another name"
            )
        if impossible := [change for change in compare(spec, live) if isinstance(change, Impossible)]:
            raise ProviderError(f"cannot take over {spec.name}: {impossible[0].text}")

    async def _apply(self, urn: str, rest: Rest, spec: CollectionSpec, live: LiveCollection) -> None:
        marks = self._marks(urn, spec)
        for change in compare(spec, live):
            if isinstance(change, Impossible):
                raise ProviderError(change.text)
            if isinstance(change, VectorMissing):
                await rest.add_vector(spec.name, change.vector, _vector_body(change))
                live = await rest.collection(spec.name) or live
        body = patch_body([*compare(spec, live), *compare_metadata(live, marks)])
        if not body:
            return
        await rest.update_collection(spec.name, body)
        live = await rest.collection(spec.name) or live
        if left := [*compare(spec, live), *compare_metadata(live, marks)]:
            raise ProviderError(f"{rest.url} accepted the change but did not make it: {left[0].text}")

    async def _appears(self, rest: Rest, name: str, timeout: float) -> LiveCollection | None:
        deadline = time.monotonic() + (timeout or rest.timeout)
        while (live := await rest.collection(name)) is None and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)
        return live

    async def _disappears(self, rest: Rest, name: str, timeout: float) -> bool:
        deadline = time.monotonic() + (timeout or rest.timeout)
        while (live := await rest.collection(name)) is not None and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)
        return live is None

    async def _usable(self, rest: Rest, name: str, timeout: float) -> None:
        """Wait until the collection answers and does not report an error; `yellow` and `grey` serve requests."""
        deadline = time.monotonic() + (timeout or rest.timeout)
        while True:
            live = await rest.collection(name)
            if live is not None and live.status != "red":
                return
            if time.monotonic() > deadline:
                seen = "does not appear" if live is None else f"reports status {live.status}"
                raise ProviderError(f"collection {name} was created on {rest.url} but {seen}; see the server's log")
            await asyncio.sleep(POLL_SECONDS)


def not_empty(name: str, points: int) -> str:
    """Why nothing is deleted, and what to do."""
    return (
        f"collection {name} holds {counted(points)} and is not deleted; empty it, or set deletion_policy to "
        "'delete' (with its data) or 'retain' (leave it on the server) and run up before"
    )


def _foreign(live: LiveCollection, url: str | None) -> str:
    whose = owner_text(live.metadata)
    return f"collection {live.name} on {url} belongs to {whose}; manage it there, or declare another name"


def _live_of(values: Mapping[str, Any]) -> LiveCollection:
    """State or old inputs as the live collection that they describe."""
    with contextlib.suppress(ValueError):
        # The defaults of the declaration hold for what was declared before, too. What was seen on a server
        # need not be valid.
        values = {**values, **CollectionSpec.model_validate(_inputs(values)).declared()}
    model = {"embedding_model": values["embedding_model"]} if values.get("embedding_model") else {}
    metadata = {**(values.get("metadata") or {}), **model, **(values.get("owner") or {})}
    return LiveCollection(values.get("name", ""), {**values, "metadata": metadata})


def _inputs(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in CollectionSpec.model_fields}


def _as_far_as_known(change: Change) -> Change:
    """A state that does not say what the server has proves nothing impossible; the update looks at the server."""
    if isinstance(change, Impossible) and change.path == ("shard_number",) and change.live is None:
        return InPlace(change.collection, change.path, change.live, change.declared)
    return change


def _as_property(change: Change) -> Change:
    """A change of metadata under the property that it is declared by."""
    if isinstance(change, InPlace) and change.path[0] == "metadata" and change.path[1] in RESERVED_METADATA:
        key = change.path[1]
        path = (key,) if key in ("deletion_policy", "embedding_model") else ("owner", key)
        return InPlace(change.collection, path, change.live, change.declared)
    return change


def _state(inputs: Properties, marks: Mapping[str, str]) -> dict[str, Any]:
    return {**inputs, **to_properties({"owner": marks})}


def _vector_body(change: VectorMissing) -> dict[str, Any]:
    """What `PUT /collections/{name}/vectors/{vector}` takes: only what can never be changed later."""
    if isinstance(change.spec, VectorSpec):
        keys = {"size", "distance", "datatype", "multivector_config"}
        return {"dense": change.spec.model_dump(mode="json", exclude_none=True, include=keys)}
    index = change.spec.index
    return {
        "sparse": {
            **({"modifier": change.spec.modifier} if change.spec.modifier else {}),
            **({"datatype": index.datatype} if index and index.datatype else {}),
        }
    }


def _importable(live: LiveCollection) -> dict[str, Any]:
    """All of a live collection that a declaration can say."""
    known = CollectionSpec.model_fields.keys() - {"name", "metadata", "embedding_model", "deletion_policy", "adopt"}
    settings = {
        key: _known(value) for key, value in live.settings.items() if key in known and value not in (None, {})
    }
    metadata = {
        key: value for key, value in live.metadata.items() if key not in RESERVED_METADATA and value is not None
    }
    inputs: dict[str, Any] = {"name": live.name, **settings}
    if metadata:
        inputs["metadata"] = metadata
    for key in ("embedding_model", "deletion_policy"):
        if live.metadata.get(key) is not None:
            inputs[key] = live.metadata[key]
    try:
        return CollectionSpec.model_validate(inputs).declared()
    except ValueError:
        # A value of a newer server that the declaration has no word for: keep what it has words for.
        return {key: inputs[key] for key in ("name", "vectors")}


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _known(item) for key, item in value.items() if item is not None}
    return value
