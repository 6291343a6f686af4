"""The resource `AccessToken`: a JSON Web Token that Qdrant with `service.jwt_rbac` takes in place of a key.

Signing needs no server. A token without an `access` claim has full rights (qdrant.tech/documentation/operations/
security), so every token made here has one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self
from uuid import uuid4

from pulumi.provider.experimental import provider as protocol
from pulumi.provider.experimental.property_value import PropertyValue
from pydantic import Field, model_validator

from comemory.specs import Spec
from infra.address import key_problem
from infra.provider.errors import ProviderError
from infra.provider.properties import (
    UNKNOWN,
    Properties,
    plain_map,
    to_properties,
    to_property,
    unknown_text,
    without_unknown,
)
from infra.provider.resource import Context, difference, invalid, validated

ALGORITHM = "HS256"
SHORT_KEY_BYTES = 32
"""An HMAC-SHA256 key should have at least as many bytes as its result (RFC 7518, 3.2)."""


class MatchSpec(Spec):
    """A payload key and the value that it must have."""

    key: str = Field(min_length=1, description="Payload key, dots for nesting.")
    value: str | int | bool = Field(description="The value.")


class ValueExistsSpec(Spec):
    """A point that must exist for the token to be taken: deleting or changing it revokes the token."""

    collection: str = Field(min_length=1, description="The collection looked into.")
    matches: list[MatchSpec] = Field(min_length=1, description="What the payload of one point must hold.")


class AccessTokenSpec(Spec):
    """What a token allows and for how long. Give `collections` or `access`, never neither."""

    collections: dict[str, Literal["r", "rw"]] | None = Field(
        None, min_length=1, description="Per collection `r` (read) or `rw` (read and write points and indexes)."
    )
    access: Literal["r", "m"] | None = Field(
        None, description="Access to everything: `r` (read) or `m` (manage, as with the API key itself)."
    )
    api_key: str | None = Field(
        None,
        min_length=1,
        description="The server's API key, which signs the token. Default: the provider's own.",
    )
    valid_days: float = Field(90, gt=0, le=3650, description="Days after which the token is no longer taken.")
    renew_before_days: float = Field(
        30, ge=0, description="A preview or update this many days before the end renews the token."
    )
    subject: str | None = Field(
        None, min_length=1, max_length=255, description="Who it is for; the server's audit log names it."
    )
    value_exists: ValueExistsSpec | None = Field(
        None, description="A point that must exist for the token to be taken."
    )

    @model_validator(mode="after")
    def _one_access(self) -> Self:
        if self.collections is None and self.access is None:
            raise ValueError(
                "a token without an access claim has full rights; give collections (name to `r` or `rw`), "
                "or access `r` or `m`"
            )
        if self.collections is not None and self.access is not None:
            raise ValueError("give collections or access, not both")
        if self.renew_before_days >= self.valid_days:
            raise ValueError(
                f"renew_before_days {self.renew_before_days:g} must be less than valid_days {self.valid_days:g}, "
                "or the token would be renewed by every update"
            )
        return self

    def claims(self, now: datetime) -> dict[str, Any]:
        """The token's payload."""
        access: Any = self.access
        if self.collections is not None:
            access = [{"collection": name, "access": level} for name, level in sorted(self.collections.items())]
        claims: dict[str, Any] = {"access": access, "exp": int((now + timedelta(days=self.valid_days)).timestamp())}
        if self.subject is not None:
            claims["subject"] = self.subject
        if self.value_exists is not None:
            claims["value_exists"] = self.value_exists.declared()
        return claims


