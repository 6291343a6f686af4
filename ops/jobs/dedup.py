"""The `dedup` job: removes copies within one access domain.

Finding: a full run reads nothing but the fingerprint of every point, and of those that share one (`PointGroups`
holds some 24 bytes of each) the fields that decide. An incremental run reads the points that are new by their
`created_at` or `updated_at`, and those tenants that have more points than these explain, and asks for the points
with the same fingerprints. Deciding and applying are in `ops.jobs.removal`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from qdrant_client import models

from comemory.duplicates import DuplicatePolicy, fingerprint_hash
from comemory.filters import either, every, matches, matches_any
from comemory.fingerprints import PREFIX, normalise_fingerprint
from comemory.payload import SCOPES
from comemory.times import parse_time
from ops.jobs.base import Context, Progress, collection_errors, collections_of, reporting
from ops.jobs.dedup_report import Entry, ReportWriter, read_report
from ops.jobs.dedup_state import DedupState, Mark
from ops.jobs.groups import PointGroups
from ops.jobs.limits import Limits, parts
from ops.jobs.removal import EXAMPLES, Removal
from ops.report import JobReport, Problem, merge_rows
from ops.session import PointId
from ops.settings import Settings

PAGE = 5000
"""Points read by one request where only the fingerprint is read: about 700 kB of JSON."""

LOOKED_UP = 2000
"""Fingerprints that one request of an incremental run asks for."""

OVERLAP = timedelta(minutes=5)
"""How far an incremental run looks back behind the last one: writers' clocks may be off by as much."""

HALF = "80000000-0000-0000-0000-000000000000"
"""The middle of all UUIDs: one reader takes what comes before it, another what comes after."""

Mode = Literal["incremental", "full"]


class DedupJob:
    """Removes duplicates.

    Args:
        mode: `full` looks at every point; `incremental` only where something changed since the last run that was
            not a dry run, and at every point of a collection of which no such run is known.
        state: What earlier runs left, if the settings name no `dedup.state_file`; jobs that share it know of each
            other's runs.
        write_report: In a dry run, a file that gets the groups of copies.
        from_report: Such a file: only copies that it names are deleted, if they still are copies.
    """

    name = "dedup"

    def __init__(
        self,
        mode: Mode = "incremental",
        *,
        state: DedupState | None = None,
        write_report: Path | None = None,
        from_report: Path | None = None,
    ) -> None:
        self._mode: Mode = mode
        self._state = state or DedupState()
        self._write_report = write_report
        self._from_report = from_report

    def run(self, context: Context) -> JobReport:
        """One pass over the collections.

        The rows are copies by collection, tenant, scope and, as reason, the policy: those deleted, or in a dry run
        those that a run with the same budget would delete. `skipped` counts copies left alone. `details` holds,
        per collection, `mode`, `points_read`, `skipped` (by reason: `exempt`, `changed`, `survivor_changed`,
        `not_selected`, `too_many_readers`) and, in a dry run, `content_would_remove`: how many the policy `content`
        would remove, by tenant and scope.

        Raises:
            OpsError: a report cannot be read or written.
        """
        file = context.settings.dedup.state_file
        state = self._state if file is None else DedupState(file)
        reviewed = None if self._from_report is None else read_report(self._from_report)
        written = self._write_report if context.dry_run else None
        with reporting(self.name, context) as report, ReportWriter(written, context.now()) as writer:
            done: set[str] = set()
            for name in collections_of(context, report):
                if reviewed is not None and name not in reviewed:
                    continue
                done.add(name)
                with collection_errors(name, report):
                    run = _Run(context, report, writer, name)
                    try:
                        if reviewed is not None:
                            run.review(reviewed[name])
                        else:
                            run.work(self._mode, state)
                    finally:
                        run.removal.record()
            if context.selection.collection is None and report.stopped is None:
                report.problems += [
                    Problem(
                        name,
                        f"Collection '{name}' of the report is not one that is looked after; nothing was done.",
                    )
                    for name in sorted((reviewed or {}).keys() - done)
                ]
            report.rows = merge_rows(report.rows, examples=EXAMPLES)
            if written is not None:
                report.details["report"] = str(written)
        return report


def policies_of(settings: Settings) -> dict[str, DuplicatePolicy]:
    """The policy of each scope."""
    named = settings.dedup.policies
    return {scope: DuplicatePolicy(named.get(scope, "source")) for scope in SCOPES}


