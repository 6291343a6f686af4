"""The run: pages of the source, mapped, written with insert-only upserts, and a checkpoint behind them.

A batch is stored before its checkpoint is, and a second write of the same points changes nothing, so a run may be
killed anywhere and started again. What was written to the target since stays as it is: nothing is overwritten
unless that was asked for.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from comemory.migration.mapping import NOT_PLANNED, LeftOut, Mapped, Mapper, Refused
from ops.errors import OpsError
from ops.jobs.ahead import ahead
from ops.jobs.base import Context, Progress, collection_errors, reporting
from ops.migrate import state as states
from ops.migrate.sides import BLOCKING, Sides
from ops.report import JobReport, Row
from ops.settings import Settings
from ops.writing import demand_modes, insert

SAVE_SECONDS = 1.0
_LAST_NUMBER, _LAST_UUID = 2**64 - 1, 2**128 - 1


def run_migration(
    sides: Sides,
    state: states.State,
    plan: Mapping[str, Any],
    settings: Settings,
    *,
    save_seconds: float = SAVE_SECONDS,
) -> JobReport:
    """Copy what the plan says.

    The rows are the points that have a place, by collection, tenant, scope and rule, and those that have none, by
    reason; `handled` is how many points the targets gained, `skipped` how many were quarantined, and the detail
    `already_there` how many of those read in this run were in the target before.

    Args:
        sides: source and target.
        state: has been resumed.
        plan: of `make_plan`, for the same rules.
        settings: for the report's clock alone.
        save_seconds: how often the checkpoint is written, at most; 0 after each batch.
    """
    with reporting("migrate run", Context(sides.target, settings)) as report:
        demand_modes(sides.target, "a migration")
        chosen = [one for one in plan["collections"] if sides.only in (None, one["collection"])]
        targets = sorted({rule["target"] for one in chosen if one["blocked"] is None for rule in one["rules"]})
        before = {target: sides.target.count(target) for target in targets}
        mapped = sum(progress.mapped for progress in state.collections.values())
        report.problems += sides.unplanned(plan)
        report.missed |= {problem.collection for problem in report.problems}
        try:
            for one in chosen:
                if report.stopped is not None:
                    break
                with collection_errors(one["collection"], report):
                    if one["blocked"] is not None:
                        raise OpsError(f"{one['collection']} was not migrated: {one['blocked']}.")
                    _Copy(sides, state, report, one, save_seconds).work()
            due = [one["collection"] for one in chosen if one["blocked"] is None]
            state.save(done=all(name in state.collections and state.collections[name].done for name in due))
        finally:
            _record(report, state, chosen)
        after = {target: sides.target.count(target) for target in targets}
        report.handled = sum(max(0, after[target] - before[target]) for target in targets)
        mapped = sum(progress.mapped for progress in state.collections.values()) - mapped
        report.details["already_there"] = max(0, mapped - report.handled)
        report.details["targets"] = {
            target: {"before": before[target], "after": after[target]} for target in targets
        }
    return report


@dataclass(slots=True)
class _Batch:
    """A page of the source, mapped: what is to be written where, and what is counted when it is."""

    read: int
    next_id: int | str | None
    points: defaultdict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    rules: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    quarantined: list[dict[str, Any]] = field(default_factory=list)


class _Copy:
    """One collection."""

    def __init__(
        self, sides: Sides, state: states.State, report: JobReport, plan: Mapping[str, Any], save_seconds: float
    ) -> None:
        self.sides, self.state, self.report, self.save_seconds = sides, state, report, save_seconds
        self.name: str = plan["collection"]
        self.total: int = plan["points"]
        self.progress = state.collections.setdefault(self.name, states.Progress())
        shapes = frozenset(plan["read_as"])
        self.mapper = Mapper(sides.rules, self.name, shapes=shapes, layout=sides.layout(self.name))
        self.saved = sides.clock()

    def work(self) -> None:
        if self.progress.done:
            return
        ended = False
        # The target stores a batch while the next one is mapped, and the one after that is read.
        with ThreadPoolExecutor(1, thread_name_prefix="write") as writer:
            under_way: tuple[_Batch, Future[None]] | None = None
            for page in ahead(self.sides.pages(self.name, vectors=True, start=self.progress.next_id)):
                if under_way is not None and self.sides.stop.is_set():
                    break
                batch = self._prepare(page)
                if under_way is not None:
                    self._settle(*under_way)
                under_way = batch, writer.submit(self._write, batch)
            else:  # the source has no more; how many it had when the plan was made says nothing of that
                ended = True
            if under_way is not None:
                self._settle(*under_way)
        if ended:
            self.progress.done = True
        else:
            self.report.stopped = "asked to stop"
        self.state.save()

    def _prepare(self, page: Sequence[Mapping[str, Any]]) -> _Batch:
        batch = _Batch(len(page), after_id(page[-1]["id"]))
        for point in page:
            outcome = placed(self.mapper, point)
            if isinstance(outcome, tuple):
                mapped, vectors = outcome
                payload = mapped.payload
                batch.points[mapped.target].append({"id": mapped.id, "vector": vectors, "payload": payload})
                batch.rules["\t".join((mapped.rule, payload["tenant_id"], payload["scope"]))] += 1
            elif isinstance(outcome, LeftOut):
                batch.left_out += 1
            else:
                refuse_unplanned(self.name, outcome)
                batch.quarantined.append(quarantined(self.name, point, outcome))
        return batch

    def _write(self, batch: _Batch) -> None:
        for target, some in batch.points.items():
            insert(self.sides.target, target, some, replacing=self.state.replacing)

    def _settle(self, batch: _Batch, written: Future[None]) -> None:
        """Wait until a batch is stored, and count it."""
        written.result()
        self.state.quarantine(batch.quarantined)
        progress = self.progress
        progress.next_id = batch.next_id
        progress.done = batch.next_id is None
        progress.read += batch.read
        progress.mapped += batch.rules.total()
        progress.left_out += batch.left_out
        for key, count in batch.rules.items():
            progress.rules[key] = progress.rules.get(key, 0) + count
        for line in batch.quarantined:
            progress.refused[line["reason"]] = progress.refused.get(line["reason"], 0) + 1
        self.report.batches += 1
        self.sides.progress(Progress(self.name, "copying", progress.read, max(self.total, progress.read)))
        if self.sides.clock() - self.saved >= self.save_seconds:
            self.state.save()
            self.saved = self.sides.clock()


def placed(mapper: Mapper, point: Mapping[str, Any]) -> tuple[Mapped, dict[str, Any]] | LeftOut | Refused:
    """A point's outcome, with the vectors that it gets."""
    outcome = mapper.map(point["id"], point["payload"])
    if not isinstance(outcome, Mapped):
        return outcome
    vectors = {} if outcome.vectors is None else outcome.vectors.apply(point.get("vector"))
    if not vectors:
        return Refused(
            "vector.missing", "the point has no vector that goes to the target", outcome.shape, outcome.rule
        )
    return outcome, vectors


