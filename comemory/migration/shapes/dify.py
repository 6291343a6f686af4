"""Dify: `page_content`, `metadata` (null where the caller gave none) and `group_id`, the data set.

`metadata` holds `doc_id` (the segment), `doc_hash` (a hash of the segment's text in Dify's own form), `document_id`
and `dataset_id`; segments of one document share `document_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import CREATED, POSITION, UPDATED, Shape, details, first, text, without


def _fits(payload: Mapping[str, Any]) -> bool:
    return "page_content" in payload and "group_id" in payload


def _read(payload: Mapping[str, Any]) -> Record:
    metadata = details(payload, "metadata")
    return Record(
        content=payload["page_content"],
        source=text(metadata.get("document_id")),
        position=first(metadata, "position", *POSITION),
        created=first(metadata, *CREATED),
        updated=first(metadata, *UPDATED),
        partition=text(payload["group_id"]),
        kept=without(payload, "page_content"),
    )


SHAPE = Shape("dify", "Dify", _fits, _read)
