"""Points per tenant and scope: one exact facet of `tenant_id` for each scope, however many tenants there are."""

from __future__ import annotations

from collections import Counter

from qdrant_client import models

from comemory.filters import is_empty, matches
from comemory.payload import SCOPES
from ops.collectors.base import Target
from ops.metrics import OTHER_SCOPES, POINTS, TENANTS
from ops.session import Session
from ops.snapshot import Sample, tenant_label


class TenantsCollector:
    """Eight requests: a facet of tenants per scope, one for what has none, and two for what has no tenant."""

    name = "tenants"

    def collect(self, target: Target) -> list[Sample]:
        """Count all points."""
        name = target.collection
        counts = count_tenants(target.session, name)
        tenants = {tenant for tenant, _ in counts if tenant}
        samples = [Sample(TENANTS, (name,), len(tenants))]
        return samples + [Sample(POINTS, (name, tenant_label(t), s), count) for (t, s), count in counts.items()]


def count_tenants(
    session: Session, collection: str, base: models.Filter | None = None
) -> dict[tuple[str, str], int]:
    """Points by (tenant, scope) among those that match `base`; tenant "" stands for none, scope as in the metrics.

    Eight requests. A point whose tenant or scope is a list is counted once for each value, as Qdrant reads it.
    """
    must: list[models.Condition] = [] if base is None else [base]
    counts: Counter[tuple[str, str]] = Counter()
    other = models.FieldCondition(key="scope", match=models.MatchAny(any=list(SCOPES)))
    filters: dict[str, models.Filter] = {
        scope: models.Filter(must=[*must, matches("scope", scope)]) for scope in SCOPES
    }
    filters[OTHER_SCOPES] = models.Filter(must=must or None, must_not=[other])
    for scope, condition in filters.items():
        for tenant, count in session.facet(collection, "tenant_id", condition).items():
            counts[tenant, scope] += count
    must.append(is_empty("tenant_id"))
    for scope, count in session.facet(collection, "scope", models.Filter(must=must)).items():
        if scope in SCOPES:
            counts["", scope] += count
    counts["", OTHER_SCOPES] += session.count(collection, models.Filter(must=must, must_not=[other]))
    return {key: count for key, count in counts.items() if count}
