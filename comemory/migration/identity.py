"""Identifiers made from what the source calls things: the same every time, and never one for two."""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import Final

from ulid import ULID

from comemory.identifiers import MAX_SLUG_LENGTH, SLUG, Kind

NAMESPACE: Final = uuid.UUID("2f3b8a54-91c7-5d0e-8c39-7a1d4be6f0c2")
"""The namespace of the ids of migrated points; changing it would let a second run add every point again."""

_SLUG = re.compile(SLUG)
_HASHED = re.compile(r"-[0-9a-f]{16}$")
_OTHER = re.compile(r"[^a-z0-9]+")


def target_id(origin: str, collection: str, point_id: int | str) -> str:
    """The id that a point gets: a UUIDv5 of where it came from, so that a second run writes the same point.

    Points of equal content keep ids of their own: a migration loses none, and merging is the deduplication's part.
    """
    return str(uuid.uuid5(NAMESPACE, _key(origin, collection, point_id)))


def derived_ulid(prefix: str, *parts: object) -> str:
    """`<prefix>_<ulid>` made from the parts alone.

    The ULID's time is 0, which says that none is known, and its 80 random bits are a hash of the parts.
    """
    digest = hashlib.sha256(_key(*parts).encode()).digest()
    return f"{prefix}_{ULID.from_bytes(bytes(6) + digest[:10])}"


def derived_slug(kind: Kind, name: str) -> str:
    """An identifier of `kind` for a name that somebody else chose, such as an e-mail address.

    A name that is a slug is taken as it is. Any other is brought to one, with 16 digits of its hash behind it,
    since two names must never become one reader: `Ann@x.org` and `ann-x-org` stay two. A slug that already ends as
    if it had such a hash is hashed too, so that nobody can choose another's.
    """
    if _SLUG.fullmatch(name) and len(name) <= MAX_SLUG_LENGTH and not _HASHED.search(name):
        return f"{kind.value}_{name}"
    plain = _OTHER.sub("-", name.lower()).strip("-")[: MAX_SLUG_LENGTH - 17].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{kind.value}_{plain or 'x'}-{digest}"


def _key(*parts: object) -> str:
    """Injective: the type of a part counts too, so that the number 1 and the string "1" differ."""
    return "\0".join(f"{type(part).__name__}:{len(str(part))}:{part}" for part in parts)
