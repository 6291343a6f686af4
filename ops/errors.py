"""What can go wrong between the daemon and Qdrant, as sentences a person can act on."""

from __future__ import annotations


class OpsError(Exception):
    """Something went wrong that a person can act on; its text is one sentence and never holds a key or content."""


class SettingsError(OpsError):
    """The settings are not usable; the text names the key and what was expected."""


class Unreachable(OpsError):
    """Qdrant did not answer, or answered that it is overloaded, until the retries were used up."""


class Unauthorized(OpsError):
    """Qdrant refused the key (401), or the key has no right to do this (403)."""


class CollectionGone(OpsError):
    """The collection or alias does not exist, or went away during the run (404)."""

    def __init__(self, collection: str) -> None:
        self.collection = collection
        super().__init__(f"Collection '{collection}' does not exist on the server, or was deleted during the run.")


class IndexRequired(OpsError):
    """A filter in strict mode, a facet or an order was refused because a payload index is missing (400)."""

    def __init__(self, collection: str, field: str) -> None:
        self.collection = collection
        self.field = field
        super().__init__(
            f"Collection '{collection}' has no fitting payload index on '{field}', and the server refuses to do "
            "without one; create it (`pulumi up` does) and run again."
        )


class Refused(OpsError):
    """Qdrant refused the request for another reason; the text is the server's own."""


class PageTooLarge(Refused):
    """Strict mode allows fewer points in one answer (400); `limit` is how many."""

    def __init__(self, collection: str, limit: int) -> None:
        self.limit = limit
        super().__init__(f"Collection '{collection}' allows at most {limit} points in one answer (strict mode).")


class Stopped(OpsError):
    """The run was asked to stop, or its budget is used up, between two batches."""
