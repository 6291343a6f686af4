"""Roo Code (and its descendants): a piece of a file, `filePath`, `codeChunk`, `startLine`, `endLine`.

One point of each collection has `type: metadata` and says whether indexing has ended; it is no code and is left
out. `segmentHash` is a hash of more than the text, `pathSegments` the path once more as numbered steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Marker, Record
from comemory.migration.shapes.base import Shape, text, without


def _fits(payload: Mapping[str, Any]) -> bool:
    return ("filePath" in payload and "codeChunk" in payload) or _is_marker(payload)


def _is_marker(payload: Mapping[str, Any]) -> bool:
    return payload.get("type") == "metadata" and "indexing_complete" in payload


def _read(payload: Mapping[str, Any]) -> Record | Marker:
    if _is_marker(payload):
        return Marker("the marker of a finished indexing")
    return Record(
        content=payload["codeChunk"],
        source=text(payload["filePath"]),
        position=payload.get("startLine"),
        source_kind="code",
        scope="docs",
        kept=without(payload, "codeChunk"),
    )


SHAPE = Shape("roo_code", "Roo Code", _fits, _read)
