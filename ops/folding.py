"""Which tenants have series of their own: one decision for every series that is shown.

The largest of the last census have; places that it leaves go to tenants which only the jobs met, such as one whose
last point was deleted, whoever came first. All others share `__other__`. Were it decided for each metric by itself,
a tenant would have points under its name and its copies elsewhere, and would seem to have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ops import metrics
from ops.metrics import NO_TENANT, OTHER_TENANTS
from ops.results import DeletedKey
from ops.snapshot import LabelValues, Sample, Snapshot, fold, largest_tenants, scope_label, tenant_label


@dataclass(frozen=True, slots=True)
class Largest:
    """The tenants of a census that have series of their own, and how many have not."""

    tenants: frozenset[str]
    folded: int


class Folding:
    """The decision, and what it has to remember. `largest` may be asked from any thread, the others from one.

    Args:
        most: Tenants with series of their own; see `census.max_tenants` in the settings.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._met: dict[str, None] = {}
        self._seen: Counter[DeletedKey] = Counter()
        self._deleted: Counter[LabelValues] = Counter()
        self.largest = lru_cache(maxsize=2)(self._largest)
        """The tenants with most points in a snapshot; that of the next one is asked while the last is shown."""

    def _largest(self, snapshot: Snapshot) -> Largest:
        samples = snapshot.samples()
        every = largest_tenants(samples, metrics.POINTS, len(samples))
        kept = every if len(every) <= self._most else largest_tenants(samples, metrics.POINTS, self._most)
        return Largest(kept, len(every) - len(kept))

    def named(self, census: Largest, met: Iterable[str]) -> frozenset[str]:
        """The labels of all that have series of their own; `met` are tenants as they stand in reports."""
        self._met.update(dict.fromkeys(map(tenant_label, met)))
        left = self._most - len(census.tenants)
        others = [t for t in self._met if t not in census.tenants and t not in (NO_TENANT, OTHER_TENANTS)]
        return census.tenants | frozenset(others[:left])

    def deleted(self, totals: Mapping[DeletedKey, int], named: frozenset[str]) -> list[Sample]:
        """The counter of deleted points.

        What was deleted stays in the series that it was first counted in, since a counter must never move to
        another: one that gains the past of a tenant would look like a burst of deletions.
        """
        for key, total in totals.items():
            if more := total - self._seen[key]:
                self._seen[key] = total
                job, collection, tenant, scope = key
                first = Sample(
                    metrics.DELETED_POINTS, (job, collection, tenant_label(tenant), scope_label(scope)), more
                )
                self._deleted[fold([first], named)[0].labels] += more
        shown = named | {NO_TENANT, OTHER_TENANTS}
        place = metrics.DELETED_POINTS.labels.index("tenant_id")
        return [
            Sample(metrics.DELETED_POINTS, labels, float(count))
            for labels, count in sorted(self._deleted.items())
            if labels[place] in shown
        ]
