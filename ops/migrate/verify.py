"""The check: the source is read and mapped again, and every point is looked up in the target."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from comemory.migration.mapping import LEGACY, LeftOut, Mapped, Mapper
from comemory.migration.vectors import VectorMap, canonical
from ops.errors import OpsError
from ops.jobs.ahead import ahead
from ops.jobs.base import Context, Progress, collection_errors, reporting
from ops.migrate.copy import placed, refuse_unplanned
from ops.migrate.sides import Sides
from ops.report import JobReport, Row
from ops.settings import Settings

EXAMPLES = 3


@dataclass(slots=True)
class _Tally:
    """What was found of one rule: how many points there should be, and what is wrong with how many."""

    expected: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def fault(self, what: str, point_id: object) -> None:
        self.wrong[what] += 1
        some = self.examples.setdefault(what, [])
        if len(some) < EXAMPLES:
            some.append(str(point_id))


def verify_migration(sides: Sides, plan: Mapping[str, Any], settings: Settings) -> JobReport:
    """Compare source and target.

    The rows are what is wrong, by collection and rule: `missing`, `payload differs`, `vectors differ`, and `too
    many` where the target holds points of the rule that the source does not give (any more). `details` has, per
    collection, the counts by rule on both sides and one digest per side over ids, payloads and vectors in the
    source's order. `skipped` counts the source's points that have no place.
    """
    with reporting("migrate verify", Context(sides.target, settings)) as report:
        tallies: dict[tuple[str, str], _Tally] = {}
        targets: set[str] = set()
        chosen = [one for one in plan["collections"] if sides.only in (None, one["collection"])]
        report.problems += sides.unplanned(plan)
        report.missed |= {problem.collection for problem in report.problems}
        for one in chosen:
            if report.stopped is not None:
                break
            targets |= {rule["target"] for rule in one["rules"]}
            with collection_errors(one["collection"], report):
                if one["blocked"] is not None:
                    raise OpsError(f"{one['collection']} was not migrated: {one['blocked']}.")
                _Check(sides, report, one, tallies).work()
        present: Counter[tuple[str, str]] = Counter()
        if report.stopped is None:
            present = _present(sides, targets, {one["collection"] for one in chosen})
            for key in sorted(present.keys() | tallies.keys()):
                tally = tallies.setdefault(key, _Tally())
                over = present[key] - (tally.expected - tally.wrong["missing"])
                if over > 0:
                    tally.wrong["too many"] = over
        for (collection, rule), tally in sorted(tallies.items()):
            counts = report.details.setdefault(collection, {}).setdefault("rules", {})
            counts[rule] = {"source": tally.expected, "target": present[collection, rule]}
            for what, count in sorted(tally.wrong.items()):
                if count:
                    examples = tuple(tally.examples.get(what, ()))
                    report.rows.append(Row(collection, "", "", count, f"{what} (rule {rule})", None, examples))
    return report


class _Check:
    """One collection."""

    def __init__(
        self, sides: Sides, report: JobReport, plan: Mapping[str, Any], tallies: dict[tuple[str, str], _Tally]
    ) -> None:
        self.sides, self.report, self.tallies = sides, report, tallies
        self.name: str = plan["collection"]
        self.total: int = plan["points"]
        layout = sides.layout(self.name)
        self.mapper = Mapper(sides.rules, self.name, shapes=frozenset(plan["read_as"]), layout=layout)
        self.digests = {"source": hashlib.sha256(), "target": hashlib.sha256()}

    def work(self) -> None:
        read = 0
        for page in ahead(self.sides.pages(self.name, vectors=True)):
            self._page(page)
            read += len(page)
            self.sides.progress(Progress(self.name, "comparing", read, max(self.total, read)))
            if self.sides.stop.is_set():
                self.report.stopped = "asked to stop"
                return
        self.report.details[self.name] = {
            "read": read, "digests": {side: digest.hexdigest() for side, digest in self.digests.items()},
        }  # fmt: skip

    def _page(self, page: Sequence[Mapping[str, Any]]) -> None:
        due: list[tuple[Mapped, dict[str, Any]]] = []
        for point in page:
            outcome = placed(self.mapper, point)
            if isinstance(outcome, tuple):
                due.append(outcome)
            elif not isinstance(outcome, LeftOut):
                refuse_unplanned(self.name, outcome)
                self.report.skipped += 1
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        for mapped, _ in due:
            wanted[mapped.target].append(mapped.id)
        found = {
            point["id"]: point
            for target, ids in wanted.items()
            for point in self.sides.target.retrieve(target, ids, payload=True, vector=True)
        }
        for mapped, vectors in due:
            self._compare(mapped, vectors, found.get(mapped.id))
        self.report.batches += 1

    def _compare(self, mapped: Mapped, vectors: dict[str, Any], stored: Mapping[str, Any] | None) -> None:
        tally = self.tallies.setdefault((self.name, mapped.rule), _Tally())
        tally.expected += 1
        exact = mapped.vectors
        assert exact is not None  # noqa: S101 (the layout was given)
        ours = _digest(mapped.id, mapped.payload, vectors, exact)
        self.digests["source"].update(ours)
        if stored is None:
            tally.fault("missing", mapped.id)
            return
        there = {
            name: value for name, value in (stored.get("vector") or {}).items() if name in exact.names.values()
        }
        theirs = _digest(mapped.id, stored["payload"], there, exact)
        self.digests["target"].update(theirs)
        if ours == theirs:
            return
        if _canonical(stored["payload"]) != _canonical(mapped.payload):
            tally.fault("payload differs", mapped.id)
        if _vectors(vectors, exact) != _vectors(there, exact):
            tally.fault("vectors differ", mapped.id)


def _digest(point_id: str, payload: Mapping[str, Any], vectors: Mapping[str, Any], layout: VectorMap) -> bytes:
    digest = hashlib.sha256(point_id.encode())
    digest.update(_canonical(payload))
    digest.update(repr(_vectors(vectors, layout)).encode())
    return digest.digest()


def _canonical(payload: Mapping[str, Any]) -> bytes:
    """A payload in a form that compares as Qdrant does: `true` and 1 are two values there."""
    return orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)


def _vectors(vectors: Mapping[str, Any], layout: VectorMap) -> list[tuple[str, object]]:
    """The vectors that can be compared; of one stored in another precision only that it is there."""
    return [(name, canonical(value) if name in layout.exact else None) for name, value in sorted(vectors.items())]


def _present(sides: Sides, targets: set[str], collections: set[str]) -> Counter[tuple[str, str]]:
    """How many points of this origin the targets hold, by collection of the source and rule."""
    counts: Counter[tuple[str, str]] = Counter()
    fields = [f"{LEGACY}.{key}" for key in ("origin", "collection", "rule")]
    for target in sorted(targets):
        for page in sides.target.scroll(target, payload=fields, page=max(sides.batch, 1000)):
            for point in page:
                said = (point["payload"] or {}).get(LEGACY)
                if not isinstance(said, Mapping):  # somebody else's field of that name
                    continue
                collection = said.get("collection")
                if (
                    said.get("origin") == sides.rules.origin
                    and isinstance(collection, str)
                    and collection in collections
                ):
                    counts[collection, str(said.get("rule"))] += 1
    return counts
