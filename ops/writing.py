"""Writing points in requests no larger than a server takes, and over points that are there only when asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from ops.errors import OpsError
from ops.session import Session

MOST_BYTES = 24 * 1024 * 1024
"""Of one request; a server takes 32 MB unless it is told otherwise."""

MODES_SINCE = (1, 17)
"""The server's version that knows the modes of an upsert; an older one writes over what is there without a word.

Source: Qdrant's release notes of 1.17.0, #7963.
"""

Items = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A request that writes many: where it goes, the key of its list, and what it says besides."""

    method: str
    path: str
    key: str
    more: Mapping[str, Any] = field(default_factory=dict)


_UPSERT = _Kind("PUT", "points", "points")
_INSERT = _Kind("PUT", "points", "points", {"update_mode": "insert_only"})
_CHANGE = _Kind("POST", "points/batch", "operations")


def demand_modes(session: Session, purpose: str) -> None:
    """Make sure that the server knows the modes of an upsert.

    Args:
        session: of the server.
        purpose: what needs them, such as `a rollover`; it has to stand at the beginning of a run.

    Raises:
        OpsError: it is too old, or does not say how old it is.
    """
    version = session.version()
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or tuple(map(int, found.groups())) < MODES_SINCE:
        least = ".".join(map(str, MODES_SINCE))
        raise OpsError(
            f"Qdrant at {session.url} is version {version}; {purpose} needs {least}, where an upsert can leave "
            "points alone that are there already. Upgrade the server first. Nothing was done."
        )


def insert(session: Session, collection: str, points: Items, *, replacing: bool = False) -> None:
    """Write the points that are not there yet; those that are stay as they are, unless `replacing`."""
    _send(session, collection, _UPSERT if replacing else _INSERT, points)


def change(session: Session, collection: str, operations: Items) -> None:
    """Do these operations of `points/batch` in their order; each by itself is done whole or not at all."""
    _send(session, collection, _CHANGE, operations)


def _send(session: Session, collection: str, kind: _Kind, items: Items) -> None:
    content = orjson.dumps({kind.key: items, **kind.more})
    if len(content) > MOST_BYTES and len(items) > 1:
        half = len(items) // 2
        _send(session, collection, kind, items[:half])
        _send(session, collection, kind, items[half:])
        return
    path = f"/collections/{quote(collection, safe='')}/{kind.path}?wait=true"
    session.again(lambda: session.send(kind.method, path, content, collection), f"{kind.method} {path}")
