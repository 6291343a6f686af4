"""No framework's payload: the text under `text`, `content` or `document`, and all else flat beside it.

What applications of one's own write. A point that lacks a framework's fields looks like this too, so it is only
taken for one in a collection that holds no framework's points, or where the rule says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import CREATED, POSITION, UPDATED, Shape, first, text, without
from comemory.payload import SCHEMA_VERSION

_TEXT = ("text", "content", "document")


def _fits(payload: Mapping[str, Any]) -> bool:
    there = sum(key in payload for key in _TEXT)
    return there == 1 and payload.get("schema_version") != SCHEMA_VERSION


def _read(payload: Mapping[str, Any]) -> Record:
    key = next(key for key in _TEXT if key in payload)
    return Record(
        content=payload[key],
        source=text(first(payload, "source_id", "document_id", "doc_id", "message_id", "source")),
        position=first(payload, *POSITION),
        created=first(payload, *CREATED),
        updated=first(payload, *UPDATED),
        user=payload.get("user_id"),
        agent=payload.get("agent_id"),
        kept=without(payload, key),
    )


SHAPE = Shape("flat", "flat (text and fields)", _fits, _read)
