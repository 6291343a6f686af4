"""Services, ingress, and the network policy: by which names the cluster is reached, and by whom."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from infra.components.qdrant_cluster.configuration import GRPC_PORT, HTTP_PORT, PEER_PORT
from infra.components.qdrant_cluster.labels import selector
from infra.components.qdrant_cluster.settings import Peer, QdrantClusterSettings

DNS_PORT = 53
_CLIENT_PORTS = (("http", HTTP_PORT), ("grpc", GRPC_PORT))
Peers = list[dict[str, Any]]


def client_service(settings: QdrantClusterSettings) -> dict[str, Any]:
    """The service that clients use: pods that are ready."""
    return {
        "type": settings.service.type,
        "selector": selector(settings),
        "ports": [_port(name, number) for name, number in _CLIENT_PORTS],
    }


def headless_service(settings: QdrantClusterSettings) -> dict[str, Any]:
    """The service that gives each pod a name, ready or not: a pod has to find its peers to become ready."""
    return {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": selector(settings),
        "ports": [_port(name, number) for name, number in (*_CLIENT_PORTS, ("p2p", PEER_PORT))],
    }


def ingress(settings: QdrantClusterSettings) -> dict[str, Any] | None:
    """The way in from outside, to REST; None when there is none."""
    if (wanted := settings.ingress) is None:
        return None
    backend = {"service": {"name": settings.name, "port": {"name": "http"}}}
    spec: dict[str, Any] = {
        "rules": [
            {"host": wanted.host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        ]
    }
    if wanted.class_name:
        spec["ingressClassName"] = wanted.class_name
    if wanted.tls_secret:
        spec["tls"] = [{"hosts": [wanted.host], "secretName": wanted.tls_secret}]
    return spec


def network_policy(settings: QdrantClusterSettings) -> dict[str, Any]:
    """Clients to REST and gRPC, monitoring to REST, peers to every port, nobody else.

    Peers need REST, too: one that is given a shard fetches its snapshot from the other's REST interface. The probes
    come from the node itself, which a policy cannot keep out.
    """
    peers: Peers = [{"podSelector": {"matchLabels": selector(settings)}}]
    peer_ports = _ports(HTTP_PORT, GRPC_PORT, PEER_PORT)
    spec: dict[str, Any] = {
        "podSelector": {"matchLabels": selector(settings)},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"from": _clients(settings), "ports": _ports(HTTP_PORT, GRPC_PORT)},
            {"from": peers, "ports": peer_ports},
        ],
    }
    if settings.network.monitoring:
        spec["ingress"].append(
            {"from": [_peer(one) for one in settings.network.monitoring], "ports": _ports(HTTP_PORT)}
        )
    if settings.network.restrict_egress:
        spec["policyTypes"].append("Egress")
        spec["egress"] = [
            {"to": peers, "ports": peer_ports},
            {"ports": [{"port": DNS_PORT, "protocol": protocol} for protocol in ("UDP", "TCP")]},
        ]
        if settings.storage.s3:
            spec["egress"].append({"ports": _ports(*_bucket_ports(settings.storage.s3.endpoint))})
    return spec


def _clients(settings: QdrantClusterSettings) -> Peers:
    labelled: Peers = [{"podSelector": {"matchLabels": settings.client_labels}}]
    if settings.network.client_namespaces is not None:
        labelled.append(
            {
                "podSelector": {"matchLabels": settings.client_labels},
                "namespaceSelector": {"matchLabels": settings.network.client_namespaces},
            }
        )
    return [*labelled, *(_peer(one) for one in settings.network.clients)]


def _peer(peer: Peer) -> dict[str, Any]:
    found: dict[str, Any] = {"podSelector": {"matchLabels": peer.pod_labels}}
    if peer.namespace_labels is not None:
        found["namespaceSelector"] = {"matchLabels": peer.namespace_labels}
    return found


def _bucket_ports(endpoint: str | None) -> tuple[int, ...]:
    if endpoint is None:
        return (443,)
    parts = urlsplit(endpoint)
    return (parts.port or (443 if parts.scheme == "https" else 80),)


def _port(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "port": number, "targetPort": name, "protocol": "TCP"}


def _ports(*numbers: int) -> list[dict[str, Any]]:
    return [{"port": number, "protocol": "TCP"} for number in numbers]
