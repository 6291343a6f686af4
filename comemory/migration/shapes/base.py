"""What a shape is, and the small readings that several share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from comemory.migration.record import Marker, Record


@dataclass(frozen=True, slots=True)
class Shape:
    """One framework's way of writing a payload.

    `fits` looks at which fields are there and of what type, never at what they say; `read` is only asked about a
    payload that fits. It raises `Unmappable` where a field contradicts the framework's own format.
    """

    name: str
    title: str
    fits: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any]], Record | Marker]


def without(payload: Mapping[str, Any], *used: str) -> dict[str, Any]:
    """The payload's other fields."""
    return {key: value for key, value in payload.items() if key not in used}


def text(value: object) -> str | None:
    """A string that says something, else None; a whole number as its digits."""
    if isinstance(value, str) and value.strip():
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def first(found: Mapping[str, Any], *keys: str) -> Any:
    """The first of these fields that is there and not null."""
    for key in keys:
        value = found.get(key)
        if value is not None:
            return value
    return None


def details(payload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`; empty where there is none, or null."""
    value = payload.get(key)
    return value if isinstance(value, Mapping) else {}


def at(payload: Mapping[str, Any], path: str) -> object:
    """What stands at a path such as `metadata.date`; None where there is nothing."""
    found: object = payload
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


CREATED = ("created_at", "creation_date", "creationdate", "timestamp")
UPDATED = ("updated_at", "last_modified_date", "moddate")
POSITION = ("chunk_idx", "chunk_index", "start_index")
"""Keys that document loaders and splitters write into the metadata that a framework leaves to its user."""
