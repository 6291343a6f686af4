"""The variables of the dashboards, and the matchers that use them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model

from dashboards.expressions import CLUSTER, Source
from dashboards.foreign import APP_INFO
from dashboards.settings import DashboardSettings
from ops.metrics import BUILD_INFO, COLLECTION_POINTS, POINTS

DATASOURCE: Final = model.DataSourceRef(type_val="prometheus", uid="${datasource}")

ANY: Final = ".*"
"""The value of "All": it also matches series that lack the label, such as `cluster` where there is one only."""

SOME: Final = ".+"

Variable = build.DatasourceVariable | build.QueryVariable

_CLUSTER: Final = f'{CLUSTER}=~"$cluster"'
_WHERE: Final = (_CLUSTER, 'job=~"$job"', 'instance=~"$instance"')


def ours(*more: str) -> Source:
    """Selectors of the daemon's metrics; `more` are variables besides cluster, job, instance and collection."""
    labels = {"collection": 'collection=~"$collection"'}
    # Of several values Grafana makes a regular expression and escapes each; one value alone it does not escape so.
    labels |= {"tenant_id": 'tenant_id=~"$tenant"'} if "tenant" in more else {}
    labels |= {"tenant_id": 'tenant_id="$tenant"'} if "one_tenant" in more else {}
    labels |= {"scope": 'scope=~"$scope"'} if "scope" in more else {}
    return Source(_WHERE, labels)


def theirs(settings: DashboardSettings) -> Source:
    """Selectors of Qdrant's own metrics, which call the collection `id` here and `collection` there."""
    labels = {"id": 'id=~"$collection"', "collection": 'collection=~"$collection"'}
    return Source(_WHERE, labels, settings.qdrant_prefix)


def recorded() -> tuple[str, ...]:
    """Matchers of recorded series, which are sums over instances."""
    return _WHERE[:2]


def of_daemon(*, tenant: bool = False, one_tenant: bool = False, scope: bool = False) -> Iterable[Variable]:
    """Those of a dashboard about the daemon's metrics."""
    yield _datasource()
    yield from _places(BUILD_INFO.name)
    points = f'{COLLECTION_POINTS.name}{{{_CLUSTER}, job=~"$job"}}'
    yield _values("collection", "Collection", points, "collection", ANY)
    by_tenant = f'{POINTS.name}{{{_CLUSTER}, job=~"$job", collection=~"$collection"}}'
    if one_tenant:
        yield _query("tenant", "Tenant", by_tenant, "tenant_id")
    elif tenant:
        yield _values("tenant", "Tenant", by_tenant, "tenant_id", ANY)
    if scope:
        yield _values("scope", "Scope", by_tenant, "scope", ANY)


def of_qdrant(settings: DashboardSettings) -> Iterable[Variable]:
    """Those of the dashboard about Qdrant's own metrics."""
    source = theirs(settings)
    yield _datasource()
    yield from _places(source.name(APP_INFO), f'job=~"{settings.qdrant_jobs}"', every_job=settings.qdrant_jobs)
    daemons = f"{COLLECTION_POINTS.name}{{{_CLUSTER}}}"
    yield _values("collection", "Collection", daemons, "collection", ANY)


def _datasource() -> Variable:
    return build.DatasourceVariable("datasource").label("Data source").type("prometheus")


def _places(metric: str, *matchers: str, every_job: str = SOME) -> Iterable[Variable]:
    yield _values("cluster", "Cluster", metric, CLUSTER, ANY)
    within = ", ".join([_CLUSTER, *matchers])
    yield _values("job", "Job", f"{metric}{{{within}}}", "job", every_job)
    yield _values("instance", "Instance", f'{metric}{{{_CLUSTER}, job=~"$job"}}', "instance", SOME)


def _values(name: str, label: str, series: str, of: str, every: str) -> build.QueryVariable:
    """Several values, or all."""
    chosen = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    return _query(name, label, series, of).multi(True).include_all(True).all_value(every).current(chosen)


def _query(name: str, label: str, series: str, of: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": f"label_values({series}, {of})", "refId": "PrometheusVariableQueryEditor-VariableQuery"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )
