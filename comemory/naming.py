"""Collection names: `cm_<type>_<dim>_v<version>`, one collection per embedding space."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from comemory.errors import InvalidNameError, shown

DEFAULT_TYPES: Final = frozenset({"text", "code", "mm"})
"""The types that need no declaring; a catalogue may declare others."""

# The engine's own limits: a vector has 1 to 65,536 numbers, a collection's name at most 255 characters.
MAX_DIMENSION: Final = 65_536
_TYPE = re.compile(r"[a-z][a-z0-9]{0,31}")
_NAME = re.compile(r"cm_([a-z][a-z0-9]{0,31})_([1-9][0-9]{0,9})_v([1-9][0-9]{0,8})", re.ASCII)
_FORM = "cm_<type>_<dim>_v<version>, for example cm_text_1024_v1"


@dataclass(frozen=True, slots=True, order=True)
class CollectionName:
    """A collection's name in its parts; `str()` gives the name.

    `type` is the kind of embedding (lower-case letters and digits), `dim` the number of dimensions (1 to 65,536)
    and `version` counts from 1. Which types are allowed is a matter of the catalogue: see `parse`.
    """

    type: str
    dim: int
    version: int

    def __post_init__(self) -> None:
        if not isinstance(self.type, str) or not _TYPE.fullmatch(self.type):
            raise InvalidNameError(
                f"collection type {shown(self.type)} is not 1 to 32 lower-case letters and digits, a letter first"
            )
        for part, value, most in (("dimension", self.dim, MAX_DIMENSION), ("version", self.version, 999_999_999)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise InvalidNameError(f"collection {part} {shown(value)} is not a whole number from 1 to {most}")

    def __str__(self) -> str:
        return f"cm_{self.type}_{self.dim}_v{self.version}"

    @classmethod
    def parse(cls, name: str, types: Iterable[str] = DEFAULT_TYPES) -> CollectionName:
        """Take a name apart; `types` are the types that are allowed.

        Raises:
            InvalidNameError: the name has another form, a type that is not among `types`, or numbers out of range.
        """
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            raise InvalidNameError(f"collection name {shown(name)} does not have the form {_FORM}")
        kind, dim, version = match.groups()
        allowed = frozenset(types)
        if kind not in allowed:
            raise InvalidNameError(
                f"collection name {shown(name)} has the type {kind!r}; allowed are {', '.join(sorted(allowed))} "
                "(a catalogue may declare more)"
            )
        try:
            return cls(kind, int(dim), int(version))
        except InvalidNameError as error:
            raise InvalidNameError(f"collection name {shown(name)}: {error}") from None

    def next_version(self) -> CollectionName:
        """The name to declare when what cannot be changed in place has to change."""
        return CollectionName(self.type, self.dim, self.version + 1)
