"""What a job found and did: one shape for the dry run, the run, the table, the JSON, the log and the counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

Outcome = Literal["success", "partial", "failed"]
"""`partial`: stopped by its budget, or some collections could not be done; the next run goes on."""

FORMAT = 1
"""Version of the JSON form; raised when a field changes its meaning or goes away."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: how many points of a collection, tenant and scope a job found, for one reason."""

    collection: str
    tenant: str
    scope: str
    count: int
    reason: str = ""
    oldest: datetime | None = None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that kept a job from doing a part of its work; the other parts went on."""

    collection: str
    message: str


@dataclass(slots=True)
class JobReport:
    """The result of one run.

    `rows` say what was found (in a dry run) or what was done; `handled` counts points changed, `skipped` those
    found but left alone, `batches`, `requests` and `retries` what it took. `collections` counts those that were
    gone through, also where there was nothing to do. `stopped` says why a run ended early. `missed` are collections
    that were not gone through to the end, "" when not even their names could be had; in no other form is it told.
    """

    job: str
    dry_run: bool
    started: datetime
    finished: datetime | None = None
    rows: list[Row] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    collections: int = 0
    handled: int = 0
    skipped: int = 0
    batches: int = 0
    requests: int = 0
    retries: int = 0
    stopped: str | None = None
    missed: set[str] = field(default_factory=set)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def found(self) -> int:
        """How many points the rows count together."""
        return sum(row.count for row in self.rows)

    @property
    def outcome(self) -> Outcome:
        """`failed` when nothing could be done, `partial` when something was left, else `success`."""
        if self.problems and not (self.collections or self.rows or self.handled):
            return "failed"
        return "partial" if self.problems or self.stopped else "success"

    def to_json(self) -> dict[str, Any]:
        """The stable form that `--json` prints and `/status` shows: times in RFC 3339, UTC."""
        return {
            "format": FORMAT,
            "job": self.job,
            "dry_run": self.dry_run,
            "outcome": self.outcome,
            "started": _time(self.started),
            "finished": _time(self.finished),
            "collections": self.collections,
            "found": self.found,
            "handled": self.handled,
            "skipped": self.skipped,
            "batches": self.batches,
            "requests": self.requests,
            "retries": self.retries,
            "stopped": self.stopped,
            "rows": [_row(row) for row in self.rows],
            "problems": [asdict(problem) for problem in self.problems],
            "details": self.details,
        }


def merge_rows(rows: Sequence[Row], *, examples: int = 3) -> list[Row]:
    """Rows of the same collection, tenant, scope and reason as one, in that order: counts added, oldest kept."""
    merged: dict[tuple[str, str, str, str], Row] = {}
    for row in rows:
        key = (row.collection, row.tenant, row.scope, row.reason)
        seen = merged.get(key)
        if seen is None:
            merged[key] = row
            continue
        times = [t for t in (seen.oldest, row.oldest) if t is not None]
        merged[key] = Row(
            *key[:3],
            count=seen.count + row.count,
            reason=row.reason,
            oldest=min(times, default=None),
            examples=(seen.examples + row.examples)[:examples],
        )
    return [merged[key] for key in sorted(merged)]


def _row(row: Row) -> dict[str, Any]:
    return asdict(row) | {"oldest": _time(row.oldest), "examples": list(row.examples)}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
