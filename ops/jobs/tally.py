"""Points counted by tenant and scope, with the oldest of them and a few ids to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from comemory.payload import SCOPES
from comemory.times import parse_time
from ops.jobs.members import Whose
from ops.report import Row

EXAMPLES = 3
"""Ids shown per row."""


@dataclass(slots=True)
class Tally:
    """The points of one tenant and scope."""

    count: int = 0
    oldest: datetime | None = None
    examples: list[str] = field(default_factory=list)

    def add(self, point: Mapping[str, Any]) -> None:
        """Count a point that was read with `created_at`."""
        self.count += 1
        created = parse_time(one_value(point["payload"].get("created_at")))
        if created is not None and (self.oldest is None or created < self.oldest):
            self.oldest = created
        if len(self.examples) < EXAMPLES:
            self.examples.append(str(point["id"]))

    def row(self, collection: str, whose: Whose, reason: str = "") -> Row:
        """The line of a report that says it."""
        return Row(collection, *whose, self.count, reason, self.oldest, tuple(self.examples))


def one_value(value: object) -> object:
    """The value the engine sees: a list of one is that one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def whose(payload: Mapping[str, Any]) -> Whose:
    """Tenant and scope as texts; empty where the payload does not say, says several, or names no scope of ours."""
    tenant, scope = (one_value(payload.get(key)) for key in ("tenant_id", "scope"))
    return tenant if isinstance(tenant, str) else "", scope if isinstance(scope, str) and scope in SCOPES else ""


def counts_table(counts: Counter[Whose]) -> list[dict[str, Any]]:
    """The counts as the details of a report hold them."""
    return [
        {"tenant": tenant, "scope": scope, "count": count}
        for (tenant, scope), count in sorted(counts.items())
        if count
    ]
