"""Who may do what: the API key, the read-only key and tokens, as a server reads them from its environment."""

from __future__ import annotations

import enum
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

API_KEY = "QDRANT__SERVICE__API_KEY"
READ_ONLY_API_KEY = "QDRANT__SERVICE__READ_ONLY_API_KEY"
JWT_RBAC = "QDRANT__SERVICE__JWT_RBAC"
# What a probe asks for must not need a key.
OPEN_PATHS = frozenset({"/", "/healthz", "/livez", "/readyz"})


class Access(enum.IntEnum):
    """What a request needs, and what a key gives."""

    NONE = 0
    READ = 1
    WRITE = 2
    MANAGE = 3


class Unauthorized(Exception):
    """401: no key, or one that is not ours. The text holds no key."""


class Refused(Exception):
    """403: a token that was signed with our key and is not taken any more, or not here."""


@dataclass(frozen=True)
class Rights:
    """What a caller may do: to everything, or only to the collections named."""

    everything: Access
    collections: Mapping[str, Access] = field(default_factory=dict)

    def to(self, collection: str) -> Access:
        """What the caller may do to the collection."""
        return max(self.everything, self.collections.get(collection, Access.NONE))

    @property
    def scoped(self) -> bool:
        """Whether the caller sees the named collections only."""
        return self.everything == Access.NONE


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(), right.encode())


@dataclass(frozen=True)
class Keys:
    """The keys in force; without any, everybody may do everything."""

    api_key: str | None = field(default=None, repr=False)
    read_only: str | None = field(default=None, repr=False)
    jwt_rbac: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Keys:
        """Keys from the variables a server reads; an empty one counts as none."""
        return cls(
            environment.get(API_KEY) or None,
            environment.get(READ_ONLY_API_KEY) or None,
            environment.get(JWT_RBAC, "").lower() == "true",
        )

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return self.api_key is not None or self.read_only is not None

    def rights(self, path: str, headers: Mapping[str, str]) -> Rights:
        """What the caller may do; raises `Unauthorized` and `Refused`."""
        if not self.required or path in OPEN_PATHS:
            return Rights(Access.MANAGE)
        given = headers.get("api-key")
        if given is None:
            scheme, _, token = headers.get("authorization", "").partition(" ")
            given = token.strip() if scheme.lower() == "bearer" else None
        if given is None:
            raise Unauthorized("Must provide an API key or an Authorization bearer token")
        if self.api_key is not None and _same(given, self.api_key):
            return Rights(Access.MANAGE)
        if self.read_only is not None and _same(given, self.read_only):
            return Rights(Access.READ)
        if self.jwt_rbac and self.api_key is not None and (rights := _of_token(given, self.api_key)) is not None:
            return rights
        raise Unauthorized("Invalid API key or JWT")


def _of_token(token: str, key: str) -> Rights | None:
    # What reads tokens brings cryptography along, a fifth of a second that only who uses them should wait for.
    from embedded import tokens  # noqa: PLC0415

    try:
        claims = tokens.claims(token, key)
    except tokens.Expired:
        raise Refused("ExpiredSignature") from None
    except tokens.Unusable as error:
        raise Refused(f"the embedded endpoint does not look at the claim {error}") from None
    if claims is None:
        return None
    levels = {"r": Access.READ, "rw": Access.WRITE, "m": Access.MANAGE}
    everything = levels[claims.everything] if claims.everything else Access.NONE
    return Rights(everything, {name: levels[level] for name, level in claims.collections.items()})
