"""The Pulumi program: a cluster on Kubernetes if one is declared, and the collections on it or on another server.

One function, run by the ordinary command line (`infra/__main__.py`) and inline by the Automation API
(`tools.stack`), so that both make the same resources.
"""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s
from pulumi.runtime.config import CONFIG

from infra.components.memory_collection import MemoryCollection
from infra.components.qdrant_cluster.reference import ClusterReference, export_cluster
from infra.on_kubernetes import (
    declare_cluster,
    declare_daemon,
    declare_monitoring,
    declare_namespace,
    kubernetes_provider,
)
from infra.reach import Cluster, at_cluster, at_endpoint
from infra.replication import replication_problems
from infra.resources import Provider
from infra.settings import NAMESPACE, ConfigurationError, StackSettings, environment, load


def program() -> None:
    """Declare everything of the current stack.

    Raises pulumi.RunError, which the command line shows as it is, when the configuration is wrong.
    """
    try:
        declare_stack(load(CONFIG.get()))
    except ConfigurationError as error:
        raise pulumi.RunError(f"the configuration of stack {pulumi.get_stack()} is wrong:\n{error}") from error


def declare_stack(settings: StackSettings) -> None:
    """Declare all that the settings ask for, and export what a person or another program asks for."""
    if not settings.on_kubernetes:
        url = settings.endpoint.address(environment())
        pulumi.export("url", url)
        _collections(settings, at_endpoint(settings.endpoint, environment()))
        return
    kubernetes = kubernetes_provider()
    cluster, namespace = _place(settings, kubernetes)
    url_there: pulumi.Input[str] = cluster.url if cluster else settings.endpoint.address(environment())
    pulumi.export("url", url_there)
    daemon = None
    if settings.collections:
        provider = (
            at_cluster(cluster, settings.endpoint, environment())
            if cluster
            else at_endpoint(settings.endpoint, environment())
        )
        collections = _collections(settings, provider)
        if settings.daemon:
            daemon = declare_daemon(
                settings.daemon,
                collections=settings.collections,
                namespace=namespace,
                url=url_there,
                ca=cluster.ca if cluster else settings.endpoint.authority(),
                cluster=cluster,
                providers=[provider, kubernetes],
                monitoring=settings.monitoring,
                after=collections,
            )
    if settings.monitoring:
        declare_monitoring(
            settings.monitoring, namespace=namespace, cluster=cluster, daemon=daemon, provider=kubernetes
        )


def _place(settings: StackSettings, provider: k8s.Provider) -> tuple[Cluster | None, pulumi.Input[str]]:
    """The cluster, if it is on Kubernetes, and the namespace of what this stack makes there."""
    if settings.cluster_stack:
        there = ClusterReference(settings.cluster_stack)
        at = f"{NAMESPACE}:collections"
        if problems := list(replication_problems(settings.collections, there.replicas, at)):
            raise ConfigurationError("\n".join(problems))
        return there, there.namespace
    namespace = declare_namespace(settings.namespace, provider)
    if settings.cluster is None:
        return None, namespace
    made = declare_cluster(settings.cluster, namespace, settings.monitoring, provider)
    export_cluster(made)
    return made, namespace


def _collections(settings: StackSettings, provider: Provider) -> list[MemoryCollection]:
    options = pulumi.ResourceOptions(providers=[provider])
    made = [
        MemoryCollection(one.spec.name, one.spec, indexes=one.indexes, alias=one.alias, opts=options)
        for one in settings.resolved()
    ]
    pulumi.export("collections", [collection.ready for collection in made])
    pulumi.export("indexes", sum(len(collection.indexes) for collection in made))
    return made
