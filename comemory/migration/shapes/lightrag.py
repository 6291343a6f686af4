"""LightRAG: `id`, `workspace_id`, `created_at` in whole seconds, and `content` with what is special to chunks,
entities and relations.

The point's id is a hash, LightRAG's own stands in `id` (`chunk-…`, `ent-…`, `rel-…`). A workspace that was not
named is `_`. Chunks say their document in `full_doc_id`; an entity or a relation is drawn from several
and stands alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import POSITION, Shape, first, text, without


def _fits(payload: Mapping[str, Any]) -> bool:
    return "id" in payload and "workspace_id" in payload and "content" in payload


def _read(payload: Mapping[str, Any]) -> Record:
    return Record(
        content=payload["content"],
        source=text(payload.get("full_doc_id")),
        position=first(payload, "chunk_order_index", *POSITION),
        created=payload.get("created_at"),
        partition=text(payload["workspace_id"]),
        scope="docs",
        kept=without(payload, "content"),
    )


SHAPE = Shape("lightrag", "LightRAG", _fits, _read)