def refuse_unplanned(collection: str, outcome: Refused) -> None:
    """End with a part of a collection that the plan did not see: nothing of it is lost by stopping there.

    Raises:
        OpsError: the plan has to be made anew.
    """
    if outcome.code in BLOCKING or outcome.code == NOT_PLANNED:
        raise OpsError(f"{collection}: {outcome.detail}; make the plan anew (`comemory migrate plan`).")


def after_id(point_id: int | str) -> int | str | None:
    """The lowest id that comes after this one in the server's order (numbers, then UUIDs); None after the last."""
    if isinstance(point_id, int):
        return point_id + 1 if point_id < _LAST_NUMBER else str(uuid.UUID(int=0))
    number = uuid.UUID(point_id).int
    return None if number == _LAST_UUID else str(uuid.UUID(int=number + 1))


def quarantined(collection: str, point: Mapping[str, Any], why: Refused) -> dict[str, Any]:
    """A line of the quarantine file: the point without its vectors, which the source still has."""
    return {
        "collection": collection,
        "id": point["id"],
        "reason": why.code,
        "detail": why.detail,
        "shape": why.shape,
        "rule": why.rule,
        "payload": point["payload"],
    }


def _record(report: JobReport, state: states.State, chosen: Sequence[Mapping[str, Any]]) -> None:
    for one in chosen:
        name = one["collection"]
        progress = state.collections.get(name)
        if progress is None:
            continue
        for key, count in sorted(progress.rules.items()):
            rule, tenant, scope = key.rsplit("\t", 2)
            report.rows.append(Row(name, tenant, scope, count, f"rule {rule}"))
        for code, count in sorted(progress.refused.items()):
            report.rows.append(Row(name, "", "", count, f"quarantined: {code}"))
        report.skipped += sum(progress.refused.values())
        report.details[name] = {
            "read": progress.read, "mapped": progress.mapped, "left_out": progress.left_out,
            "quarantined": sum(progress.refused.values()), "done": progress.done,
        }  # fmt: skip
