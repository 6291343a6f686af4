"""How the provider `qdrant` of a stack reaches its server: an address, or a Service through a port-forward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from infra.components.qdrant_cluster.cluster import QdrantCluster
from infra.components.qdrant_cluster.reference import ClusterReference
from infra.resources import Provider
from infra.settings import ConfigurationError, EndpointSettings

Cluster = QdrantCluster | ClusterReference


def at_endpoint(endpoint: EndpointSettings, environment: Mapping[str, str]) -> Provider:
    """The provider for a server that is there already. Raises ConfigurationError for an address that is none."""
    return Provider(
        "qdrant",
        url=endpoint.address(environment),
        api_key=_configured_key(endpoint),
        timeout=endpoint.timeout,
        tls_ca=endpoint.tls_ca,
    )


def at_cluster(cluster: Cluster, endpoint: EndpointSettings, environment: Mapping[str, str]) -> Provider:
    """The provider for a cluster on Kubernetes, once it is ready.

    It opens a port-forward with the kubeconfig that the provider for Kubernetes uses, unless an address is
    configured (such as that of the ingress). Raises ConfigurationError when nobody can tell the key.
    """
    key = _configured_key(endpoint) or cluster.api_key
    if key is None and not environment.get("QDRANT_API_KEY"):
        raise ConfigurationError(
            "comemory:endpoint.api_key: the cluster takes its keys from an existing Secret, which this program "
            "does not read; set QDRANT_API_KEY to the key with all rights, or give it here as a secret"
        )
    if endpoint.url:
        return Provider(
            "qdrant", url=endpoint.url, api_key=key, timeout=endpoint.timeout, tls_ca=endpoint.tls_ca or cluster.ca
        )
    forward: dict[str, Any] = {"service": cluster.ready, "namespace": cluster.namespace, **kubernetes_access()}
    return Provider(
        "qdrant",
        url=cluster.url,
        api_key=key,
        timeout=endpoint.timeout,
        tls_ca=endpoint.tls_ca or cluster.ca,
        kubernetes=forward,
    )


def kubernetes_access() -> dict[str, str]:
    """`kubeconfig` and `context` as the provider for Kubernetes has them configured; empty for the defaults."""
    config = pulumi.Config("kubernetes")
    found = {name: config.get(name) for name in ("kubeconfig", "context")}
    return {name: value for name, value in found.items() if value is not None}


def _configured_key(endpoint: EndpointSettings) -> pulumi.Output[str] | None:
    # A key of the environment is left there: the provider reads it itself, and no state file holds it.
    return pulumi.Output.secret(endpoint.api_key.get_secret_value()) if endpoint.api_key else None
