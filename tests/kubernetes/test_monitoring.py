"""Monitors, rules and dashboards on a control plane that knows the kinds of the Prometheus operator."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulumi

from infra.components.monitoring.component import Monitoring
from infra.components.monitoring.scraping import Target
from infra.components.monitoring.settings import MonitoringSettings
from tests.support.control_plane import ControlPlane
from tests.support.kubernetes_stack import KubernetesStack


def declared(namespace: str, **values: Any) -> Callable[[pulumi.ResourceOptions], None]:
    settings = MonitoringSettings.model_validate({"cluster": "prod", **values})

    def program(options: pulumi.ResourceOptions) -> None:
        Monitoring(
            "monitoring",
            settings,
            namespace=namespace,
            qdrant=Target(
                namespace=namespace,
                labels={"app.kubernetes.io/name": "qdrant"},
                port="http",
                tls=True,
                token=("qdrant-keys", "read-only-api-key"),
                ca=("secret", "qdrant-tls", "ca.crt"),
                server_name=f"qdrant.{namespace}.svc",
            ),
            daemon=Target(
                namespace=namespace,
                labels={"app.kubernetes.io/name": "comemory-daemon"},
                port="metrics",
                token=("comemory-daemon", "metrics-token"),
            ),
            opts=options,
        )

    return program


def test_monitors_rules_and_dashboards_are_made_and_each_can_be_off(
    kubernetes: ControlPlane, namespace: str, stack: Callable[..., KubernetesStack]
) -> None:
    operator = f"/apis/monitoring.coreos.com/v1/namespaces/{namespace}"
    maps = f"/api/v1/namespaces/{namespace}/configmaps?labelSelector=grafana_dashboard%3D1"
    own = {"prefix": "vec_", "jobs": "vectors", "memory": "2Gi"}
    deployed = stack(declared(namespace, rules={"labels": {"release": "prometheus"}}, qdrant=own))
    deployed.up()
    (pods,) = kubernetes.items(f"{operator}/podmonitors")
    assert pods["spec"]["podMetricsEndpoints"][0]["scheme"] == "https"
    (service,) = kubernetes.items(f"{operator}/servicemonitors")
    credentials = service["spec"]["endpoints"][0]["authorization"]["credentials"]
    assert credentials == {"name": "comemory-daemon", "key": "metrics-token"}
    (rules,) = kubernetes.items(f"{operator}/prometheusrules")
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    assert [rule for group in rules["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    text = json.dumps(rules["spec"])
    assert "vec_memory_resident_bytes" in text and 'job=~\\"vectors\\"' in text and str(2 * 1024**3) in text
    boards = kubernetes.items(maps)
    assert any("vec_app_info" in text for one in boards for text in one["data"].values())
    assert len(boards) >= 4
    assert all(json.loads(text)["panels"] for one in boards for text in one["data"].values())
    assert {one["metadata"]["annotations"]["grafana_folder"] for one in boards} == {"Co-Memory"}
    assert set(deployed.preview()) == {"same"}

    off = {"monitors": {"kind": "none"}, "rules": {"enabled": False}, "dashboards": {"enabled": False}}
    deployed.program = declared(namespace, **off)
    deployed.up()
    assert not kubernetes.items(maps)
    kinds = ("podmonitors", "servicemonitors", "prometheusrules")
    assert not [kind for kind in kinds if kubernetes.items(f"{operator}/{kind}")]
