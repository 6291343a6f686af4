"""Points per tenant and scope: a facet of `tenant_id` for each scope, however many tenants there are."""

from __future__ import annotations

from collections import Counter

from qdrant_client import models

from comemory.filters import is_text, matches, matches_any
from comemory.payload import SCOPES
from ops.collectors.base import Target
from ops.metrics import OTHER_SCOPES, POINTS, TENANTS
from ops.session import Session
from ops.snapshot import Sample, tenant_label


class TenantsCollector:
    """Nine requests, and eight more when the quick count does not add up."""

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

    An exact facet costs the server as much as a count for each tenant. The quick kind can only count too much, a
    point twice that is just being moved between segments; so when its counts add up to the exact total, each of
    them is exact, and otherwise (also where a tenant or scope is a list, which counts under each value) the
    exact facets are asked for.
    """
    counts = _facets(session, collection, base, exact=False)
    if sum(counts.values()) != session.count(collection, base):
        counts = _facets(session, collection, base, exact=True)
    return {key: count for key, count in counts.items() if count}


def _facets(
    session: Session, collection: str, base: models.Filter | None, *, exact: bool
) -> Counter[tuple[str, str]]:
    must: list[models.Condition] = [] if base is None else [base]
    counts: Counter[tuple[str, str]] = Counter()
    filters: dict[str, models.Filter] = {
        scope: models.Filter(must=[*must, matches("scope", scope)]) for scope in SCOPES
    }
    known = matches_any("scope", SCOPES)
    filters[OTHER_SCOPES] = models.Filter(must=must or None, must_not=[known])
    for scope, condition in filters.items():
        for tenant, count in session.facet(collection, "tenant_id", condition, exact=exact).items():
            counts[tenant, scope] += count
    nameless = models.Filter(must=must or None, must_not=[is_text("tenant_id")])
    for scope, count in session.facet(collection, "scope", nameless, exact=exact).items():
        if scope in SCOPES:
            counts["", scope] += count
    nowhere = models.Filter(must=must or None, must_not=[is_text("tenant_id"), known])
    counts["", OTHER_SCOPES] += session.count(collection, nowhere)
    return counts
