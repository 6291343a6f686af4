"""What a stack makes on Kubernetes beside the collections: the namespace and the cluster in it."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from infra.components.qdrant_cluster import QdrantCluster, QdrantClusterSettings
from infra.settings import NamespaceSettings


def declare_cluster(namespace: NamespaceSettings, settings: QdrantClusterSettings) -> QdrantCluster:
    """The cluster, in a namespace of this stack or in one that is there."""
    return QdrantCluster("cluster", settings, namespace=_namespace(namespace, settings))


def _namespace(wanted: NamespaceSettings, settings: QdrantClusterSettings) -> pulumi.Input[str]:
    if not wanted.create:
        return wanted.name
    made = k8s.core.v1.Namespace(
        "namespace",
        metadata={"name": wanted.name, "labels": wanted.all_labels()},
        # Volumes that were asked to stay would go with their namespace.
        opts=pulumi.ResourceOptions(retain_on_delete=settings.storage.when_destroyed == "retain"),
    )
    return made.metadata.apply(lambda metadata: str(metadata.name))
