"""What is expired and not yet deleted, what waits longest, and what will expire soon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from comemory.retention import any_expired_filter, expires_at
from ops.collectors.base import Target
from ops.collectors.tenants import count_tenants
from ops.metrics import EXPIRED_OLDEST_AGE, EXPIRED_POINTS, EXPIRING_POINTS, WINDOWS
from ops.snapshot import Sample, tenant_label

TTL_PER_FILTER = 25
"""Values of `ttl_days` in one filter: more would make it long enough for strict mode to refuse."""


class RetentionCollector:
    """A facet of `ttl_days`, then for every 25 of its values twelve requests.

    The filter is that of the `ttl` job, so a point counted here is one that a run would delete.
    """

    name = "retention"

    def collect(self, target: Target) -> list[Sample]:
        """Count what is expired now, and what will be within each window."""
        name, settings = target.collection, target.settings.ttl
        values = sorted(v for v in target.session.facet(name, "ttl_days") if isinstance(v, int) and v >= 1)
        samples = [Sample(EXPIRED_OLDEST_AGE, (name,), _oldest(target, values))]
        expired: Counter[tuple[str, str]] = Counter()
        coming: dict[str, Counter[str]] = {window: Counter() for window in WINDOWS}
        for some in _parts(values):
            due = any_expired_filter(target.now, some, grace=settings.grace, exempt_tags=settings.exempt_tags)
            for (tenant, scope), count in count_tenants(target.session, name, due).items():
                expired[tenant_label(tenant), scope] += count
            for window, days in WINDOWS.items():
                then = target.now + timedelta(days=days)
                will = any_expired_filter(then, some, grace=settings.grace, exempt_tags=settings.exempt_tags)
                for tenant, count in target.session.facet(name, "tenant_id", will).items():
                    coming[window][tenant_label(tenant)] += count
        by_tenant: Counter[str] = Counter()
        for (tenant, scope), count in expired.items():
            samples.append(Sample(EXPIRED_POINTS, (name, tenant, scope), count))
            by_tenant[tenant] += count
        for window, counts in coming.items():
            for tenant, count in counts.items():
                if count > by_tenant[tenant]:
                    samples.append(Sample(EXPIRING_POINTS, (name, tenant, window), count - by_tenant[tenant]))
        return samples


def _parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), TTL_PER_FILTER):
        yield values[start : start + TTL_PER_FILTER]


def _oldest(target: Target, values: Sequence[int]) -> float:
    """Seconds since the longest waiting point was due: of each `ttl_days`, the point that was created first."""
    settings = target.settings.ttl
    due: list[datetime] = []
    for some in _parts(values):
        conditions = [
            any_expired_filter(target.now, [ttl], grace=settings.grace, exempt_tags=settings.exempt_tags)
            for ttl in some
        ]
        fields = ["created_at", "ttl_days", "schema_version"]
        for point in target.session.first_by(target.collection, "created_at", conditions, payload=fields):
            expiry = expires_at(point["payload"]) if point is not None else None
            if isinstance(expiry, datetime):
                due.append(expiry)
    if not due:
        return 0.0
    return max(0.0, (target.now - settings.grace - min(due)).total_seconds())
