"""The numbers of the last census: what a scrape shows, without asking Qdrant anything.

A snapshot is replaced as a whole, so that a scrape never sees half of one. What a collector could not count keeps
its last numbers, and its own `comemory_collector_success` says that they are old.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from comemory.payload import SCOPES
from ops.metrics import NO_TENANT, OTHER_SCOPES, OTHER_TENANTS, Metric

LabelValues = tuple[str, ...]

LONGEST_TENANT = 128
"""Characters of a tenant's id that a label shows; what is longer is no tenant of the schema's."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One number: `labels` are the values of the metric's labels, in their order."""

    metric: Metric
    labels: LabelValues
    value: float


@dataclass(frozen=True, slots=True)
class CollectorRun:
    """What one collector did for one collection ("" for the whole server), and its numbers.

    After a failure `samples` and `last_success` are those of the last run that worked.
    """

    collector: str
    collection: str
    seconds: float
    success: bool
    last_success: datetime | None = None
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All runs of one census by (collector, collection); `taken` is when it ended, None before the first.

    Two snapshots are equal only when they are the same one.
    """

    taken: datetime | None = None
    runs: Mapping[tuple[str, str], CollectorRun] = field(default_factory=lambda: MappingProxyType({}))

    def samples(self) -> list[Sample]:
        """The numbers of all runs, as they were counted."""
        return [sample for run in self.runs.values() for sample in run.samples]


class SnapshotStore:
    """Holds the newest snapshot; the census writes, scrapes read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshot = Snapshot()
        self._prepare: list[Callable[[Snapshot], None]] = []

    @property
    def current(self) -> Snapshot:
        """The newest snapshot; it never changes."""
        with self._lock:
            return self._snapshot

    def before_publishing(self, prepare: Callable[[Snapshot], None]) -> None:
        """Call `prepare` with each new snapshot while the old one is still shown, in the thread of the census."""
        self._prepare.append(prepare)

    def publish(self, snapshot: Snapshot) -> None:
        """Put a new snapshot in the place of the old one."""
        for prepare in self._prepare:
            prepare(snapshot)
        with self._lock:
            self._snapshot = snapshot


def tenant_label(tenant: str) -> str:
    """The value of `tenant_id` for a tenant as it stands in payloads."""
    if not tenant:
        return NO_TENANT
    return tenant if len(tenant) <= LONGEST_TENANT else f"{tenant[: LONGEST_TENANT - 1]}…"


def scope_label(scope: str) -> str:
    """The value of `scope` for a scope as it stands in payloads."""
    return scope if scope in SCOPES else OTHER_SCOPES


def largest_tenants(samples: Iterable[Sample], metric: Metric, most: int) -> frozenset[str]:
    """The `most` tenants with the highest sum of `metric`; of equal ones those first in the alphabet."""
    place = metric.labels.index("tenant_id")
    totals: dict[str, float] = defaultdict(float)
    for sample in samples:
        if sample.metric is metric and sample.labels[place] not in (NO_TENANT, OTHER_TENANTS):
            totals[sample.labels[place]] += sample.value
    ranked = sorted(totals, key=lambda tenant: (-totals[tenant], tenant))
    return frozenset(ranked[:most])


def fold(samples: Iterable[Sample], kept: frozenset[str]) -> list[Sample]:
    """The samples with every tenant outside `kept` put under `__other__`, and equal series added up.

    A tenant that calls itself `__other__` or `__none__` is added to that series, so that no series stands twice.
    """
    added: dict[Metric, dict[LabelValues, float]] = {}
    places: dict[Metric, int | None] = {}
    for sample in samples:
        metric, labels = sample.metric, sample.labels
        if metric not in added:
            added[metric] = {}
            places[metric] = metric.labels.index("tenant_id") if "tenant_id" in metric.labels else None
        place = places[metric]
        if place is not None and labels[place] not in kept and labels[place] != NO_TENANT:
            labels = (*labels[:place], OTHER_TENANTS, *labels[place + 1 :])
        series = added[metric]
        series[labels] = series.get(labels, 0.0) + sample.value
    return [Sample(metric, labels, value) for metric, series in added.items() for labels, value in series.items()]
