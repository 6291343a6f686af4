"""LangChain for Python (`langchain-qdrant`): `page_content` and `metadata`, null where the caller gave none.

Dify has the same two fields; its `group_id` beside them tells it apart. Metadata is the user's, so of its keys only
those that LangChain's own loaders and splitters write are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import CREATED, POSITION, UPDATED, Shape, details, first, text, without


def _fits(payload: Mapping[str, Any]) -> bool:
    return "page_content" in payload and "group_id" not in payload


def _read(payload: Mapping[str, Any]) -> Record:
    return of_document(payload, "page_content")


def of_document(payload: Mapping[str, Any], content: str) -> Record:
    """What a LangChain document says, whose text stands under `content`."""
    metadata = details(payload, "metadata")
    return Record(
        content=payload[content],
        source=text(metadata.get("source")),
        position=first(metadata, *POSITION),
        created=first(metadata, *CREATED),
        updated=first(metadata, *UPDATED),
        kept=without(payload, content),
    )


SHAPE = Shape("langchain", "LangChain (Python)", _fits, _read)
