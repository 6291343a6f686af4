"""Identifiers made from what the source calls things: the same every time, and never one for two."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from comemory.identifiers import MAX_SLUG_LENGTH, SLUG, Kind

_SLUG = re.compile(SLUG)
_HASHED = re.compile(r"-[0-9a-f]{16}$")
_OTHER = re.compile(r"[^a-z0-9]+")
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_SHIFTS: Final = range(70, -10, -10)
_NO_TIME: Final = "0" * 10


class PointIds:
    """The ids of one source collection's points in the target.

    Args:
        origin: what the source is called.
        collection: its name there.
    """

    def __init__(self, origin: str, collection: str) -> None:
        self._place = hashlib.sha256(_key("point", origin, collection))

    def of(self, point_id: int | str) -> tuple[str, str]:
        """The id that a point gets and that of its chunk, both made from where it came from.

        A second run so writes the same point. Points of equal content keep ids of their own: a migration loses
        none, and merging is the deduplication's part. The point's is a UUID of version 8, a hash.
        """
        digest = self._place.copy()
        digest.update(_key(point_id))
        made = digest.digest()
        text = made[:16].hex()
        variant = "89ab"[made[8] >> 6]
        uuid = f"{text[:8]}-{text[8:12]}-8{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"
        return uuid, f"chk_{_NO_TIME}{_encode(made[16:26])}"


def derived_ulid(prefix: str, *parts: object) -> str:
    """`<prefix>_<ulid>` made from the parts alone.

    The ULID's time is 0, which says that none is known, and its 80 random bits are a hash of the parts.
    """
    return f"{prefix}_{_NO_TIME}{_encode(hashlib.sha256(_key(*parts)).digest()[:10])}"


def _encode(ten_bytes: bytes) -> str:
    number = int.from_bytes(ten_bytes)
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


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


def _key(*parts: object) -> bytes:
    """Injective: the type of a part counts too, so that the number 1 and the string "1" differ."""
    written = []
    for part in parts:
        text = str(part).encode("utf-8", "surrogatepass")
        written.append(b"%s:%d:%s" % (type(part).__name__.encode(), len(text), text))
    return b"\0".join(written)
