"""The component `Monitoring`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from dashboards import alerts, rules
from dashboards.settings import DashboardSettings
from infra.components.monitoring.scraping import Target, pod_monitor, service_monitor
from infra.components.monitoring.settings import MonitoringSettings

GENERATED = Path(__file__).resolve().parents[3] / "dashboards" / "generated"
API = "monitoring.coreos.com/v1"


class Monitoring(pulumi.ComponentResource):
    """Monitors, rules and dashboards in a namespace that exists.

    Args:
        name: Name of the component.
        settings: What a person may set.
        namespace: Where rules and dashboards are made; monitors are made beside what they watch.
        qdrant: The cluster's pods; None where it is watched by others.
        daemon: The daemon's service; None where there is none.

    The kinds of the Prometheus operator have to be known to the cluster, unless monitors and rules are off.
    """

    dashboards: tuple[str, ...]
    """Names of the dashboards' ConfigMaps."""

    def __init__(
        self,
        name: str,
        settings: MonitoringSettings,
        *,
        namespace: pulumi.Input[str],
        qdrant: Target | None = None,
        daemon: Target | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("comemory:index:Monitoring", name, None, opts)
        self._name, self._settings, self._namespace = name, settings, namespace
        self._below = pulumi.ResourceOptions(parent=self)
        if settings.monitors.kind == "operator":
            if qdrant is not None:
                # Not by the service: it knows only pods that are ready, and each pod has numbers of its own.
                self._monitor("qdrant", "PodMonitor", qdrant.namespace, pod_monitor(settings, qdrant))
            if daemon is not None:
                self._monitor("daemon", "ServiceMonitor", daemon.namespace, service_monitor(settings, daemon))
        if settings.rules.enabled:
            self._custom(
                "rules", "PrometheusRule", namespace, settings.rules.labels, {"groups": rule_groups(settings)}
            )
        made = boards(settings.installed()) if settings.dashboards.enabled else {}
        self.dashboards = tuple(self._dashboard(file, text) for file, text in made.items())
        self.register_outputs({"dashboards": list(self.dashboards)})

    def _monitor(self, what: str, kind: str, namespace: pulumi.Input[str], spec: dict[str, Any]) -> None:
        self._custom(what, kind, namespace, self._settings.monitors.labels, spec)

    def _custom(
        self,
        what: str,
        kind: str,
        namespace: pulumi.Input[str],
        further: dict[str, str],
        spec: dict[str, Any],
    ) -> None:
        k8s.apiextensions.CustomResource(
            f"{self._name}-{what}",
            api_version=API,
            kind=kind,
            metadata={
                "name": f"{self._settings.name}-{what}",
                "namespace": namespace,
                "labels": {**self._labels(), **further},
            },
            spec=spec,
            opts=self._below,
        )

    def _labels(self) -> dict[str, str]:
        return {
            "app.kubernetes.io/name": "comemory-monitoring",
            "app.kubernetes.io/instance": self._settings.name,
            "app.kubernetes.io/part-of": "comemory",
            "app.kubernetes.io/managed-by": "pulumi",
        }

    def _dashboard(self, file: str, text: str) -> str:
        wanted = self._settings.dashboards
        stem = file.removesuffix(".json")
        made = f"{self._settings.name}-{stem.removeprefix('comemory-')}-dashboard"
        metadata: dict[str, Any] = {
            "name": made,
            "namespace": wanted.namespace or self._namespace,
            "labels": {**self._labels(), wanted.label: wanted.label_value},
        }
        if wanted.folder is not None:
            metadata["annotations"] = {wanted.folder_annotation: wanted.folder}
        k8s.core.v1.ConfigMap(
            f"{self._name}-{stem}",
            metadata=metadata,
            # Its spaces are for people; a ConfigMap has a limit.
            data={file: json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))},
            opts=self._below,
        )
        return made


def rule_groups(settings: MonitoringSettings) -> list[dict[str, Any]]:
    """The groups of rules, with what this installation sets."""
    installed = settings.installed()
    return [*rules.groups(installed), *(alerts.groups(installed) if settings.rules.alerts else ())]


def boards(installed: DashboardSettings) -> dict[str, str]:
    """The dashboards by file name: the committed ones, or others where Qdrant's metrics are found otherwise."""
    usual = DashboardSettings()
    if (installed.qdrant_prefix, installed.qdrant_jobs) == (usual.qdrant_prefix, usual.qdrant_jobs):
        return {file.name: file.read_text(encoding="utf-8") for file in sorted(GENERATED.glob("*.json"))}
    # Grafana's library takes long to import, and most installations have no use for it.
    from dashboards.build import texts  # noqa: PLC0415

    return {name: text for name, text in sorted(texts(installed).items()) if name.endswith(".json")}
