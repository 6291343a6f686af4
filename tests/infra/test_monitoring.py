"""What Prometheus and Grafana are told: monitors, rules, dashboards."""

from __future__ import annotations

import json

import pytest
import yaml
from pydantic import ValidationError

from infra.components.monitoring.component import _boards, rule_groups
from infra.components.monitoring.scraping import Target, pod_annotations, pod_monitor, service_monitor
from infra.components.monitoring.settings import DashboardsSettings, MonitoringSettings

LABELS = {"app.kubernetes.io/name": "qdrant"}
QDRANT = Target(
    namespace="memory",
    labels=LABELS,
    port="http",
    tls=True,
    token=("qdrant-keys", "read-only-api-key"),
    ca=("secret", "qdrant-tls", "ca.crt"),
    server_name="qdrant.memory.svc",
)


def test_each_pod_of_qdrant_is_scraped_by_https_with_the_key_that_only_reads():
    spec = pod_monitor(MonitoringSettings(cluster="prod"), QDRANT)
    assert spec["selector"] == {"matchLabels": LABELS}
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "qdrant-tls", "key": "ca.crt"}},
        "serverName": "qdrant.memory.svc",
    }
    assert endpoint["authorization"]["credentials"] == {"name": "qdrant-keys", "key": "read-only-api-key"}
    assert endpoint["relabelings"] == [{"action": "replace", "targetLabel": "cluster", "replacement": "prod"}]


def test_without_key_and_certificate_nothing_of_them_is_said():
    spec = service_monitor(MonitoringSettings(), Target(namespace="memory", labels=LABELS, port="metrics"))
    assert spec["endpoints"] == [{"port": "metrics", "path": "/metrics", "interval": "30s", "scrapeTimeout": "10s"}]


def test_a_plain_prometheus_finds_pods_by_annotations():
    plain = MonitoringSettings.model_validate({"monitors": {"kind": "annotations"}})
    assert pod_annotations(plain, 6333, tls=True) == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "6333",
        "prometheus.io/path": "/metrics",
        "prometheus.io/scheme": "https",
    }
    assert pod_annotations(MonitoringSettings(), 6333, tls=True) == {}


def test_rules_are_those_of_the_dashboards_with_the_installations_runbooks():
    settings = MonitoringSettings.model_validate({"rules": {"runbooks": "https://wiki.example/runbooks"}})
    groups = rule_groups(settings)
    alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    assert alerts
    assert all(one["annotations"]["runbook_url"].startswith("https://wiki.example/runbooks/") for one in alerts)
    without = rule_groups(MonitoringSettings.model_validate({"rules": {"alerts": False}}))
    assert without and not [rule for group in without for rule in group["rules"] if "alert" in rule]
    yaml.safe_dump(groups)


@pytest.mark.parametrize("board", _boards(), ids=lambda path: path.stem)
def test_a_dashboard_fits_into_a_config_map(board):
    assert len(json.dumps(json.loads(board.read_text()))) < 1024 * 1024


def test_there_are_dashboards():
    assert len(_boards()) >= 4


def test_an_interval_is_one_that_prometheus_reads():
    with pytest.raises(ValidationError, match="interval"):
        MonitoringSettings.model_validate({"monitors": {"interval": "soon"}})
    assert DashboardsSettings().label == "grafana_dashboard"
