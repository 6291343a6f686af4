"""Errors that a person can act on: one sentence, no traceback, no key."""

from __future__ import annotations


class ProviderError(Exception):
    """Something the user can mend; the text is one sentence that says what happened, to what, and what to do."""


class NotFoundError(ProviderError):
    """The server knows no such collection."""


class ConflictError(ProviderError):
    """The server has something of that name already."""


class TimedOutError(ProviderError):
    """The server did not answer in time; whether it did the work is not known."""


def counted(points: int) -> str:
    """`1 point`, `3 points`."""
    return f"{points} point{'s' if points != 1 else ''}"


def unmarked(name: str, url: str, points: int) -> str:
    """Why nothing is taken from a collection that lost this stack's marks, and what to do."""
    return (
        f"collection {name} on {url} holds {counted(points)} and not the marks of this stack, so it may be "
        "somebody else's; if it is this stack's, run `pulumi refresh` and up, which marks it, and try again"
    )
