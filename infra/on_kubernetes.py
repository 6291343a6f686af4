"""What a stack makes on Kubernetes beside the collections: namespace, cluster, daemon and monitoring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from comemory.declaration import CollectionSettings
from infra.components.monitoring.component import Monitoring
from infra.components.monitoring.scraping import Target, pod_annotations
from infra.components.monitoring.settings import MonitoringSettings
from infra.components.ops_daemon.component import OpsDaemon
from infra.components.ops_daemon.configuration import PORT as DAEMON_PORT
from infra.components.ops_daemon.settings import OpsDaemonSettings
from infra.components.qdrant_cluster.cluster import QdrantCluster
from infra.components.qdrant_cluster.configuration import HTTP_PORT
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from infra.reach import Cluster, kubernetes_access
from infra.resources import Provider
from infra.settings import NamespaceSettings


def kubernetes_provider() -> k8s.Provider:
    """The provider for Kubernetes, configured under `kubernetes:` as the default one would be.

    It changes ConfigMaps and Secrets in place. Made anew under another name instead, a pod that restarts while the
    others are still to be rolled would miss the one that it names.
    """
    config = pulumi.Config("kubernetes")
    # Where nothing is configured the plugin looks for a kubeconfig itself: the class would take KUBECONFIG for the
    # path of one file, and write it into the state.
    unset: pulumi.Output[Any] = pulumi.Output.from_input(None)
    return k8s.Provider(
        "kubernetes",
        kubeconfig=config.get_secret("kubeconfig") or unset,
        context=config.get("context"),
        cluster=config.get("cluster"),
        cluster_identifier=config.get("clusterIdentifier"),
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
    )


def declare_namespace(wanted: NamespaceSettings, provider: k8s.Provider) -> pulumi.Input[str]:
    """The namespace of this stack, or the name of one that is there.

    It is never deleted: it may have been there before, and what others made in it would go with it.
    """
    if not wanted.create:
        return wanted.name
    made = k8s.core.v1.Namespace(
        "namespace",
        metadata={"name": wanted.name, "labels": wanted.all_labels()},
        opts=pulumi.ResourceOptions(provider=provider, retain_on_delete=True),
    )
    return made.metadata.apply(lambda metadata: str(metadata.name))


def declare_cluster(
    settings: QdrantClusterSettings,
    namespace: pulumi.Input[str],
    monitoring: MonitoringSettings | None,
    provider: k8s.Provider,
) -> QdrantCluster:
    """The cluster. Annotations for a Prometheus that finds its targets by them are put on its pods."""
    if monitoring is not None:
        found = pod_annotations(monitoring, HTTP_PORT, tls=settings.tls is not None)
        settings = settings.model_copy(update={"pod_annotations": {**found, **settings.pod_annotations}})
    return QdrantCluster(
        "cluster",
        settings,
        namespace=namespace,
        access=kubernetes_access(),
        opts=pulumi.ResourceOptions(providers=[provider]),
    )


def declare_daemon(
    settings: OpsDaemonSettings,
    *,
    collections: Sequence[CollectionSettings],
    namespace: pulumi.Input[str],
    url: pulumi.Input[str],
    ca: pulumi.Input[str] | None,
    cluster: Cluster | None,
    providers: Sequence[Provider | k8s.Provider],
    monitoring: MonitoringSettings | None,
    after: Sequence[pulumi.Resource],
) -> OpsDaemon:
    """The daemon, once the collections are there; `cluster` is None for a Qdrant elsewhere, at `url`."""
    if monitoring is not None:
        found = pod_annotations(monitoring, DAEMON_PORT, tls=settings.tls_secret is not None)
        settings = settings.model_copy(update={"pod_annotations": {**found, **settings.pod_annotations}})
    return OpsDaemon(
        "daemon",
        settings,
        collections=collections,
        namespace=namespace,
        url=url,
        ca=ca,
        client_labels=cluster.client_labels if cluster else None,
        opts=pulumi.ResourceOptions(providers=list(providers), depends_on=list(after)),
    )


def declare_monitoring(
    settings: MonitoringSettings,
    *,
    namespace: pulumi.Input[str],
    cluster: Cluster | None,
    daemon: OpsDaemon | None,
    provider: k8s.Provider,
) -> Monitoring:
    """Monitors of what this stack makes, with rules and dashboards that know what the cluster knows of itself."""
    if cluster is not None:
        known = settings.qdrant.completed(cluster.metrics_prefix, cluster.memory_bytes)
        settings = settings.model_copy(update={"qdrant": known})
    own = cluster if isinstance(cluster, QdrantCluster) else None
    return Monitoring(
        "monitoring",
        settings,
        namespace=namespace,
        qdrant=_cluster_target(own) if own else None,
        daemon=_daemon_target(daemon) if daemon else None,
        opts=pulumi.ResourceOptions(
            providers=[provider], depends_on=[one for one in (own, daemon) if one is not None]
        ),
    )


def _cluster_target(cluster: QdrantCluster) -> Target:
    keys = cluster.keys_secret
    return Target(
        namespace=cluster.namespace,
        labels=cluster.pod_labels,
        port="http",
        tls=cluster.tls,
        token=(keys.name, keys.read_only_api_key),
        ca=("secret", cluster.tls_secret, "ca.crt") if cluster.tls_secret else None,
        server_name=pulumi.Output.concat(cluster.service_name, ".", cluster.namespace, ".svc"),
    )


def _daemon_target(daemon: OpsDaemon) -> Target:
    return Target(
        namespace=daemon.namespace,
        labels=daemon.pod_labels,
        port="metrics",
        tls=daemon.scheme == "https",
        token=daemon.metrics_secret,
        ca=("secret", daemon.tls_authority, "ca.crt") if daemon.tls_authority else None,
        server_name=pulumi.Output.concat(daemon.service_name, ".", daemon.namespace, ".svc"),
    )
