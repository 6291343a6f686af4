"""The audit: how many points break the payload schema, per collection, reason and tenant, counted by the server.

What no filter can tell, `deep` finds by reading every payload (`ops.jobs.audit_deep`). Both also say where a
collection is not as it should be. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from qdrant_client import models

from comemory.audit import (
    SINGLE_VALUED,
    WRONG_TENANT,
    Check,
    EmbeddingSpace,
    checks,
    has_value,
    is_tenant_id,
    several_values,
)
from comemory.filters import filter_keys, matches, matches_any
from comemory.live import LiveCollection
from comemory.payload import Reason
from ops.collectors.drift import all_declared, declared_as
from ops.drift import collection_drift, dense_vector, layout_drift
from ops.errors import IndexRequired
from ops.jobs.audit_deep import Quarantine, validate
from ops.jobs.base import Context, Progress, Selection, collection_errors, collections_of, reporting
from ops.report import JobReport, Problem, Row, merge_rows

OPTIONAL_INDEXES = frozenset({"embedding.dim", "embedding.metric"})
"""Keys that memory collections do not index; without an index only a deep audit looks at them."""

MANY_VALUES = 10_000
"""Distinct values of a field beyond which they are not added up."""

SAMPLE_PAGE = 100
"""Points read to find examples for the tenants concerned."""


class AuditJob:
    """Counts what breaks the schema.

    Args:
        deep: Read and validate every payload instead of counting by filters.
        quarantine: With `deep`, a file that gets one JSON line for each invalid point: collection, id, reasons.
    """

    def __init__(self, *, deep: bool = False, quarantine: Path | None = None) -> None:
        self.name = "audit-deep" if deep else "audit"
        self._deep = deep
        self._quarantine = quarantine

    def run(self, context: Context) -> JobReport:
        """One pass over the collections.

        The rows are points by collection, tenant and reason. `details` holds `drift` (what of the collections is
        not as it should be) and `not_checked` (reasons that could not be counted, and why).
        """
        with reporting(self.name, context) as report, Quarantine(self._quarantine) as quarantine:
            report.details |= {"drift": [], "not_checked": []}
            if self._deep:
                report.details |= {"points_checked": 0, "points_invalid": 0}
            if context.selection.collection is None:
                self._layout(context, report)
            for name in collections_of(context, report):
                with collection_errors(name, report):
                    live = LiveCollection.from_rest(name, context.session.collection(name))
                    declared = declared_as(context.settings, name)
                    report.details["drift"] += [asdict(drift) for drift in collection_drift(live, declared)]
                    if self._deep:
                        validate(context, report, live, space_of(live), quarantine)
                    else:
                        _count(context, report, live)
            report.rows = merge_rows(report.rows, examples=context.settings.audit.samples)
            if self._quarantine is not None:
                report.details["quarantine"] = str(self._quarantine)
        return report

    def _layout(self, context: Context, report: JobReport) -> None:
        session, declared = context.session, all_declared(context.settings)
        found = layout_drift(context.settings.collections, declared, session.collections(), session.aliases())
        report.details["drift"] += [asdict(drift) for drift in found]


def space_of(live: LiveCollection) -> EmbeddingSpace:
    """What the vectors of a collection have in common, from its configuration and metadata."""
    dense = dense_vector(live)
    return EmbeddingSpace.of(None if dense is None else dense[1], live.metadata)


def _count(context: Context, report: JobReport, live: LiveCollection) -> None:
    todo = checks(space_of(live))
    unindexed: set[str] = set()
    for done, check in enumerate(_with_lists(context, live, todo)):
        report.stopped = report.stopped or context.budget.exhausted()
        if report.stopped is not None:
            return
        context.progress(Progress(live.name, "counting", min(done, len(todo)), len(todo)))
        missing = _unindexed(live, check)
        if not missing:
            try:
                report.rows += _rows(context, live.name, check)
            except IndexRequired as error:
                missing = [error.field]
        if missing:
            _skip(report, live.name, check, missing, unindexed)
    if "tenant_id" not in unindexed:
        report.rows += _wrong_tenants(context, live.name)


def _with_lists(context: Context, live: LiveCollection, todo: list[Check]) -> Iterator[Check]:
    """The checks, then those for several values, which are dear and asked only where the index tells of some."""
    yield from todo
    for field in SINGLE_VALUED:
        check = Check(f"{field}.{Reason.LIST.value}", several_values(field))
        if _unindexed(live, Check(check.reason, has_value(field))):
            continue  # a check of the field before has said so
        condition = _selected(has_value(field), context.selection)
        values = context.session.facet(live.name, field, condition, exact=False, most=MANY_VALUES)
        if len(values) >= MANY_VALUES or sum(values.values()) > context.session.count(live.name, condition):
            yield check


def _unindexed(live: LiveCollection, check: Check) -> list[str]:
    """The keys of a check that have no index able to answer; without one the engine reads values differently."""
    return [
        key
        for key, kinds in filter_keys(check.condition).items()
        if key not in live.indexes or live.indexes[key].type not in kinds
    ]


def _skip(report: JobReport, collection: str, check: Check, missing: list[str], told: set[str]) -> None:
    fields = ", ".join(missing)
    why = f"no fitting payload index on {fields}; a deep audit looks at it"
    report.details["not_checked"].append({"collection": collection, "reason": check.reason, "why": why})
    for field in missing:
        if field not in told and field not in OPTIONAL_INDEXES:
            report.problems.append(Problem(collection, str(IndexRequired(collection, field))))
        told.add(field)


def _rows(context: Context, name: str, check: Check) -> list[Row]:
    """One row for each tenant concerned."""
    session = context.session
    condition = _selected(check.condition, context.selection)
    total = session.count(name, condition)
    if not total:
        return []
    counts = dict(session.facet(name, "tenant_id", condition))
    # The facet counts a point once for each of several tenants, so its sum would hide those without any.
    if rest := total - session.count(name, models.Filter(must=[condition, has_value("tenant_id")])):
        counts[""] = counts.get("", 0) + rest
    examples = _examples(context, name, condition)
    scope = context.selection.scope or ""
    return [
        Row(name, tenant, scope, count, check.reason, examples=tuple(examples.get(tenant, ())))
        for tenant, count in counts.items()
    ]


def _wrong_tenants(context: Context, name: str) -> list[Row]:
    condition = _selected(models.Filter(), context.selection)
    counts = context.session.facet(name, "tenant_id", condition if condition.must else None)
    wrong = {tenant: count for tenant, count in counts.items() if not is_tenant_id(tenant)}
    if not wrong:
        return []
    of_wrong = models.Filter(must=[matches_any("tenant_id", list(wrong)[:SAMPLE_PAGE])])
    examples = _examples(context, name, _selected(of_wrong, context.selection))
    scope = context.selection.scope or ""
    return [
        Row(name, tenant, scope, count, WRONG_TENANT, examples=tuple(examples.get(tenant, ())))
        for tenant, count in wrong.items()
    ]


def _examples(context: Context, name: str, condition: models.Filter) -> dict[str, list[str]]:
    """Ids of a few of the points, by tenant."""
    most = context.settings.audit.samples
    found: dict[str, list[str]] = {}
    if not most:
        return found
    page = next(context.session.scroll(name, condition, payload=["tenant_id"], page=SAMPLE_PAGE), [])
    for point in page:
        tenant = (point.get("payload") or {}).get("tenant_id")
        ids = found.setdefault(tenant if isinstance(tenant, str) else "", [])
        if len(ids) < most:
            ids.append(str(point["id"]))
    return found


def _selected(condition: models.Filter, selection: Selection) -> models.Filter:
    """`condition` within the tenant and scope that the run is about."""
    must: list[models.Condition] = []
    if selection.tenant is not None:
        must.append(matches("tenant_id", selection.tenant))
    if selection.scope is not None:
        must.append(matches("scope", selection.scope))
    return models.Filter(must=[*must, condition]) if must else condition
