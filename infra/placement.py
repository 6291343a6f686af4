"""Whether the parts of a stack fit together: where Qdrant is, and what has to reach it from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dashboards.settings import METRIC_PREFIX
from infra.components.monitoring.settings import MonitoringSettings
from infra.components.qdrant_cluster.configuration import metrics_prefix
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from infra.replication import replication_problems

if TYPE_CHECKING:
    from infra.settings import StackSettings

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def placement_problems(settings: StackSettings, at: str, environment: Mapping[str, str]) -> Iterator[str]:
    """One sentence for each contradiction, beginning with the key as it stands in the stack's file.

    Args:
        settings: the stack's.
        at: what the keys begin with.
        environment: where the key of an endpoint may stand.
    """
    url = settings.endpoint.url
    if settings.cluster and settings.cluster_stack:
        yield f"{at}:cluster_stack: {at}:cluster makes a cluster in this stack; keep one of both"
    if settings.cluster_stack and url:
        yield f"{at}:endpoint.url: {settings.cluster_stack} gives the address; keep one of both"
    if settings.monitoring and settings.cluster:
        yield from _prefix_problems(settings.monitoring, settings.cluster, at)
    if settings.daemon:
        yield from _daemon_problems(settings, at, environment)
    if settings.cluster:
        yield from replication_problems(settings.collections, settings.cluster.replicas, f"{at}:collections")


def _prefix_problems(monitoring: MonitoringSettings, cluster: QdrantClusterSettings, at: str) -> Iterator[str]:
    said, given = metrics_prefix(cluster), monitoring.qdrant.prefix
    if given is not None and given != said:
        yield (
            f"{at}:monitoring.qdrant.prefix: '{given}' is not what the cluster of this stack has: "
            f"'{said}' (service.metrics_prefix in {at}:cluster.configuration); leave it out"
        )
    if not METRIC_PREFIX.fullmatch(said):
        yield (
            f"{at}:cluster.configuration.service.metrics_prefix: '{said}' cannot begin the name of a metric; "
            "use letters, digits and _"
        )


def _daemon_problems(settings: StackSettings, at: str, environment: Mapping[str, str]) -> Iterator[str]:
    daemon, endpoint, cluster = settings.daemon, settings.endpoint, settings.cluster
    if daemon is None:
        return
    if not settings.collections:
        yield f"{at}:daemon: there are no collections that it could keep in order"
    if cluster and daemon.name == cluster.name:
        yield f"{at}:daemon.name: {daemon.name} is the name of the cluster and of its objects; choose another"
    if cluster or settings.cluster_stack:
        return
    if not endpoint.url:
        yield (
            f"{at}:daemon: a daemon on Kubernetes has to know where Qdrant is; give {at}:cluster, "
            f"{at}:cluster_stack or {at}:endpoint.url"
        )
    elif urlsplit(endpoint.url).hostname in LOOPBACK:
        yield (
            f"{at}:endpoint.url: {endpoint.url} is this machine alone, which a daemon on Kubernetes cannot reach; "
            "give an address that both can"
        )
    if daemon.key is None and endpoint.api_key is None and not environment.get("QDRANT_API_KEY"):
        yield (
            f"{at}:daemon.key: the daemon needs a key or a token; name a Secret that holds one, or give "
            f"{at}:endpoint.api_key (or QDRANT_API_KEY), with which a token is signed for it"
        )
