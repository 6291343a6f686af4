"""The domain of Co-Memory: payload schema, identifiers, names, access rules, retention, duplicates, drift.

Everything here is a pure function or a value: nothing opens a connection, reads a clock on its own (but for
making fresh identifiers) or imports another package of this repository. Applications use it directly; the
provider, the daemon and the command line all decide with it, so a rule stands in one place.

The names below are imported when they are first used: a program that needs the catalogue only does not wait for
the Qdrant client that the filters are made of.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comemory.access import Principal, can_read, read_filter
    from comemory.duplicates import (
        DEFAULT_POLICIES,
        Candidate,
        DuplicatePolicy,
        access_domain,
        duplicate_key,
        survivor,
        victims,
    )
    from comemory.errors import CoMemoryError, InvalidIdentifierError, InvalidNameError, InvalidPrincipalError
    from comemory.fingerprints import fingerprint, normalise_fingerprint
    from comemory.identifiers import (
        Identifier,
        Kind,
        make_identifier,
        new_artifact_id,
        new_chunk_id,
        new_document_id,
        new_message_id,
        parse_identifier,
    )
    from comemory.naming import CollectionName
    from comemory.payload import SCHEMA_VERSION, InvalidPayloadError, LenientPayload, Payload, Problem, Reason
    from comemory.points import insert_only, new_point, point_id
    from comemory.retention import (
        DEFAULT_EXEMPT_TAGS,
        InvalidRetention,
        expired_filter,
        expires_at,
        invalid_retention_filter,
        is_expired,
    )
    from comemory.times import parse_time

__all__ = [
    "DEFAULT_EXEMPT_TAGS",
    "DEFAULT_POLICIES",
    "SCHEMA_VERSION",
    "Candidate",
    "CoMemoryError",
    "CollectionName",
    "DuplicatePolicy",
    "Identifier",
    "InvalidIdentifierError",
    "InvalidNameError",
    "InvalidPayloadError",
    "InvalidPrincipalError",
    "InvalidRetention",
    "Kind",
    "LenientPayload",
    "Payload",
    "Principal",
    "Problem",
    "Reason",
    "access_domain",
    "can_read",
    "duplicate_key",
    "expired_filter",
    "expires_at",
    "fingerprint",
    "insert_only",
    "invalid_retention_filter",
    "is_expired",
    "make_identifier",
    "new_artifact_id",
    "new_chunk_id",
    "new_document_id",
    "new_message_id",
    "new_point",
    "normalise_fingerprint",
    "parse_identifier",
    "parse_time",
    "point_id",
    "read_filter",
    "survivor",
    "victims",
]

_HOMES = (
    "errors",
    "times",
    "fingerprints",
    "identifiers",
    "naming",
    "payload",
    "duplicates",
    "access",
    "points",
    "retention",
)
"""Where the names live; those that need the Qdrant client come last."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"comemory.{home}")
            if hasattr(module, name):
                globals()[name] = value = getattr(module, name)
                return value
    raise AttributeError(f"module 'comemory' has no attribute {name!r}")
