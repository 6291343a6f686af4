"""What a look at every point of a collection says: its shapes, and what would become of each point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from comemory.migration.mapping import Layout, Mapped, Mapper, Refused, shapes_to_read
from comemory.migration.rules import RuleSet

EXAMPLES = 3
BY = ("rule", "target", "tenant", "owner_kind", "scope", "visibility", "readers")
"""What points with a place are counted by; `readers` are those besides the owner, parted by commas: the names of an
access list, the team of public points, or the tenant of those that are public without a team."""

Key = tuple[str, ...]
MIXED = "shape.unknown"


@dataclass(slots=True)
class Survey:
    """Counts over one collection, in memory that does not grow with it.

    `rules` counts the points that have a place, by `BY`: rule, tenant, and all that says who reads; `refused` those
    without one, by reason; `left_out` a framework's own markers. They are final after `finish`, since only then
    it is known which shapes the collection has.
    """

    rule_set: RuleSet
    collection: str
    layout: Layout | None = None
    points: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    rules: Counter[Key] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    _by_shape: dict[str, Counter[Key]] = field(default_factory=dict)
    _refused_by_shape: dict[str, Counter[str]] = field(default_factory=dict)
    _mapper: Mapper | None = None

    def add(self, point_id: int | str, payload: Mapping[str, Any] | None) -> None:
        """Look at one point."""
        self._mapper = self._mapper or Mapper(self.rule_set, self.collection, layout=self.layout)
        self.points += 1
        outcome = self._mapper.map(point_id, payload)
        if outcome.shape is not None:
            self.shapes[outcome.shape] += 1
        shape = outcome.shape or ""
        if isinstance(outcome, Mapped):
            made = outcome.payload
            said = (made["tenant_id"], made["owner_kind"], made["scope"], made["visibility"])
            key = (outcome.rule, outcome.target, *said, _readers(made))
            self._by_shape.setdefault(shape, Counter())[key] += 1
        elif isinstance(outcome, Refused):
            self._refused_by_shape.setdefault(shape, Counter())[outcome.code] += 1
            some = self.examples.setdefault(outcome.code, [])
            if len(some) < EXAMPLES:
                some.append(f"{point_id}: {outcome.detail}")
        else:
            self.left_out += 1

    @property
    def read(self) -> frozenset[str]:
        """The shapes that points are read by."""
        return shapes_to_read(frozenset(self.shapes), self.rule_set, self.collection)

    def finish(self) -> None:
        """Settle the counts: points of a shape that the collection does not have are refused."""
        read = self.read
        for shape, counts in self._by_shape.items():
            if shape in read:
                self.rules.update(counts)
            else:
                self.refused[MIXED] += counts.total()
        for shape, reasons in self._refused_by_shape.items():
            if shape in read or not shape:
                self.refused.update(reasons)
            else:
                self.refused[MIXED] += reasons.total()

    @property
    def mapped(self) -> int:
        """How many points have a place."""
        return self.rules.total()

    def to_json(self) -> dict[str, Any]:
        """As the plan's file and `--json` have it."""
        return {
            "collection": self.collection,
            "points": self.points,
            "shapes": dict(sorted(self.shapes.items())),
            "read_as": sorted(self.read),
            "mapped": self.mapped,
            "left_out": self.left_out,
            "rules": [
                {**dict(zip(BY, key, strict=True)), "count": count} for key, count in sorted(self.rules.items())
            ],
            "refused": dict(sorted(self.refused.items())),
            "examples": dict(sorted(self.examples.items())),
        }


def _readers(payload: Mapping[str, Any]) -> str:
    if payload["visibility"] == "public":
        return str(payload.get("team_id") or payload["tenant_id"])
    if payload["visibility"] == "confidential":
        return ", ".join(name for names in payload.get("acl", {}).values() for name in names)
    return ""
