"""Open WebUI with `ENABLE_QDRANT_MULTITENANCY_MODE`: `text`, `metadata` and `tenant_id`.

Traps: `tenant_id` is no tenant but a logical collection, `user-memory-<user>`, `file-<file>`, `web-search-<hash>`,
a hash of an address, or the id of a knowledge base; copied as it is, it would hide the point from everybody, or
worse. Only `user-memory-…` says whose the point is; for the others `metadata.created_by` does, the one who uploaded
it. `embedding_config` is an object, or in older points a JSON string of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import POSITION, Shape, details, first, text, without

_MEMORY = "user-memory-"
_WEB = "web-search-"


def _fits(payload: Mapping[str, Any]) -> bool:
    return "text" in payload and "metadata" in payload and isinstance(payload.get("tenant_id"), str)


def _read(payload: Mapping[str, Any]) -> Record:
    metadata = details(payload, "metadata")
    place: str = payload["tenant_id"]
    memory = place.startswith(_MEMORY)
    # A user's memories are one entry each; a file's chunks belong together.
    source = None if memory else text(metadata.get("file_id")) or place
    return Record(
        content=payload["text"],
        source=source,
        position=first(metadata, *POSITION),
        created=first(metadata, "created_at"),
        updated=first(metadata, "updated_at"),
        user=place.removeprefix(_MEMORY) if memory else metadata.get("created_by"),
        partition=place,
        model=_model(metadata.get("embedding_config")),
        scope="memory" if memory else "docs",
        source_kind="web" if place.startswith(_WEB) else None,
        kept=without(payload, "text"),
    )


def _model(config: object) -> str | None:
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except ValueError:
            return None
    return text(config.get("model")) if isinstance(config, Mapping) else None


SHAPE = Shape("open_webui", "Open WebUI", _fits, _read)
