"""Who a collection belongs to: a few keys in its metadata, so that two stacks never fight over one collection.

Qdrant keeps collection metadata since 1.16. The same keys let an interrupted run be finished: a collection
that carries the stack's own mark was made by it, even when the stack's state does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from comemory.payload import SCHEMA_VERSION

MANAGED_BY = "comemory"

Standing = Literal["ours", "unowned", "foreign"]


def owner_marks(stack: str, deletion_policy: str) -> dict[str, str]:
    """The metadata that marks a collection as belonging to `stack` (`project/stack`)."""
    return {
        "managed_by": MANAGED_BY,
        "stack": stack,
        "schema_version": SCHEMA_VERSION,
        "deletion_policy": deletion_policy,
    }


def marks_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The ownership marks found in a collection's metadata; keys that are missing are left out."""
    return {key: str(metadata[key]) for key in owner_marks("", "") if metadata.get(key) is not None}


def standing(metadata: Mapping[str, Any], stack: str) -> Standing:
    """Whether a collection with this metadata is the stack's own, another's, or nobody's.

    Anything that says `managed_by` or `stack` is somebody's, also when it was not this tool that wrote it.
    """
    if metadata.get("managed_by") == MANAGED_BY and metadata.get("stack") == stack:
        return "ours"
    if metadata.get("stack") or metadata.get("managed_by") not in (None, MANAGED_BY):
        return "foreign"
    return "unowned"


def owner_text(metadata: Mapping[str, Any]) -> str:
    """The owner in words, for an error: `stack shop/prod (managed by comemory)`."""
    who = f"stack {metadata['stack']}" if metadata.get("stack") else "an unnamed stack"
    return f"{who} (managed by {metadata.get('managed_by') or 'something unnamed'})"
