"""LangChain for JavaScript (`@langchain/qdrant`): `content`, `metadata`, and `customPayload` if given.

Haystack also has `content`, but `meta`; LightRAG has `workspace_id`. The splitter writes `metadata.loc.lines.from`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import Shape, details
from comemory.migration.shapes.langchain import of_document


def _fits(payload: Mapping[str, Any]) -> bool:
    return (
        "content" in payload and "metadata" in payload and "meta" not in payload and "workspace_id" not in payload
    )


def _read(payload: Mapping[str, Any]) -> Record:
    record = of_document(payload, "content")
    if record.position is None:
        lines = details(details(details(payload, "metadata"), "loc"), "lines")
        record = replace(record, position=lines.get("from"))
    return record


SHAPE = Shape("langchain_js", "LangChain (JavaScript)", _fits, _read)
