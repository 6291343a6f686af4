"""The `ttl` job: deletes what outlived its `ttl_days`.

Finding: a facet gives the values of `ttl_days`, and for a few values at a time a filter that the payload indexes
answer pages through the points that are due, reading no more than the fields that decide. Deciding:
`comemory.is_expired`, on each payload. Applying: each page is deleted by its ids AND the same filter, so that a
point renewed since it was read survives. What is still there afterwards was renewed, and is not counted.

A run that is cut short, by its budget or by a kill, has deleted whole batches and nothing else; the next run
finds what is left.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from qdrant_client import models

from comemory.filters import every, matches, matches_any
from comemory.payload import SCOPES, Reason
from comemory.retention import (
    InvalidRetention,
    any_expired_filter,
    due_filter,
    expires_at,
    is_expired,
    unreadable_retention_filter,
)
from ops import logs
from ops.jobs.ahead import ahead
from ops.jobs.base import Context, Progress, collection_errors, collections_of, reporting
from ops.jobs.limits import Limits, parts
from ops.jobs.members import Whose
from ops.jobs.tally import EXAMPLES, Tally, counts_table, whose
from ops.report import JobReport, merge_rows
from ops.session import PointId

VALUES_PER_FILTER = 25
"""Values of `ttl_days` looked for by one filter: enough to save requests, few enough for the server to plan."""

FIELDS = ("schema_version", "tenant_id", "scope", "created_at", "ttl_days", "tags")
"""What is read of a point: what `is_expired` asks for, and whose it is."""


class TtlJob:
    """Deletes expired points.

    Args:
        grace: How much longer than its time a point stays; None takes the settings'.
    """

    name = "ttl"

    def __init__(self, *, grace: timedelta | None = None) -> None:
        self._grace = grace

    def run(self, context: Context) -> JobReport:
        """One pass over the collections.

        The rows are the expired points by collection, tenant and scope: those deleted, or in a dry run those
        that a run with the same budget would delete. `skipped` counts points left alone, and `details` holds, per
        collection, `skipped` (the same by reason: `renewed`, or what is wrong with the retention), and `before`
        and `after`: how many points were expired, by tenant and scope.
        """
        grace = context.settings.ttl.grace if self._grace is None else self._grace
        with reporting(self.name, context) as report:
            now = context.now()
            for name in collections_of(context, report):
                with collection_errors(name, report):
                    _Run(context, report, name, now, grace).work()
            report.rows = merge_rows(report.rows, examples=EXAMPLES)
        return report


class _Run:
    """One run over one collection."""

    def __init__(self, context: Context, report: JobReport, name: str, now: datetime, grace: timedelta) -> None:
        self.context, self.report, self.name = context, report, name
        self.session, self.settings = context.session, context.settings.ttl
        self.now = now
        self.chosen: dict[str, Any] = {
            "tenant_id": context.selection.tenant,
            "scope": context.selection.scope,
        }
        self.rule: dict[str, Any] = {"grace": grace, "exempt_tags": self.settings.exempt_tags}
        self.tallies: dict[Whose, Tally] = {}
        self.skipped: Counter[str] = Counter()
        self.lists = 0
        self.log = logs.get(job="ttl", collection=name, dry_run=context.dry_run)

    def work(self) -> None:
        limits = Limits.of(self.session.collection(self.name))
        narrowed = every(*chosen) if (chosen := self._selected()) else None
        values = sorted(
            value
            for value in self.session.facet(self.name, "ttl_days", narrowed)
            if isinstance(value, int) and value >= 1
        )
        # A value is two conditions; beside them stand tenant, scope, schema, tags and the ids.
        size = max(1, limits.conditions(2 * VALUES_PER_FILTER, beside=5) // 2)
        filters = [due_filter(self.now, some, **self.rule, **self.chosen) for some in parts(values, size)]
        waiting = sum(self.session.count(self.name, due) for due in filters)
        page = limits.ids(limits.page(self.settings.batch))
        try:
            for due in filters:
                if self.report.stopped is None:
                    self._pass(due, page, waiting)
            if self.report.stopped is None:
                self._unreadable()
        finally:
            self._record()
        self._compare([tuple(some) for some in parts(values, size)], filters)

    def _selected(self) -> list[models.FieldCondition]:
        return [matches(key, value) for key, value in self.chosen.items() if value is not None]

    def _pass(self, due: models.Filter, page: int, waiting: int) -> None:
        """Delete what `due` finds, page by page, while the budget lasts."""
        for points in self._pages(due, page):
            expired = []
            for point in points:
                if (several := self._several(point["payload"])) is not None:
                    self._leave(several)
                elif is_expired(point["payload"], self.now, **self.rule):
                    expired.append(point)
                else:
                    self._skip(point["payload"])
            allowed = self.context.budget.next_batch(len(expired)) if expired else 0
            if allowed:
                self._batch(expired[:allowed], due)
                done = sum(tally.count for tally in self.tallies.values())
                self.context.progress(Progress(self.name, "deleting expired points", done, max(waiting, done)))
            if allowed < len(expired):
                self.report.stopped = self.context.budget.exhausted()
                return

    def _pages(self, due: models.Filter, page: int) -> Iterator[list[dict[str, Any]]]:
        """Pages, asking the budget before each: a page is not worth reading when nothing more may be deleted."""
        pages = ahead(self.session.scroll(self.name, due, payload=FIELDS, page=page))
        while True:
            points = next(pages, None)
            if points is None:
                return
            # Asked only now, since a run that has just finished is not one that was stopped.
            self.report.stopped = self.context.budget.exhausted()
            if self.report.stopped is not None:
                return
            yield points

    def _batch(self, points: Sequence[dict[str, Any]], due: models.Filter) -> None:
        began = time.monotonic()
        renewed: set[PointId] = set()
        if not self.context.dry_run:
            ids = [point["id"] for point in points]
            self.session.delete(self.name, every(models.HasIdCondition(has_id=ids), due))
            renewed = {point["id"] for point in self.session.retrieve(self.name, ids)}
        gone = [point for point in points if point["id"] not in renewed]
        for point in gone:
            self.tallies.setdefault(whose(point["payload"]), Tally()).add(point)
        self.skipped["renewed"] += len(renewed)
        self.report.batches += 1
        if not self.context.dry_run:
            self.report.handled += len(gone)
        self.context.budget.spend(len(gone), wait=not self.context.dry_run)
        self.log.info("batch", points=len(gone), renewed=len(renewed), seconds=round(time.monotonic() - began, 3))

    def _several(self, payload: Mapping[str, Any]) -> str | None:
        """A field the run is narrowed by of which the point has several values: it is not of this one alone."""
        for key, wanted in self.chosen.items():
            value = payload.get(key)
            if wanted is not None and isinstance(value, list) and len(value) > 1:
                return InvalidRetention(key, Reason.LIST).code
        return None

    def _leave(self, why: str) -> None:
        self.lists += 1
        self.skipped[why] += 1

    def _skip(self, payload: Mapping[str, Any]) -> None:
        """Count a point that the indexes took for expired and the rule does not: a list where one value belongs."""
        expiry = expires_at(payload)
        self._leave(expiry.code if isinstance(expiry, InvalidRetention) else "renewed")

    def _unreadable(self) -> None:
        """Count, by reason, the points whose retention cannot be read."""
        invalid = unreadable_retention_filter(**self.chosen)
        for points in self.session.scroll(self.name, invalid, payload=FIELDS, page=self.settings.batch):
            for point in points:
                expiry = expires_at(point["payload"])
                if isinstance(expiry, InvalidRetention):
                    self.skipped[expiry.code] += 1
            self.report.stopped = self.context.budget.exhausted()
            if self.report.stopped is not None:
                return

    def _record(self) -> None:
        """Put what was done so far into the report, also when the rest fails."""
        for key, tally in self.tallies.items():
            self.report.rows.append(tally.row(self.name, key))
        self.skipped = +self.skipped
        self.report.skipped += self.skipped.total()
        self.report.details[self.name] = {"skipped": dict(sorted(self.skipped.items()))}

    def _compare(self, values: Sequence[tuple[int, ...]], filters: Sequence[models.Filter]) -> None:
        """Add to the report how many points are expired now, and how many were before, by tenant and scope."""
        found = Counter({key: tally.count for key, tally in self.tallies.items()})
        left: Counter[Whose] = Counter()
        if self.context.dry_run and self.report.stopped is None:
            left = found
        elif self.lists:
            # The indexes alone would count those lists too.
            exact = [any_expired_filter(self.now, some, **self.rule, **self.chosen) for some in values]
            left = self._counted(exact)
        elif any(self.session.count(self.name, due) for due in filters):
            left = self._counted(filters)
        before = left if self.context.dry_run else left + found
        self.report.details[self.name] |= {"before": counts_table(before), "after": counts_table(left)}

    def _counted(self, filters: Sequence[models.Filter]) -> Counter[Whose]:
        """Expired points by tenant and scope: a facet per scope and filter, however many tenants there are."""
        left: Counter[Whose] = Counter()
        for due in filters:
            for scope in SCOPES if self.chosen["scope"] is None else (self.chosen["scope"],):
                of_scope = every(matches("scope", scope), due)
                for tenant, count in self.session.facet(self.name, "tenant_id", of_scope).items():
                    left[str(tenant), scope] += count
            if self.chosen["scope"] is None:
                of_none = models.Filter(must=[due], must_not=[matches_any("scope", SCOPES)])
                for tenant, count in self.session.facet(self.name, "tenant_id", of_none).items():
                    left[str(tenant), ""] += count
        return left
