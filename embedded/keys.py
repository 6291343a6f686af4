"""Who may do what: the API key and the read-only key, as a server reads them from its environment."""

from __future__ import annotations

import enum
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

API_KEY = "QDRANT__SERVICE__API_KEY"
READ_ONLY_API_KEY = "QDRANT__SERVICE__READ_ONLY_API_KEY"
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


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(), right.encode())


@dataclass(frozen=True)
class Keys:
    """The keys in force; without any, everybody may do everything."""

    api_key: str | None = field(default=None, repr=False)
    read_only: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Keys:
        """Keys from the variables a server reads; an empty one counts as none."""
        return cls(environment.get(API_KEY) or None, environment.get(READ_ONLY_API_KEY) or None)

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return self.api_key is not None or self.read_only is not None

    def access(self, path: str, headers: Mapping[str, str]) -> Access:
        """What the caller may do; raises `Unauthorized`."""
        if not self.required or path in OPEN_PATHS:
            return Access.MANAGE
        given = headers.get("api-key")
        if given is None:
            scheme, _, token = headers.get("authorization", "").partition(" ")
            given = token.strip() if scheme.lower() == "bearer" else None
        if given is None:
            raise Unauthorized("Must provide an API key or an Authorization bearer token")
        if self.api_key is not None and _same(given, self.api_key):
            return Access.MANAGE
        if self.read_only is not None and _same(given, self.read_only):
            return Access.READ
        raise Unauthorized("Invalid API key or JWT")
