"""mcp-server-qdrant: the entry in `document`, and `metadata`, null where the agent gave none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import Shape
from comemory.migration.shapes.langchain import of_document


def _fits(payload: Mapping[str, Any]) -> bool:
    return "document" in payload and "metadata" in payload


def _read(payload: Mapping[str, Any]) -> Record:
    return of_document(payload, "document")


SHAPE = Shape("mcp_server_qdrant", "mcp-server-qdrant", _fits, _read)
