"""Where the pods of a cluster run, and how many of them may be away at once."""

from __future__ import annotations

from typing import Any

from infra.components.qdrant_cluster.labels import selector
from infra.components.qdrant_cluster.settings import QdrantClusterSettings


def placement(settings: QdrantClusterSettings) -> dict[str, Any]:
    """The part of a pod's specification that says where it may run.

    Spreading starts with the second replica: one pod has nothing to keep its distance from.
    """
    wanted = settings.scheduling
    spec: dict[str, Any] = {}
    if settings.replicas > 1:
        same = {"labelSelector": {"matchLabels": selector(settings)}}
        if wanted.one_per_node != "off":
            term = {**same, "topologyKey": "kubernetes.io/hostname"}
            if wanted.one_per_node == "required":
                apart: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            else:
                weighted = {"weight": 100, "podAffinityTerm": term}
                apart = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
            spec["affinity"] = {"podAntiAffinity": apart}
        if wanted.zone_spread != "off":
            when = "DoNotSchedule" if wanted.zone_spread == "required" else "ScheduleAnyway"
            zone = {**same, "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": when}
            spec["topologySpreadConstraints"] = [zone]
    if wanted.node_selector:
        spec["nodeSelector"] = wanted.node_selector
    if wanted.tolerations:
        spec["tolerations"] = [
            {**one.declared(), **({} if one.key else {"operator": "Exists"})} for one in wanted.tolerations
        ]
    if wanted.priority_class:
        spec["priorityClassName"] = wanted.priority_class
    return spec


def disruption_budget(settings: QdrantClusterSettings) -> dict[str, Any] | None:
    """At most one pod away at a time. None for a single pod: a budget would hold every drain of its node."""
    if settings.replicas == 1:
        return None
    return {"maxUnavailable": 1, "selector": {"matchLabels": selector(settings)}}