class AccessTokenHandler:
    """Signs, renews and forgets tokens. The same inputs and a token that is still good make no difference."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Refuse a token without access, and a key that a server could not be given."""
        inputs = dict(request.new_inputs)
        if "api_key" in inputs:
            inputs["api_key"] = inputs["api_key"].with_secret(True)
        values = plain_map(inputs)
        key = values.pop("api_key", None)  # a failure would repeat it
        wrong = invalid(AccessTokenSpec, _known_or_assumed(values))
        if key is not None and key is not UNKNOWN:
            problem = "must be a text" if not isinstance(key, str) or not key else key_problem(key)
            if problem:
                wrong.append(protocol.CheckFailure("", f"api_key {problem}"))
            elif len(key.encode()) < SHORT_KEY_BYTES:
                await self._context.log.warning(
                    request.urn,
                    f"the API key has less than {SHORT_KEY_BYTES} bytes: whoever has a token can try keys "
                    "until one signs it; use a longer one",
                )
        return protocol.CheckResponse(inputs=inputs, failures=wrong)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Another access, another key, or an end that is near makes another token, in place."""
        new, old = plain_map(request.new_inputs), plain_map(request.old_state)
        known = without_unknown(new)
        inputs = AccessTokenSpec.model_fields
        changed = [key for key in inputs if key in known and known[key] != old.get(key)]
        changed += [key for key in inputs if key not in new and key in old]
        if not changed and len(known) == len(new) and (why := self._worn_out(known, old)):
            await self._context.log.info(request.urn, f"the token is made anew: {why}")
            changed = ["expires_at"]
        response = difference((), sorted(new.keys() - known.keys()))
        for key in changed:
            response.detailed_diff[key] = protocol.PropertyDiff(protocol.PropertyDiffKind.UPDATE, key in new)
        response.diffs = sorted(response.detailed_diff)
        response.changes = bool(response.detailed_diff)
        return response

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Sign a token."""
        if request.preview:
            return protocol.CreateResponse(properties=_unsigned(request.properties))
        return protocol.CreateResponse(uuid4().hex, self._signed(request.properties))

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """Nothing on the server can have changed it; the next preview sees when its end is near."""
        if not plain_map(request.properties).get("token"):
            raise ProviderError("a token cannot be imported: no server keeps it; declare it, and it is made anew")
        return protocol.ReadResponse(request.resource_id, dict(request.properties), dict(request.inputs))

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Sign another token; the old one is taken until its own end."""
        if request.preview:
            return protocol.UpdateResponse(properties=_unsigned(request.news))
        return protocol.UpdateResponse(properties=self._signed(request.news))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """Forget it, and say until when it is taken."""
        end = plain_map(request.properties).get("expires_at")
        await self._context.log.info(
            request.urn,
            f"the token is forgotten here, but the server takes it until {end}; to end it sooner, change the "
            "server's API key, or the point that its value_exists names",
        )

    def _key(self, spec_key: str | None) -> str:
        key = spec_key or self._context.connection.api_key
        if not key:
            raise ProviderError(
                "no key to sign the token with: give api_key, or configure the provider with the server's API key"
            )
        return key

    def _worn_out(self, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> str | None:
        """Why the token of the state is no longer good; None when it is."""
        spec = validated(AccessTokenSpec, inputs)
        claims = _decoded(str(state.get("token", "")), self._key(spec.api_key))
        if claims is None:
            return "it is not signed with the server's present API key"
        left = datetime.fromtimestamp(claims["exp"], UTC) - datetime.now(UTC)
        if left <= timedelta(0):
            return f"it ended on {state.get('expires_at')}"
        if left <= timedelta(days=spec.renew_before_days):
            return f"it ends on {state.get('expires_at')}"
        return None

    def _signed(self, properties: Properties) -> dict[str, PropertyValue]:
        spec = validated(AccessTokenSpec, plain_map(properties))
        claims = spec.claims(datetime.now(UTC))
        token = _encoded(claims, self._key(spec.api_key))
        end = datetime.fromtimestamp(claims["exp"], UTC).isoformat().replace("+00:00", "Z")
        return {
            **properties,
            "token": to_property(token).with_secret(True),
            **to_properties({"expires_at": end}),
        }


# PyJWT brings cryptography along, which takes long to import: only a stack with tokens waits for it. It warns of
# short keys, as `check` has done already.


def _encoded(claims: dict[str, Any], key: str) -> str:
    import jwt  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jwt.encode(claims, key, ALGORITHM)


def _decoded(token: str, key: str) -> dict[str, Any] | None:
    """The claims of a token that this key has signed, ended or not; None of another."""
    import jwt  # noqa: PLC0415

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            claims: dict[str, Any] = jwt.decode(
                token, key, [ALGORITHM], options={"verify_exp": False, "require": ["exp", "access"]}
            )
    except jwt.InvalidTokenError:
        return None
    return claims


def _known_or_assumed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Access that is not known yet counts as given; the update checks it again."""
    assumed = {**values}
    if values.get("collections") is UNKNOWN:
        assumed["collections"] = {"unknown": "r"}
    if values.get("access") is UNKNOWN:
        assumed["access"] = "r"
    return assumed


def _unsigned(properties: Properties) -> dict[str, PropertyValue]:
    unknown = unknown_text()
    return {**properties, "token": unknown, "expires_at": unknown}
