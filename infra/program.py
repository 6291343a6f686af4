"""The Pulumi program: a cluster on Kubernetes if one is declared, and the collections on it or on another server.

One function, run by the ordinary command line (`infra/__main__.py`) and inline by the Automation API
(`tools.stack`), so that both make the same resources.
"""

from __future__ import annotations

import pulumi
from pulumi.runtime.config import CONFIG

from infra.components.memory_collection import MemoryCollection
from infra.components.qdrant_cluster.reference import ClusterReference, export_cluster
from infra.on_kubernetes import declare_cluster
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
    cluster = _cluster(settings)
    if cluster is None:
        url: pulumi.Input[str] = settings.endpoint.address(environment())
    else:
        url = cluster.url
    pulumi.export("url", url)
    if settings.collections:
        provider = (
            at_endpoint(settings.endpoint, environment())
            if cluster is None
            else at_cluster(cluster, settings.endpoint, environment())
        )
        _collections(settings, provider)


def _cluster(settings: StackSettings) -> Cluster | None:
    if settings.cluster:
        made = declare_cluster(settings.namespace, settings.cluster)
        export_cluster(made)
        return made
    if settings.cluster_stack:
        there = ClusterReference(settings.cluster_stack)
        at = f"{NAMESPACE}:collections"
        if problems := list(replication_problems(settings.collections, there.replicas, at)):
            raise ConfigurationError("\n".join(problems))
        return there
    return None


def _collections(settings: StackSettings, provider: Provider) -> None:
    options = pulumi.ResourceOptions(providers=[provider])
    made = [
        MemoryCollection(one.spec.name, one.spec, indexes=one.indexes, alias=one.alias, opts=options)
        for one in settings.resolved()
    ]
    pulumi.export("collections", [collection.ready for collection in made])
    pulumi.export("indexes", sum(len(collection.indexes) for collection in made))
