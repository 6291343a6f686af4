"""Haystack: a document as a dict, `id`, `content`, `meta` and a null for everything that it does not have.

A document that was split has `source_id`, `split_id` and `split_idx_start` in `meta`; one that holds bytes has them
in `blob` and null in `content`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import CREATED, POSITION, UPDATED, Shape, details, first, text, without


def _fits(payload: Mapping[str, Any]) -> bool:
    return "id" in payload and "content" in payload and "meta" in payload


def _read(payload: Mapping[str, Any]) -> Record:
    meta = details(payload, "meta")
    return Record(
        content=payload["content"],
        source=text(first(meta, "source_id", "file_path")),
        position=first(meta, "split_id", *POSITION),
        created=first(meta, *CREATED),
        updated=first(meta, *UPDATED),
        kept=without(payload, "content"),
    )


SHAPE = Shape("haystack", "Haystack", _fits, _read)
