"""The census: runs the collectors over the server and every collection, and publishes what they counted.

The number of requests depends on the number of collections, not on that of tenants. Points change while it
counts, so numbers of one census may differ by what was written meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from ops.collectors.base import Collector, Target
from ops.collectors.base import run as run_collector
from ops.collectors.drift import DriftCollector, LayoutCollector
from ops.collectors.expiry import ExpiryCollector
from ops.collectors.retention import RetentionCollector
from ops.collectors.server import ServerCollector
from ops.collectors.storage import StorageCollector
from ops.collectors.tenants import TenantsCollector
from ops.errors import CollectionGone, Unauthorized, Unreachable
from ops.jobs.base import Context, Progress, collections_of, reporting
from ops.metrics import COLLECTION_POINTS, EXPIRED_OLDEST_AGE, EXPIRED_POINTS, NO_TENANT, POINTS, TENANTS
from ops.report import JobReport, Problem, Row
from ops.snapshot import CollectorRun, Sample, Snapshot, SnapshotStore

Runs = dict[tuple[str, str], CollectorRun]

SERVER: Collector = ServerCollector()
LAYOUT: Collector = LayoutCollector()
EXPIRY: Collector = ExpiryCollector()
COLLECTORS: tuple[Collector, ...] = (StorageCollector(), TenantsCollector(), RetentionCollector(), DriftCollector())
"""Those that look at one collection."""


class CensusJob:
    """Counts what is there.

    Args:
        store: Where the snapshot goes; each run of a daemon replaces the one before.
        collectors: What is counted in each collection.
    """

    name = "census"

    def __init__(self, store: SnapshotStore | None = None, collectors: Sequence[Collector] = COLLECTORS) -> None:
        self.store = store or SnapshotStore()
        self._collectors = collectors

    def run(self, context: Context) -> JobReport:
        """Count everything once; what cannot be counted keeps its last numbers, marked as old.

        The rows are points by collection, tenant and scope. `details` holds, per collection, how many points and
        tenants there are, how many of the points are expired, and for how many seconds the oldest of these waits.
        """
        previous = self.store.current
        runs: Runs = {}
        with reporting(self.name, context) as report:
            try:
                self._count(context, report, previous, runs)
            except (Unreachable, Unauthorized) as error:
                report.problems.append(Problem("", str(error)))
                runs = _stale(previous, runs)
            _fill(report, context, runs)
        complete = context.selection.collection is None and report.stopped is None
        kept = runs if complete else {**previous.runs, **runs}
        self.store.publish(Snapshot(report.finished, MappingProxyType(kept)))
        return report

    def _count(self, context: Context, report: JobReport, previous: Snapshot, runs: Runs) -> None:
        target = Target(context.session, context.settings, "", context.now())
        for collector in (SERVER, LAYOUT, EXPIRY):
            self._one(collector, target, report, previous, runs)
        for name in collections_of(context, report):
            target = replace(target, collection=name, now=context.now())
            before = len(report.problems)
            try:
                for number, collector in enumerate(self._collectors):
                    context.progress(Progress(name, collector.name, number, len(self._collectors)))
                    self._one(collector, target, report, previous, runs)
            except CollectionGone as gone:
                for key in [key for key in runs if key[1] == name]:
                    del runs[key]
                report.problems.append(Problem(name, str(gone)))
            report.collections += len(report.problems) == before

    def _one(self, collector: Collector, target: Target, report: JobReport, previous: Snapshot, runs: Runs) -> None:
        key = (collector.name, target.collection)
        attempt = run_collector(collector, target, previous.runs.get(key))
        runs[key] = attempt.run
        if isinstance(attempt.error, Unreachable | Unauthorized):
            raise attempt.error
        if attempt.error is not None:
            report.problems.append(Problem(target.collection, str(attempt.error)))


def _stale(previous: Snapshot, runs: Runs) -> Runs:
    """After the server went away: what was counted in this run, and all else as it was, marked as not counted."""
    kept = {key: replace(run, success=False) for key, run in previous.runs.items() if key not in runs}
    kept |= runs
    server = (SERVER.name, "")
    kept[server] = replace(kept.get(server) or CollectorRun(*server, 0.0, False), success=False)
    return kept


def _fill(report: JobReport, context: Context, runs: Runs) -> None:
    selection = context.selection
    report.details |= {name: dict.fromkeys(_TOTALS.values(), 0) for _, name in runs if name}
    for sample in _fresh(runs):
        if sample.metric is POINTS:
            collection, tenant, scope = sample.labels
            tenant = "" if tenant == NO_TENANT else tenant
            if selection.tenant in (None, tenant) and selection.scope in (None, scope):
                report.rows.append(Row(collection, tenant, scope, int(sample.value)))
            continue
        if sample.metric in _TOTALS:
            report.details[sample.labels[0]][_TOTALS[sample.metric]] += int(sample.value)
    report.rows.sort(key=lambda row: (row.collection, row.tenant, row.scope))


_TOTALS = {
    COLLECTION_POINTS: "points",
    TENANTS: "tenants",
    EXPIRED_POINTS: "expired",
    EXPIRED_OLDEST_AGE: "oldest_expired_seconds",
}


def _fresh(runs: Runs) -> Iterator[Sample]:
    for run in runs.values():
        if run.success:
            yield from run.samples
