"""The resource `ApiKey`: a random key, secret in the state, the same until its generation is raised."""

from __future__ import annotations

import hashlib
import secrets
from uuid import uuid4

from pulumi.provider.experimental import provider as protocol
from pulumi.provider.experimental.property_value import PropertyValue
from pydantic import Field

from comemory.specs import Spec
from infra.provider.errors import ProviderError
from infra.provider.properties import Properties, plain_map, to_property, unknown_text
from infra.provider.resource import Context, invalid

KEY_BYTES = 32
FINGERPRINT_DIGITS = 16


class ApiKeySpec(Spec):
    """A key is made once per generation."""

    generation: int = Field(1, ge=1, description="Raise it to make another key in place of this one.")


class ApiKeyHandler:
    """Makes keys of 256 random bits. They are in the state alone, encrypted."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Refuse what is no generation."""
        wrong = invalid(ApiKeySpec, plain_map(request.new_inputs))
        return protocol.CheckResponse(inputs=request.new_inputs, failures=wrong)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Another generation makes another key, in place."""
        new, old = (plain_map(one).get("generation", 1) for one in (request.new_inputs, request.old_state))
        if new == old:
            return protocol.DiffResponse(changes=False)
        kind = protocol.PropertyDiff(protocol.PropertyDiffKind.UPDATE, True)
        return protocol.DiffResponse(changes=True, diffs=["generation"], detailed_diff={"generation": kind})

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Make a key."""
        if request.preview:
            return protocol.CreateResponse(properties=_unmade(request.properties))
        return protocol.CreateResponse(uuid4().hex, _made(request.properties))

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """Nothing outside the state can have changed it."""
        if not plain_map(request.properties).get("value"):
            raise ProviderError(
                "a generated key cannot be imported: only the state that made it holds it; put a key of your own "
                "in a Secret and name that"
            )
        return protocol.ReadResponse(request.resource_id, dict(request.properties), dict(request.inputs))

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Make another key."""
        if request.preview:
            return protocol.UpdateResponse(properties=_unmade(request.news))
        return protocol.UpdateResponse(properties=_made(request.news))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """Forget it with the state."""


def fingerprint(key: str) -> str:
    """What may be shown of a key: the beginning of its SHA-256, which tells whether it is another one."""
    return hashlib.sha256(key.encode()).hexdigest()[:FINGERPRINT_DIGITS]


def _made(properties: Properties) -> dict[str, PropertyValue]:
    key = secrets.token_urlsafe(KEY_BYTES)
    return {
        **properties,
        "value": to_property(key).with_secret(True),
        "fingerprint": to_property(fingerprint(key)),
    }


def _unmade(properties: Properties) -> dict[str, PropertyValue]:
    unknown = unknown_text()
    return {**properties, "value": unknown, "fingerprint": unknown}
