"""The volumes of a pod, and how they grow.

Kubernetes fixes a StatefulSet's templates of claims. So they keep the size that the cluster was made with, and each
claim is set to the declared size by itself, also those that a later replica brings with it.
"""

from __future__ import annotations

from typing import Any

from infra.components.qdrant_cluster.configuration import SNAPSHOTS_PATH, STORAGE_PATH
from infra.components.qdrant_cluster.labels import selector
from infra.components.qdrant_cluster.settings import QdrantClusterSettings, VolumeSettings

STORAGE, SNAPSHOTS = "storage", "snapshots"


def volumes(settings: QdrantClusterSettings) -> dict[str, VolumeSettings]:
    """The volumes that a pod has of its own, by the name of their template."""
    found: dict[str, VolumeSettings] = {STORAGE: settings.storage}
    if settings.storage.snapshots is not None:
        found[SNAPSHOTS] = settings.storage.snapshots
    return found


def claim_templates(settings: QdrantClusterSettings) -> list[dict[str, Any]]:
    """The templates that the StatefulSet makes claims from."""
    return [
        {
            "metadata": {"name": name, "labels": selector(settings)},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": volume.size}},
                **({"storageClassName": volume.storage_class} if volume.storage_class else {}),
            },
        }
        for name, volume in volumes(settings).items()
    ]


def claims(settings: QdrantClusterSettings) -> dict[str, str]:
    """Each claim of each replica, and its size."""
    return {
        f"{name}-{settings.name}-{number}": volume.size
        for name, volume in volumes(settings).items()
        for number in range(settings.replicas)
    }


def mounts(settings: QdrantClusterSettings) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Mounts of the container, and the volumes of the pod that are not from templates.

    The root file system is read-only; Qdrant writes to these folders and nowhere else.
    """
    mounted = [
        {"name": STORAGE, "mountPath": STORAGE_PATH},
        {"name": SNAPSHOTS, "mountPath": SNAPSHOTS_PATH},
        {"name": "temporary", "mountPath": "/tmp"},  # noqa: S108 - a volume of this pod alone
    ]
    further: list[dict[str, Any]] = [{"name": "temporary", "emptyDir": {}}]
    if settings.storage.snapshots is None:
        further.append({"name": SNAPSHOTS, "emptyDir": {}})
    return mounted, further
