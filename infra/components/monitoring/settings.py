"""What a person may set of the monitoring."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from comemory.specs import Spec
from dashboards.settings import METRIC_PREFIX, DashboardSettings, jobs_expression
from infra.components.qdrant_cluster.settings import Text
from infra.kubernetes_values import Name
from infra.quantity import Quantity, amount

Jobs = Annotated[Text, AfterValidator(jobs_expression)]
Seconds = Annotated[str, StringConstraints(pattern=r"^\d+(ms|s|m|h)$")]


class MonitorsSettings(Spec):
    """Whether and how Prometheus is told what to scrape."""

    kind: Literal["operator", "annotations", "none"] = Field(
        "operator",
        description="`operator`: PodMonitor and ServiceMonitor, for the Prometheus operator; `annotations`: "
        "`prometheus.io/...` on the pods; `none`: nothing, for a Prometheus with jobs of its own.",
    )
    interval: Seconds = Field("30s", description="How often it scrapes.")
    timeout: Seconds = Field("10s", description="How long a scrape may take; at most the interval.")
    labels: dict[str, str] = Field(
        {}, description="Labels that the Prometheus selects monitors by, such as `release: kube-prometheus-stack`."
    )


class RulesSettings(Spec):
    """Recorded series and alerts, as a PrometheusRule of the operator."""

    enabled: bool = Field(True, description="Make them.")
    labels: dict[str, str] = Field({}, description="Labels that the Prometheus selects rules by.")
    runbooks: Text = Field(
        "docs/runbooks", description="Address before `/<alert>.md` in the alerts' `runbook_url`."
    )
    alerts: bool = Field(True, description="The alerts, too. Without them only the series that dashboards need.")


class DashboardsSettings(Spec):
    """Grafana's dashboards, each as a ConfigMap for the sidecar of the Grafana chart."""

    enabled: bool = Field(True, description="Make them.")
    label: Text = Field("grafana_dashboard", description="Label that the sidecar looks for.")
    label_value: str = Field("1", description="Its value.")
    folder: str | None = Field("Co-Memory", description="Folder in Grafana. Null: no annotation.")
    folder_annotation: Text = Field("grafana_folder", description="Annotation that the sidecar reads it from.")
    namespace: Name | None = Field(
        None, description="Namespace for them, where the sidecar looks only there. Default: that of the stack."
    )


class QdrantMetricsSettings(Spec):
    """How rules and dashboards find Qdrant's own metrics."""

    prefix: str | None = Field(
        None,
        pattern=f"^{METRIC_PREFIX.pattern}$",
        description="What Qdrant puts before its metrics (`service.metrics_prefix`). Default: what the cluster's "
        "configuration says, else nothing.",
    )
    jobs: Jobs = Field(
        DashboardSettings().qdrant_jobs,
        description="Regular expression of the whole name of Qdrant's scrape jobs, as its metrics have names that "
        "others use too. The monitor made here is `<namespace>/<name>-qdrant`.",
    )
    memory: Quantity | None = Field(
        None,
        description="Memory that each Qdrant may use, such as 2Gi; an alert compares it where kube-state-metrics "
        "does not tell the container's limit. Default: `resources.memory` of the cluster, else none.",
    )

    def completed(self, prefix: str, memory_bytes: int | None) -> Self:
        """The same, with what the cluster knows where nothing is given."""
        known = {"prefix": prefix, "memory": None if memory_bytes is None else str(memory_bytes)}
        return self.model_copy(update={key: one for key, one in known.items() if getattr(self, key) is None})


class MonitoringSettings(Spec):
    """Monitoring of the cluster and the daemon."""

    name: Annotated[Name, StringConstraints(max_length=40)] = Field(
        "comemory", description="Beginning of the names of its objects."
    )
    cluster: Text | None = Field(
        None, description="Value of the label `cluster`, where one Prometheus sees several installations."
    )
    monitors: MonitorsSettings = Field(MonitorsSettings(), description="What is scraped.")
    qdrant: QdrantMetricsSettings = Field(QdrantMetricsSettings(), description="How Qdrant's metrics are found.")
    rules: RulesSettings = Field(RulesSettings(), description="Recorded series and alerts.")
    dashboards: DashboardsSettings = Field(DashboardsSettings(), description="Dashboards.")

    def installed(self) -> DashboardSettings:
        """It, as rules and dashboards are made with it."""
        qdrant = self.qdrant
        return DashboardSettings(
            qdrant_prefix=qdrant.prefix or "",
            qdrant_jobs=qdrant.jobs,
            runbook_base=self.rules.runbooks,
            qdrant_memory_bytes=None if qdrant.memory is None else int(amount(qdrant.memory)),
        )
