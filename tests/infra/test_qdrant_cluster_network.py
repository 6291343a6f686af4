"""The network policy, judged by who gets through it; services and ingress by where they lead."""

from __future__ import annotations

from typing import Any

import pytest

from infra.components.qdrant_cluster.labels import selector
from infra.components.qdrant_cluster.network import client_service, headless_service, ingress, network_policy
from infra.components.qdrant_cluster.settings import QdrantClusterSettings

OWN, OTHER = {"kubernetes.io/metadata.name": "memory"}, {"kubernetes.io/metadata.name": "other"}
CLIENT = {"qdrant-client": "true"}
PROMETHEUS = {"app.kubernetes.io/name": "prometheus"}


def settings(**keys: Any) -> QdrantClusterSettings:
    return QdrantClusterSettings.model_validate(keys)


def _has(labels: dict[str, str], wanted: dict[str, Any] | None) -> bool:
    return wanted is not None and wanted.get("matchLabels", {}).items() <= labels.items()


def _peer(peer: dict[str, Any], pod: dict[str, str], namespace: dict[str, str]) -> bool:
    """What Kubernetes makes of a peer: without a namespace selector only pods of the policy's own namespace."""
    spaces = peer.get("namespaceSelector")
    there = namespace == OWN if spaces is None else _has(namespace, spaces)
    return there and ("podSelector" not in peer or _has(pod, peer["podSelector"]))


def _through(rules: list[dict[str, Any]], side: str, pod: dict[str, str], namespace: dict[str, str]) -> set[int]:
    found: set[int] = set()
    for rule in rules:
        if side not in rule or any(_peer(peer, pod, namespace) for peer in rule[side]):
            found |= {port["port"] for port in rule["ports"]}
    return found


def reached(policy: dict[str, Any], pod: dict[str, str], namespace: dict[str, str] = OWN) -> set[int]:
    assert "Ingress" in policy["policyTypes"]
    return _through(policy["ingress"], "from", pod, namespace)


def left(policy: dict[str, Any], pod: dict[str, str], namespace: dict[str, str] = OWN) -> set[int]:
    assert "Egress" in policy["policyTypes"]
    return _through(policy["egress"], "to", pod, namespace)


def test_clients_peers_and_monitoring_get_in_and_nobody_else() -> None:
    made = settings()
    policy = network_policy(made)
    assert policy["podSelector"]["matchLabels"] == selector(made)
    assert reached(policy, CLIENT) == {6333, 6334}
    assert reached(policy, selector(made)) == {6333, 6334, 6335}
    assert reached(policy, PROMETHEUS, OTHER) == {6333}
    for pod, namespace in (({}, OWN), (CLIENT, OTHER), (selector(made), OTHER), ({"app": "x"}, OTHER)):
        assert reached(policy, pod, namespace) == set()
    assert reached(policy, {**selector(made), "app.kubernetes.io/instance": "another"}) == set()


def test_further_clients_and_namespaces_are_let_in_as_named() -> None:
    controller = {"app": "ingress"}
    policy = network_policy(
        settings(
            network={
                "client_label": "may-ask",
                "client_namespaces": OTHER,
                "clients": [{"pod_labels": controller, "namespace_labels": {}}],
                "monitoring": [],
            }
        )
    )
    assert reached(policy, {"may-ask": "true"}) == reached(policy, {"may-ask": "true"}, OTHER) == {6333, 6334}
    assert reached(policy, {"may-ask": "true"}, {"another": "one"}) == set()
    assert reached(policy, controller, {"any": "one"}) == {6333, 6334}
    assert reached(policy, CLIENT) == reached(policy, PROMETHEUS, OTHER) == set()


@pytest.mark.parametrize(
    ("storage", "port"),
    [
        ({}, set()),
        ({"s3": {"bucket": "b"}}, {443}),
        ({"s3": {"bucket": "b", "endpoint": "http://minio:9000"}}, {9000}),
        ({"s3": {"bucket": "b", "endpoint": "http://minio"}}, {80}),
    ],
)
def test_pods_reach_each_other_names_and_the_bucket_alone(storage: dict[str, Any], port: set[int]) -> None:
    made = settings(storage=storage)
    policy = network_policy(made)
    assert left(policy, selector(made)) == {6333, 6334, 6335, 53} | port
    assert left(policy, {"app": "x"}, OTHER) == {53} | port


def test_egress_may_be_left_open() -> None:
    assert network_policy(settings(network={"restrict_egress": False}))["policyTypes"] == ["Ingress"]


def test_peers_find_each_other_before_they_are_ready_and_clients_only_what_is_ready() -> None:
    made = settings(service={"type": "LoadBalancer"})
    headless, clients = headless_service(made), client_service(made)
    assert headless["clusterIP"] == "None" and headless["publishNotReadyAddresses"] is True
    assert {port["port"] for port in headless["ports"]} == {6333, 6334, 6335}
    assert clients["type"] == "LoadBalancer" and "publishNotReadyAddresses" not in clients
    assert {port["port"] for port in clients["ports"]} == {6333, 6334}


def test_the_way_in_from_outside_leads_to_rest() -> None:
    assert ingress(settings()) is None
    spec = ingress(settings(ingress={"host": "q.example", "class_name": "nginx", "tls_secret": "t"})) or {}
    (rule,) = spec["rules"]
    assert rule["host"] == "q.example"
    assert rule["http"]["paths"][0]["backend"]["service"] == {"name": "qdrant", "port": {"name": "http"}}
    assert spec["ingressClassName"] == "nginx" and spec["tls"] == [{"hosts": ["q.example"], "secretName": "t"}]
