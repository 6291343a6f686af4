"""The rules of a rollover: what becomes of a point while one collection takes another's place.

Each copy in the new collection carries a marker in its payload: digests of what the old point was when it was
copied, and of what was written. Any later pass can so decide with nothing but the two points in hand whether the
old one changed since, whether an application wrote to the copy, or whether the new point is no copy at all.

An application's write to the new collection wins, with one exception: a copy that was only touched (its marker
is there still) takes over the readers of the old point when these changed since it was copied and the touch was
not about them. Otherwise one `set_payload` of a counter would keep readers that the old collection has shut out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Self

MARKER: Final = "comemory_rollover"
"""The payload field that a copy carries until the rollover is finished."""

READERS: Final = (
    "schema_version", "tenant_id", "team_id", "owner_kind", "owner_id", "visibility", "indexed", "acl",
)  # fmt: skip
"""The fields that the access rules look at."""

Json = Mapping[str, Any]


class Step(StrEnum):
    """What is to be done about one id, or why nothing is."""

    SAME = "same"
    COPY = "copied"
    PAYLOAD = "payload updated"
    WHOLE = "payload and vectors updated"
    READERS = "readers taken over"
    REMOVE = "removed, the old one is gone"
    TOUCHED = "kept: changed in the new one"
    ORPHAN = "kept: changed in the new one, gone from the old one"
    OWN = "kept: written to the new one"
    OTHER_READERS = "kept: has other readers than the old one"
    DELETED = "left out: deleted from the new one"

    @property
    def writes(self) -> bool:
        """Whether it changes the new collection."""
        return self in _WRITING


_WRITING: Final = frozenset({Step.COPY, Step.PAYLOAD, Step.WHOLE, Step.READERS, Step.REMOVE})


@dataclass(frozen=True, slots=True)
class Marker:
    """What a copy says of itself.

    Args:
        of: the old collection.
        payload: digest of the old point's payload when it was copied.
        vectors: digest of what the copy's vectors were made of: the old point's vectors, or its text.
        readers: digest of the old payload's fields that decide who reads.
        copy: digest of the payload that was written, and of the point's id: whoever writes the payload of a copy
            under another id makes a point of their own.
    """

    of: str
    payload: str
    vectors: str
    readers: str
    copy: str

    @classmethod
    def read(cls, payload: Json) -> Self | None:
        """The marker of a payload; None where it has none, or something else stands there."""
        found = payload.get(MARKER)
        if not isinstance(found, dict) or found.keys() != set(cls.__slots__):
            return None
        return cls(**found) if all(isinstance(value, str) for value in found.values()) else None

    def to_json(self) -> dict[str, str]:
        """As it stands in a payload."""
        return asdict(self)


class Old:
    """A point of the old collection.

    Args:
        point_id: on both sides.
        payload: as the old collection has it; a marker in it, of a rollover before, is not looked at.
        vectors: digest of what a copy's vectors are made of.
    """

    def __init__(self, point_id: int | str, payload: Json, vectors: str) -> None:
        self.point_id, self.vectors = point_id, vectors
        self.content = without_marker(payload)

    @cached_property
    def payload(self) -> str:
        """Digest of the payload."""
        return digest(self.content)

    @cached_property
    def readers(self) -> str:
        """Digest of the fields that decide who reads."""
        return readers_digest(self.content)


def decide(old: Old | None, new: Json | None, point_id: int | str, of: str, *, deleted: bool = False) -> Step:
    """What a pass does about one id.

    Args:
        old: the point of the old collection; None: it has none.
        new: the payload in the new collection; None: there is no such point.
        point_id: of both.
        of: the old collection's name; a marker of another's is an application's own field.
        deleted: whether a point that the new collection lacks was there when it took over, so that it was deleted
            since.
    """
    if new is None:
        return Step.SAME if old is None else Step.DELETED if deleted else Step.COPY
    marker = Marker.read(new)
    if marker is None or marker.of != of:
        return Step.OTHER_READERS if old is not None and old.readers != readers_digest(new) else Step.OWN
    if copy_digest(point_id, new) != marker.copy:
        return _touched(old, readers_digest(new), marker)
    if old is None:
        return Step.REMOVE
    if old.vectors != marker.vectors:
        return Step.WHOLE
    return Step.SAME if old.payload == marker.payload else Step.PAYLOAD


def _touched(old: Old | None, readers: str, marker: Marker) -> Step:
    """What is to be done about a copy that an application changed; `readers` are those it has now."""
    if old is None:
        return Step.ORPHAN
    if readers == old.readers:
        return Step.TOUCHED
    return Step.READERS if readers == marker.readers else Step.OTHER_READERS


def marked(old: Old, of: str, *, embedding: Json | None = None) -> dict[str, Any]:
    """The payload that the copy of a point gets, its marker included.

    Args:
        old: the point.
        of: the old collection's name.
        embedding: what the payload says of its vectors from now on (`model`, `dim`, `metric`), where they are made
            anew; None leaves what it says.
    """
    content = dict(old.content) if embedding is None else {**old.content, "embedding": dict(embedding)}
    marker = Marker(of, old.payload, old.vectors, old.readers, copy_digest(old.point_id, content))
    return {**content, MARKER: marker.to_json()}


def readers_taken_over(old: Old, new: Json) -> dict[str, Any]:
    """What to set in the payload of a touched copy so that its readers are those of the old point.

    A field that the old point does not have is set to null, which takes it away, so that one request does it all.

    Args:
        old: the point of the old collection.
        new: the copy's payload, with its marker.
    """
    fields = {key: old.content.get(key) for key in READERS if key in old.content or key in new}
    marker = Marker.read(new)
    assert marker is not None  # noqa: S101 (the decision was made by it)
    return {**fields, MARKER: replace(marker, readers=old.readers).to_json()}


def without_marker(payload: Json) -> dict[str, Any]:
    """The payload as applications know it."""
    return {key: value for key, value in payload.items() if key != MARKER}


def copy_digest(point_id: int | str, payload: Json) -> str:
    """Digest of a point in the new collection without its marker; a null field counts as a missing one."""
    return digest([point_id, {key: payload[key] for key in payload if key != MARKER and payload[key] is not None}])


def readers_digest(payload: Json) -> str:
    """Digest of the fields that decide who reads; missing and null are one."""
    return digest({key: payload[key] for key in READERS if payload.get(key) is not None})


def digest(value: object) -> str:
    """128 bits of the SHA-256 of a JSON value, the order of keys left aside; 1, 1.0 and true are three."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
