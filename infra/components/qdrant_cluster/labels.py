"""The labels that everything of a cluster carries, and the few of them that select its pods."""

from __future__ import annotations

from infra.components.qdrant_cluster.settings import QdrantClusterSettings


def selector(settings: QdrantClusterSettings) -> dict[str, str]:
    """Labels that select the pods; they never change, as Kubernetes fixes a StatefulSet's selector."""
    return {
        "app.kubernetes.io/name": "qdrant",
        "app.kubernetes.io/instance": settings.name,
        "app.kubernetes.io/component": "database",
    }


def labels(settings: QdrantClusterSettings) -> dict[str, str]:
    """Labels of every object."""
    return {
        **selector(settings),
        "app.kubernetes.io/part-of": "comemory",
        "app.kubernetes.io/managed-by": "pulumi",
        "app.kubernetes.io/version": settings.image.version,
    }
