"""A cluster that another stack made, with the attributes of `QdrantCluster`, read from that stack's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.runtime.sync_await import _sync_await

from infra.components.qdrant_cluster.cluster import KeysSecret, QdrantCluster

DESCRIPTION = "cluster"
"""The output that describes the cluster; `url`, the keys and `ca` are outputs of their own."""


def export_cluster(cluster: QdrantCluster) -> None:
    """Export what another stack, or a person, needs to use the cluster. The keys are secret outputs."""
    pulumi.export(
        DESCRIPTION,
        {
            "namespace": cluster.namespace,
            "service_name": cluster.service_name,
            "tls": cluster.tls,
            "tls_secret": cluster.tls_secret,
            "replicas": cluster.replicas,
            "client_labels": dict(cluster.client_labels),
            "pod_labels": dict(cluster.pod_labels),
            "metrics_prefix": cluster.metrics_prefix,
            "memory_bytes": cluster.memory_bytes,
            "keys": {
                "secret": cluster.keys_secret.name,
                "api_key": cluster.keys_secret.api_key,
                "read_only_api_key": cluster.keys_secret.read_only_api_key,
                "revision": cluster.keys_secret.revision,
            },
        },
    )
    if cluster.ca is not None:
        pulumi.export("ca", cluster.ca)
    if cluster.api_key is not None:
        pulumi.export("api_key", cluster.api_key)
        pulumi.export("read_only_api_key", cluster.read_only_api_key)


class ClusterReference:
    """The cluster of the stack `organization/project/stack`. Raises pulumi.RunError when that stack has none."""

    def __init__(self, stack: str) -> None:
        reference = pulumi.StackReference(stack)
        found: Mapping[str, Any] | None = _sync_await(reference.get_output_details(DESCRIPTION)).value
        if not isinstance(found, Mapping):
            raise pulumi.RunError(
                f"the stack {stack} has no cluster: its outputs have no `{DESCRIPTION}`. Run `pulumi up` "
                "there first, with comemory:cluster in its configuration"
            )
        described, keys = found, found["keys"]
        self.namespace: pulumi.Output[str] = pulumi.Output.from_input(described["namespace"])
        self.service_name: str = described["service_name"]
        self.tls: bool = described["tls"]
        self.tls_secret: str | None = described.get("tls_secret")
        self.replicas = int(described["replicas"])
        self.client_labels: Mapping[str, str] = described["client_labels"]
        self.pod_labels: Mapping[str, str] = described["pod_labels"]
        # A stack that was last updated before these were exported does not tell them.
        memory = described.get("memory_bytes")
        self.memory_bytes: int | None = None if memory is None else int(memory)
        self.metrics_prefix: str = described.get("metrics_prefix", "")
        self.keys_secret = KeysSecret(
            pulumi.Output.from_input(keys["secret"]),
            keys["api_key"],
            keys["read_only_api_key"],
            pulumi.Output.from_input(keys["revision"]),
        )
        self.url: pulumi.Output[str] = reference.require_output("url")
        self.ready: pulumi.Output[str] = pulumi.Output.from_input(self.service_name)
        self.ca: pulumi.Output[str] | None = reference.get_output("ca") if self.tls else None
        held = _sync_await(reference.get_output_details("api_key")).secret_value is not None
        self.api_key: pulumi.Output[str] | None = reference.get_output("api_key") if held else None
        self.read_only_api_key: pulumi.Output[str] | None = (
            reference.get_output("read_only_api_key") if held else None
        )
