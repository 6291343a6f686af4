"""What a reader finds in a point, whichever framework wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from comemory.errors import CoMemoryError
from comemory.payload import Scope, SourceKind


@dataclass(frozen=True, slots=True)
class Record:
    """A point in neutral terms. Values that the framework left to its user are as they came, unchecked.

    `source` is the framework's name of the document the point is a part of (None: the point is one by itself),
    `position` where in it (an index, line or offset: it only grows), `created` and `updated` a time in any form,
    `user` and `agent` the ids of whom the framework says the point belongs to, `partition` by what the framework
    parts its own tenants or sets inside one collection, `model` the embedding model, `kept` every other field of
    the payload, which is carried along unchanged.
    """

    content: object
    source: str | None = None
    position: object = None
    created: object = None
    updated: object = None
    user: object = None
    agent: object = None
    partition: str | None = None
    model: str | None = None
    scope: Scope | None = None
    source_kind: SourceKind | None = None
    kept: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Marker:
    """A point that a framework wrote for its own bookkeeping: no memory, and left out."""

    what: str


class Unmappable(CoMemoryError):
    """A point that gets no place under the schema.

    `code` is stable and free of content (`<what>.<why>`), `detail` says it to a person, with values shortened.
    """

    def __init__(self, code: str, detail: str) -> None:
        self.code, self.detail = code, detail
        super().__init__(f"{code}: {detail}")
