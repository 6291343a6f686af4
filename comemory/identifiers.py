"""Identifiers: a prefix that says what is named, then a slug (`agt_helion`) or a ULID (`doc_01HQ…`).

Making one is the only thing in this package that reads the clock and draws random numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from ulid import ULID

from comemory.errors import InvalidIdentifierError, shown


class Kind(StrEnum):
    """What an identifier names; the value is the prefix, without the underscore."""

    TENANT = "t"
    TEAM = "team"
    PROJECT = "proj"
    AGENT = "agt"
    USER = "user"
    ROLE = "role"
    DOCUMENT = "doc"
    MESSAGE = "msg"
    ARTIFACT = "art"
    CHUNK = "chk"

    @property
    def is_ulid(self) -> bool:
        """Whether a ULID follows the prefix; otherwise a slug does."""
        return self in _ULID_KINDS


_ULID_KINDS: Final = frozenset({Kind.DOCUMENT, Kind.MESSAGE, Kind.ARTIFACT, Kind.CHUNK})

MAX_SLUG_LENGTH: Final = 64
SLUG: Final = r"[a-z0-9]+(?:[_-][a-z0-9]+)*"
"""Lower-case letters and digits, parted by single hyphens or underscores; a pattern for `re` and for pydantic."""

STRICT_ULID: Final = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
"""Crockford's alphabet in capitals; the first character holds three bits only."""

LENIENT_ULID: Final = r"[0-9A-Za-z]{1,26}"
"""Also the shortened ones that the specification's examples show."""

_SLUG = re.compile(SLUG)
_STRICT = re.compile(STRICT_ULID)
_LENIENT = re.compile(LENIENT_ULID)


@dataclass(frozen=True, slots=True)
class Identifier:
    """An identifier in its parts; `str()` gives it back as it was written."""

    kind: Kind
    body: str

    def __str__(self) -> str:
        return f"{self.kind.value}_{self.body}"

    @property
    def ulid(self) -> ULID | None:
        """The ULID of a document, message, artifact or chunk; None for slugs and for shortened ULIDs."""
        return ULID.from_str(self.body) if self.kind.is_ulid and _STRICT.fullmatch(self.body) else None

    @property
    def created_at(self) -> datetime | None:
        """When the ULID was made, to the millisecond, in UTC; None where there is no whole ULID."""
        ulid = self.ulid
        return ulid.datetime if ulid else None


def parse_identifier(value: str, kind: Kind | None = None, *, lenient: bool = False) -> Identifier:
    """Take an identifier apart.

    Args:
        value: for example `agt_helion` or `doc_01HQ8K9X2N0PQR3FGJKM567890`.
        kind: what it has to name; None accepts every kind.
        lenient: accept the shortened ULIDs of the specification's examples too.

    Raises:
        InvalidIdentifierError: unknown or other prefix, no slug or no ULID after it.
    """
    if not isinstance(value, str):
        raise InvalidIdentifierError(f"identifier {shown(value)} is a {type(value).__name__}, not a string")
    prefix, _, body = value.partition("_")
    try:
        found = Kind(prefix)
    except ValueError:
        prefixes = ", ".join(f"{k.value}_" for k in Kind)
        expected = f"{kind.value}_" if kind else f"one of {prefixes}"
        raise InvalidIdentifierError(f"identifier {shown(value)} does not begin with {expected}") from None
    if kind is not None and found is not kind:
        raise InvalidIdentifierError(f"identifier {shown(value)} does not begin with {kind.value}_")
    if found.is_ulid:
        if not (_LENIENT if lenient else _STRICT).fullmatch(body):
            raise InvalidIdentifierError(
                f"identifier {shown(value)} does not end in a ULID "
                f"({'1 to 26 letters and digits' if lenient else '26 characters of 0-9 A-Z without I, L, O, U'})"
            )
    elif len(body) > MAX_SLUG_LENGTH or not _SLUG.fullmatch(body):
        raise InvalidIdentifierError(
            f"identifier {shown(value)} does not end in a slug (1 to {MAX_SLUG_LENGTH} lower-case letters and "
            "digits, parted by single hyphens or underscores)"
        )
    return Identifier(found, body)


def make_identifier(kind: Kind, slug: str) -> str:
    """`kind`'s prefix and a slug, checked: `make_identifier(Kind.AGENT, "helion")` is `agt_helion`.

    Raises:
        InvalidIdentifierError: `slug` is not one, or `kind` takes a ULID.
    """
    if kind.is_ulid:
        raise InvalidIdentifierError(f"a {kind.name.lower()} is named by a ULID, not by the slug {shown(slug)}")
    return str(parse_identifier(f"{kind.value}_{slug}", kind))


def new_identifier(kind: Kind, at: datetime | None = None) -> str:
    """A fresh identifier for a kind that takes a ULID, made at `at` (default: now).

    Raises:
        InvalidIdentifierError: `kind` takes a slug.
    """
    if not kind.is_ulid:
        raise InvalidIdentifierError(f"a {kind.name.lower()} is named by a slug; use make_identifier")
    return f"{kind.value}_{ULID.from_datetime(at) if at else ULID()}"


def new_document_id(at: datetime | None = None) -> str:
    """A fresh `doc_<ulid>`, made at `at` (default: now)."""
    return new_identifier(Kind.DOCUMENT, at)


def new_message_id(at: datetime | None = None) -> str:
    """A fresh `msg_<ulid>`, made at `at` (default: now)."""
    return new_identifier(Kind.MESSAGE, at)


def new_artifact_id(at: datetime | None = None) -> str:
    """A fresh `art_<ulid>`, made at `at` (default: now)."""
    return new_identifier(Kind.ARTIFACT, at)


def new_chunk_id(at: datetime | None = None) -> str:
    """A fresh `chk_<ulid>`, made at `at` (default: now)."""
    return new_identifier(Kind.CHUNK, at)
