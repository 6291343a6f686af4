"""Monitoring on Kubernetes: what a person may set (`settings`), what is scraped and how (`scraping`), and the
component that makes monitors, rules and dashboards of it.
"""

from infra.components.monitoring.component import Monitoring
from infra.components.monitoring.scraping import Target, pod_annotations
from infra.components.monitoring.settings import MonitoringSettings

__all__ = ["Monitoring", "MonitoringSettings", "Target", "pod_annotations"]
