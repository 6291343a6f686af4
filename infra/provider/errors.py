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
