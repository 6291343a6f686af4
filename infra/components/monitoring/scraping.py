"""What is scraped, and how the Prometheus operator is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from infra.components.monitoring.settings import MonitoringSettings

METRICS = "/metrics"


@dataclass(frozen=True)
class Target:
    """Pods or a service with metrics.

    Args:
        namespace: Where they are.
        labels: What selects them.
        port: Name of the port.
        tls: Whether they speak https.
        token: Secret of that namespace and its entry, sent as bearer token; None where nothing is asked for.
        ca: The authority: `secret` or `configMap`, name and entry, in that namespace; None is the system's.
        server_name: Name that the certificate is checked against; pods are scraped by their addresses.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    port: str
    tls: bool = False
    token: tuple[pulumi.Input[str], str] | None = None
    ca: tuple[str, pulumi.Input[str], str] | None = None
    server_name: pulumi.Input[str] | None = None


def pod_monitor(settings: MonitoringSettings, target: Target) -> dict[str, Any]:
    """Specification of a PodMonitor: every pod on its own, ready or not."""
    return {
        "selector": {"matchLabels": dict(target.labels)},
        "podMetricsEndpoints": [_endpoint(settings, target)],
    }


def service_monitor(settings: MonitoringSettings, target: Target) -> dict[str, Any]:
    """Specification of a ServiceMonitor."""
    return {"selector": {"matchLabels": dict(target.labels)}, "endpoints": [_endpoint(settings, target)]}


def pod_annotations(settings: MonitoringSettings, port: int, *, tls: bool) -> dict[str, str]:
    """Annotations for a pod, where Prometheus finds its targets by them; none otherwise.

    They cannot carry a token: such a Prometheus needs it in its own scrape configuration.
    """
    if settings.monitors.kind != "annotations":
        return {}
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port),
        "prometheus.io/path": METRICS,
        "prometheus.io/scheme": "https" if tls else "http",
    }


def _endpoint(settings: MonitoringSettings, target: Target) -> dict[str, Any]:
    found: dict[str, Any] = {
        "port": target.port,
        "path": METRICS,
        "interval": settings.monitors.interval,
        "scrapeTimeout": settings.monitors.timeout,
    }
    if target.tls:
        tls: dict[str, Any] = {}
        if target.ca is not None:
            kind, name, key = target.ca
            tls["ca"] = {kind: {"name": name, "key": key}}
        if target.server_name is not None:
            tls["serverName"] = target.server_name
        found |= {"scheme": "https", "tlsConfig": tls}
    if target.token is not None:
        secret, key = target.token
        found["authorization"] = {"type": "Bearer", "credentials": {"name": secret, "key": key}}
    if settings.cluster is not None:
        found["relabelings"] = [{"action": "replace", "targetLabel": "cluster", "replacement": settings.cluster}]
    return found
