"""LlamaIndex: the node as a JSON string in `_node_content`, its class in `_node_type`, the metadata flat beside.

Traps: the text stands inside the JSON string (`text`, or `text_resource.text` of newer nodes); a node without a
document has the string "None" in `document_id`, `doc_id` and `ref_doc_id`; the metadata stands in the string a
second time, with the values as they were when the node was made; those at the top are the ones that filters see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record, Unmappable
from comemory.migration.shapes.base import CREATED, POSITION, UPDATED, Shape, details, first, text, without

_SOURCE = "1"
"""`NodeRelationship.SOURCE`, as it is written."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""A half of a character outside the basic plane, as JSON may write it; two of them are one character."""
_MANY_DIGITS = 25
_SAID_TWICE = ("text", "text_resource", "metadata", "embedding")


def _fits(payload: Mapping[str, Any]) -> bool:
    return "_node_content" in payload and "_node_type" in payload


def _read(payload: Mapping[str, Any]) -> Record:
    node = _node(payload["_node_content"])
    if node is None:
        raise Unmappable("_node_content.malformed", "_node_content is no JSON object; the text stands in it")
    content = node.get("text") or details(node, "text_resource").get("text")
    position = first(payload, *POSITION)
    return Record(
        content=content,
        source=_document(payload, node),
        position=node.get("start_char_idx") if position is None else position,
        created=first(payload, *CREATED),
        updated=first(payload, *UPDATED),
        kept={**without(payload, "_node_content"), "_node_content": without(node, *_SAID_TWICE)},
    )


def _node(content: object) -> dict[str, Any] | None:
    """The JSON object in the string, or None where it is none, or holds what no payload can.

    Python writes NaN for what is missing, which is no JSON; a null says the same.
    """
    if not isinstance(content, str):
        return None
    try:
        node = json.loads(content, parse_constant=lambda _: None, parse_int=_whole)
        if _HALF.search(content):
            json.dumps(node, ensure_ascii=False).encode()  # half a character cannot be sent
    except (ValueError, RecursionError):
        return None
    return node if isinstance(node, dict) else None


def _whole(digits: str) -> int | float:
    """As Qdrant reads a number that is too large for 64 bits."""
    number = int(digits) if len(digits) < _MANY_DIGITS else float(digits)
    return number if -(2**63) <= number < 2**64 else float(number)


def _document(payload: Mapping[str, Any], node: Mapping[str, Any]) -> str | None:
    for key in ("ref_doc_id", "doc_id", "document_id"):
        value = text(payload.get(key))
        if value is not None and value != "None":
            return value
    return text(details(details(node, "relationships"), _SOURCE).get("node_id"))


SHAPE = Shape("llamaindex", "LlamaIndex", _fits, _read)
