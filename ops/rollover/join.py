"""Two collections side by side, in the server's order of ids: numbers first, then UUIDs."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ops.session import PointId

Point = Mapping[str, Any]
Pages = Iterable[Sequence[Point]]


@dataclass(frozen=True, slots=True)
class Both:
    """What the two collections have under one id; at least one of them has something."""

    id: PointId
    old: Point | None
    new: Point | None


def joined(old: Pages, new: Pages) -> Iterator[Both]:
    """Every id of either side, once; both are read page by page, and no more is kept than a page of each."""
    left, right = _points(old), _points(new)
    mine, theirs = next(left, None), next(right, None)
    while mine is not None or theirs is not None:
        before = (
            -1 if theirs is None else 1 if mine is None
            else (place(mine["id"]) > place(theirs["id"])) - (place(mine["id"]) < place(theirs["id"]))
        )  # fmt: skip
        here, there = mine if before <= 0 else None, theirs if before >= 0 else None
        point_id = (here or there or {})["id"]
        yield Both(point_id, here, there)
        mine = next(left, None) if here is not None else mine
        theirs = next(right, None) if there is not None else theirs


def place(point_id: PointId) -> tuple[int, int]:
    """Where an id comes in the server's order."""
    return (0, point_id) if isinstance(point_id, int) else (1, uuid.UUID(point_id).int)


def _points(pages: Pages) -> Iterator[Point]:
    for page in pages:
        yield from page
