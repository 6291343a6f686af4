"""What the domain raises: one base class, and one class for each kind of thing that can be wrong.

All of them are `ValueError`s, and each message says what is wrong with which value and what was expected.
"""

from __future__ import annotations


class CoMemoryError(ValueError):
    """Anything this package refuses; catch this to catch them all."""


class InvalidNameError(CoMemoryError):
    """A collection name that is not `cm_<type>_<dim>_v<version>`."""


class InvalidIdentifierError(CoMemoryError):
    """An identifier with a wrong prefix, slug or ULID."""


class InvalidPrincipalError(CoMemoryError):
    """A principal that no access filter may be built for."""


def shown(value: object, limit: int = 60) -> str:
    """`value` as an error may show it: its `repr`, cut at `limit` characters so that content never leaks whole."""
    text = repr(value[: limit + 1] if isinstance(value, str) else value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
