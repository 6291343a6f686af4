"""What is expired and not yet deleted, what waits longest, and what will expire soon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from qdrant_client import models

from comemory.retention import any_expired_filter, due_filter, expires_at
from ops.collectors.base import Target
from ops.collectors.tenants import count_tenants
from ops.metrics import EXPIRED_OLDEST_AGE, EXPIRED_POINTS, EXPIRING_POINTS, WINDOWS
from ops.snapshot import Sample, tenant_label

TTL_PER_FILTER = 25
"""Values of `ttl_days` in one filter: more would make it long enough for strict mode to refuse."""


GUARDED_MOST = 5000
"""Expired points up to which the guards of the `ttl` job's filter are asked too."""


class RetentionCollector:
    """A facet of `ttl_days`, then for every 25 of its values 13 requests; some more as for the `tenants` collector.

    The filter is that of the `ttl` job, so what is counted is what a run would delete. Only while there is a large
    backlog a part is left out, for which the server reads each candidate's payload: then a point whose `ttl_days`,
    `created_at` or `schema_version` holds several values may be counted, too.
    """

    name = "retention"

    def collect(self, target: Target) -> list[Sample]:
        """Count what is expired now, and what will be within each window."""
        name = target.collection
        found = target.session.facet(name, "ttl_days", exact=False)
        values = sorted(value for value in found if isinstance(value, int) and value >= 1)
        samples = [Sample(EXPIRED_OLDEST_AGE, (name,), _oldest(target, values))]
        expired: Counter[tuple[str, str]] = Counter()
        coming: dict[str, Counter[str]] = {window: Counter() for window in WINDOWS}
        for some in _parts(values):
            for (tenant, scope), count in _expired(target, some).items():
                expired[tenant_label(tenant), scope] += count
            for window, counts in coming.items():
                condition = _due(target, some, target.now + timedelta(days=WINDOWS[window]), guarded=False)
                for tenant, count in target.session.facet(name, "tenant_id", condition, exact=False).items():
                    counts[tenant_label(tenant)] += count
        by_tenant: Counter[str] = Counter()
        for (tenant, scope), count in expired.items():
            samples.append(Sample(EXPIRED_POINTS, (name, tenant, scope), count))
            by_tenant[tenant] += count
        for window, counts in coming.items():
            for tenant, count in counts.items():
                if count > by_tenant[tenant]:
                    samples.append(Sample(EXPIRING_POINTS, (name, tenant, window), count - by_tenant[tenant]))
        return samples


def _expired(target: Target, values: Sequence[int]) -> dict[tuple[str, str], int]:
    condition = _due(target, values, target.now, guarded=False)
    candidates = target.session.count(target.collection, condition)
    if not candidates:
        return {}
    if candidates > GUARDED_MOST:
        return count_tenants(target.session, target.collection, condition, total=candidates)
    return count_tenants(target.session, target.collection, _due(target, values, target.now, guarded=True))


def _due(target: Target, values: Sequence[int], now: datetime, *, guarded: bool) -> models.Filter:
    settings = target.settings.ttl
    make = any_expired_filter if guarded else due_filter
    return make(now, values, grace=settings.grace, exempt_tags=settings.exempt_tags)


def _parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), TTL_PER_FILTER):
        yield values[start : start + TTL_PER_FILTER]


def _oldest(target: Target, values: Sequence[int]) -> float:
    """Seconds since the longest waiting point was due: of each `ttl_days`, the point that was created first."""
    due: list[datetime] = []
    for some in _parts(values):
        conditions = [_due(target, [ttl], target.now, guarded=True) for ttl in some]
        fields = ["created_at", "ttl_days", "schema_version"]
        for point in target.session.first_by(target.collection, "created_at", conditions, payload=fields):
            expiry = expires_at(point["payload"]) if point is not None else None
            if isinstance(expiry, datetime):
                due.append(expiry)
    if not due:
        return 0.0
    return max(0.0, (target.now - target.settings.ttl.grace - min(due)).total_seconds())