class _Run:
    """One run over one collection."""

    def __init__(self, context: Context, report: JobReport, writer: ReportWriter, name: str) -> None:
        self.context, self.report, self.name = context, report, name
        self.session = context.session
        info = self.session.collection(name)
        self.limits = Limits.of(info)
        self.policies = policies_of(context.settings)
        self.removal = Removal(context, report, writer, name, info=info, policies=self.policies)
        self.tenants: Counter[str] = Counter()
        self.read = 0
        self.lock = threading.Lock()
        selection = context.selection
        wanted = {"tenant_id": selection.tenant, "scope": selection.scope}
        self.selected = [matches(key, value) for key, value in wanted.items() if value is not None]

    def work(self, mode: Mode, state: DedupState) -> None:
        began = self.context.now()
        self.tenants.update({str(key): n for key, n in self.session.facet(self.name, "tenant_id").items()})
        mark = state.get(self.name)
        if mark is not None and dict(mark.policies) != self.policies:
            mark = None
        if mode == "incremental" and mark is not None:
            changed = _Changes(self, mark)
            if changed.few():
                self.removal.note(mode="incremental")
                changed.remove()
                self._done(state, began)
                return
        self.removal.note(mode="full")
        self._full()
        self._done(state, began)

    def review(self, entries: Sequence[Entry]) -> None:
        self.removal.note(mode="report")
        self.removal.remove_listed(entries)

    def _done(self, state: DedupState, began: datetime) -> None:
        """Remember that everything up to `began` is done, if it is: a part of it, or a dry run, is not."""
        self.removal.note(points_read=self.read)
        if not self.context.dry_run and self.report.stopped is None and not self.selected:
            tenants = self.tenants - self.removal.removed()
            state.put(self.name, Mark(began, tenants, {s: p.value for s, p in self.policies.items()}))

    def _full(self) -> None:
        groups = PointGroups()
        total = self.session.count(self.name, self.narrowed())
        with ThreadPoolExecutor(2, thread_name_prefix="dedup") as readers:
            halves = [
                readers.submit(self._read, groups, total, None, HALF),
                readers.submit(self._read, groups, total, HALF, None),
            ]
            for half in halves:
                half.result()
        if self.report.stopped is None:
            self.removal.remove(groups)

    def _read(self, groups: PointGroups, total: int, start: PointId | None, end: str | None) -> None:
        """Add the points from `start` up to `end`."""
        pages = self.session.scroll(
            self.name, self.narrowed(), payload=("fingerprint",), page=self.limits.page(PAGE), start=start
        )
        for page in pages:
            points = page
            if end is not None and isinstance(page[-1]["id"], str) and page[-1]["id"] >= end:
                points = [point for point in page if isinstance(point["id"], int) or point["id"] < end]
            self.collect(groups, points)
            self.context.progress(Progress(self.name, "reading fingerprints", self.read, max(total, self.read)))
            if len(points) < len(page):
                return
            if (why := self.context.budget.exhausted()) is not None:
                self.report.stopped = why
                return

    def collect(self, groups: PointGroups, points: Sequence[Mapping[str, Any]]) -> None:
        """Add points, read with their fingerprint, to groups."""
        coded = _coded(points)
        with self.lock:
            groups.add(coded)
            self.read += len(points)

    def narrowed(self, *conditions: models.Condition) -> models.Filter | None:
        """A filter of these conditions and of the selection; None where there are none."""
        together = [*conditions, *self.selected]
        return every(*together) if together else None


class _Changes:
    """What changed in a collection since a mark."""

    def __init__(self, run: _Run, mark: Mark) -> None:
        self.run = run
        # A clock that was set back must not make the window empty.
        self.since = min(mark.until, run.context.now())
        start = self.since - OVERLAP
        window = models.DatetimeRange(gte=start)
        self.window = either(
            models.FieldCondition(key="created_at", range=window),
            models.FieldCondition(key="updated_at", range=window),
        )
        self.mark = mark
        self.done: set[int] = set()
        self.one_page = False

    def few(self) -> bool:
        """Whether it is less work to look at the changes than at everything."""
        new = self.run.session.count(self.run.name, self.window)
        self.one_page = new <= self.run.limits.page(PAGE)
        return new <= self.run.tenants.total() // 4

    def remove(self) -> None:
        new: Counter[str] = Counter()
        for page in self._pages(self.window, ("fingerprint", "tenant_id", "created_at")):
            for point in page:
                created = parse_time(point["payload"].get("created_at"))
                if created is not None and created >= self.since:
                    new[str(point["payload"].get("tenant_id"))] += 1
            self._same(page, all_new=self.one_page)
        # Points that were written with an older time show only in the number of points.
        more = [
            tenant
            for tenant, count in self.run.tenants.items()
            if count > self.mark.tenants.get(tenant, 0) + new[tenant]
        ]
        for some in parts(more, self.run.limits.ids(100)):
            for page in self._pages(matches_any("tenant_id", some), ("fingerprint",)):
                self._same(page)

    def _pages(self, condition: models.Condition, fields: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
        run = self.run
        if run.report.stopped is not None:
            return
        size = run.limits.page(PAGE)
        for page in run.session.scroll(run.name, run.narrowed(condition), payload=fields, page=size):
            run.read += len(page)
            yield page
            run.report.stopped = run.report.stopped or run.context.budget.exhausted()
            if run.report.stopped is not None:
                return

    def _same(self, page: Sequence[Mapping[str, Any]], *, all_new: bool = False) -> None:
        """Remove the copies among all points with the fingerprints of this page.

        Args:
            page: Points with their fingerprints.
            all_new: The page holds everything that is in the window, which then need not be read again.
        """
        run = self.run
        stored = {}
        for point in page:
            value = point["payload"].get("fingerprint")
            code = fingerprint_hash(value)
            if code is not None and code not in self.done:
                stored[code] = value
        self.done |= stored.keys()
        groups = PointGroups()
        if all_new:
            groups.add(_coded(page))
        for some in parts(list(stored.values()), run.limits.ids(3 * LOOKED_UP) // 3):
            condition = run.narrowed(matches_any("fingerprint", _forms(some)))
            if all_new and condition is not None:
                condition.must_not = [self.window]
            size = run.limits.page(PAGE)
            for found in run.session.scroll(run.name, condition, payload=("fingerprint",), page=size):
                run.collect(groups, found)
        run.removal.remove(groups)


def _coded(points: Sequence[Mapping[str, Any]]) -> list[tuple[int, PointId]]:
    """The ids of points with the hashes of their fingerprints, without those that have none."""
    return [
        (code, point["id"])
        for point in points
        if (code := fingerprint_hash((point.get("payload") or {}).get("fingerprint"))) is not None
    ]


def _forms(fingerprints: Sequence[str]) -> list[str]:
    """How these fingerprints may be written: with the prefix and without, and as they came."""
    forms = set(fingerprints)
    for value in fingerprints:
        normal = normalise_fingerprint(value)
        if normal is not None:
            forms |= {normal, normal.removeprefix(PREFIX)}
    return sorted(forms)
