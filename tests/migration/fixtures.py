"""The points that frameworks wrote, and collections that hold them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from comemory.migration.shapes import FRAMEWORKS

FOLDER = Path(__file__).parent / "fixtures"
NAMES = tuple(shape.name for shape in FRAMEWORKS)
SIZE = 8


@dataclass(frozen=True)
class Fixture:
    """A collection as a framework made it."""

    name: str
    params: dict[str, Any]
    points: tuple[dict[str, Any], ...]


@cache
def fixture(name: str) -> Fixture:
    head, *points = map(json.loads, (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return Fixture(name, head["params"], tuple(points))
