"""Points per tenant and scope: a facet of `tenant_id` for each scope, however many tenants there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from qdrant_client import models

from comemory.filters import is_text, matches, matches_any
from comemory.payload import SCOPES
from ops.collectors.base import Target
from ops.metrics import OTHER_SCOPES, POINTS, TENANTS
from ops.session import Session
from ops.snapshot import Sample, tenant_label


class TenantsCollector:
    """Eight requests; up to eleven more where points lack a tenant or scope, or the quick count does not add up."""

    name = "tenants"

    def collect(self, target: Target) -> list[Sample]:
        """Count all points."""
        name = target.collection
        counts = count_tenants(target.session, name)
        tenants = {tenant for tenant, _ in counts if tenant}
        samples = [Sample(TENANTS, (name,), len(tenants))]
        return samples + [Sample(POINTS, (name, tenant_label(t), s), count) for (t, s), count in counts.items()]


def count_tenants(
    session: Session, collection: str, base: models.Filter | None = None, *, total: int | None = None
) -> dict[tuple[str, str], int]:
    """Points by (tenant, scope) among those that match `base`; tenant "" stands for none, scope as in the metrics.

    An exact facet costs the server as much as a count for each tenant. The quick kind can only count too much, a
    point twice that is just being moved between segments; so when its counts add up to the exact total, each of
    them is exact, and otherwise (also where a tenant or scope is a list, which counts under each value) the
    exact facets are asked for.

    Args:
        session: Where to ask.
        collection: Which collection.
        base: Only points that match; None means all.
        total: How many match, where that is known already.
    """
    # Cheap to ask of all points, dear together with `base`; mostly there are none.
    nameless = session.count(collection, models.Filter(must_not=[_NAMED])) > 0
    unscoped = session.count(collection, models.Filter(must_not=[_SCOPED])) > 0
    if total is None:
        total = session.count(collection, base)
    counts: Counter[tuple[str, str]] = Counter()
    for exact in (False, True):
        counts = _facets(session, collection, base, nameless=nameless, unscoped=unscoped, exact=exact)
        if sum(counts.values()) == total:
            break
    return {key: count for key, count in counts.items() if count}


_NAMED: Final = is_text("tenant_id")
_SCOPED: Final = matches_any("scope", SCOPES)


def _facets(
    session: Session, collection: str, base: models.Filter | None, *, nameless: bool, unscoped: bool, exact: bool
) -> Counter[tuple[str, str]]:
    filters = {scope: _narrowed(base, must=[matches("scope", scope)]) for scope in map(str, SCOPES)}
    if unscoped:
        filters[OTHER_SCOPES] = _narrowed(base, must_not=[_SCOPED])
    counts: Counter[tuple[str, str]] = Counter()
    for scope, condition in filters.items():
        for tenant, count in session.facet(collection, "tenant_id", condition, exact=exact).items():
            counts[tenant, scope] += count
    if nameless:
        condition = _narrowed(base, must_not=[_NAMED])
        for scope, count in session.facet(collection, "scope", condition, exact=exact).items():
            if scope in SCOPES:
                counts["", scope] += count
        if unscoped:
            counts["", OTHER_SCOPES] += session.count(collection, _narrowed(base, must_not=[_NAMED, _SCOPED]))
    return counts


def _narrowed(
    base: models.Filter | None, must: Sequence[models.Condition] = (), must_not: Sequence[models.Condition] = ()
) -> models.Filter:
    """`base` and these conditions on one level where that is the same, which the server answers sooner."""
    if base is not None and (base.should or base.min_should):
        return models.Filter(must=[base, *must], must_not=[*must_not])
    return models.Filter(
        must=[*_listed(base and base.must), *must], must_not=[*_listed(base and base.must_not), *must_not]
    )


def _listed(clause: models.Condition | list[models.Condition] | None) -> list[models.Condition]:
    return clause if isinstance(clause, list) else [] if clause is None else [clause]
