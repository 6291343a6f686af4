"""What Prometheus and Grafana are told: monitors, rules, dashboards."""

from __future__ import annotations

import json
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from dashboards.build import GENERATED, texts
from dashboards.settings import DashboardSettings
from infra.components.monitoring.component import boards, rule_groups
from infra.components.monitoring.scraping import Target, pod_annotations, pod_monitor, service_monitor
from infra.components.monitoring.settings import DashboardsSettings, MonitoringSettings
from infra.components.qdrant_cluster.configuration import metrics_prefix
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from tests.support.prometheus import programs

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


OTHER = {
    "qdrant": {"prefix": "vec_", "jobs": "vectors|db[.]memory", "memory": "2Gi"},
    "rules": {"runbooks": "https://w"},
}


def monitoring(**values: Any) -> MonitoringSettings:
    return MonitoringSettings.model_validate(values)


@pytest.mark.parametrize("values", [{}, OTHER], ids=["as it is", "another prefix and job"])
def test_a_dashboard_fits_into_a_config_map(values: dict[str, Any]):
    made = boards(monitoring(**values).installed())
    assert len(made) >= 4
    assert all(len(json.dumps(json.loads(text))) < 1024 * 1024 for text in made.values())


def test_whatever_the_generator_can_be_told_the_component_can_be_told():
    installed = monitoring(**OTHER).installed()
    assert installed == DashboardSettings("vec_", "vectors|db[.]memory", "https://w", 2 * 1024**3)
    usual = DashboardSettings()
    assert [one.name for one in fields(usual) if getattr(usual, one.name) == getattr(installed, one.name)] == []
    assert monitoring().installed() == usual


def test_rules_and_dashboards_are_the_generators_with_what_is_set():
    installed = monitoring(**OTHER).installed()
    made = texts(installed)
    assert boards(installed) == {name: text for name, text in made.items() if name.endswith(".json")}
    assert "vec_app_info" in boards(installed)["comemory-qdrant.json"]
    assert "vectors|db[.]memory" in boards(installed)["comemory-qdrant.json"]
    recorded, alerts = (yaml.safe_load(made[f"{kind}-rules.yaml"])["groups"] for kind in ("recording", "alert"))
    assert rule_groups(monitoring(**OTHER)) == [*recorded, *alerts]
    assert set(boards(DashboardSettings())) == {path.name for path in GENERATED.glob("*.json")}


def test_the_cluster_tells_what_it_knows_of_itself_and_what_is_given_goes_first():
    known = monitoring().qdrant.completed("vec_", 2048)
    assert (known.prefix, known.memory, known.jobs) == ("vec_", "2048", ".*qdrant.*")
    given = monitoring(qdrant={"prefix": "", "memory": "1Gi"}).qdrant.completed("vec_", 2048)
    assert (given.prefix, given.memory) == ("", "1Gi")
    assert monitoring().qdrant.completed("", None).memory is None


@pytest.mark.parametrize(
    ("cluster", "prefix"),
    [
        ({}, ""),
        ({"configuration": {"service": {"metrics_prefix": "vec_"}}}, "vec_"),
        ({"configuration": {"Service": {"Metrics_Prefix": "vec_"}}}, "vec_"),
        ({"configuration": {"service": {"metrics_prefix": None}}}, ""),
        ({"environment": [{"name": "qdrant__service__metrics_prefix", "value": "env_"}],
          "configuration": {"service": {"metrics_prefix": "vec_"}}}, "env_"),
    ],
)  # fmt: skip
def test_the_clusters_prefix_is_found_as_qdrant_reads_it(cluster: dict[str, Any], prefix: str):
    assert metrics_prefix(QdrantClusterSettings.model_validate(cluster)) == prefix


@pytest.mark.parametrize(
    ("key", "value"),
    [("prefix", "a-b"), ("prefix", '"'), ("prefix", "1_"), ("jobs", 'a"} or vector(1) #'), ("jobs", "a\\d"),
     ("jobs", "("), ("jobs", ""), ("jobs", "a\nb"), ("memory", "2GB"), ("memory", "0")],
)  # fmt: skip
def test_what_would_break_every_rule_is_refused_by_its_key(key: str, value: str):
    with pytest.raises(ValidationError) as told:
        monitoring(qdrant={key: value})
    assert told.value.errors()[0]["loc"] == ("qdrant", key)


def test_promtool_takes_the_rules_and_one_pod_raises_one_alert(tmp_path: Path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": rule_groups(monitoring(**OTHER))}))
    where = 'namespace="n", pod="p"'
    full = {
        f'vec_memory_resident_bytes{{job="vectors", instance="1:6333", {where}}}': 2.0e9,
        'vec_memory_resident_bytes{job="db.memory", instance="2:6333"}': 2.1e9,
        'vec_memory_resident_bytes{job="dbxmemory", instance="3:6333"}': 2.1e9,
        'memory_resident_bytes{job="vectors", instance="4:6333"}': 2.1e9,
        f'up{{job="vectors", instance="1:6333", {where}}}': 1,
        f'container_memory_working_set_bytes{{container="qdrant", {where}}}': 2.0e9,
        f'kube_pod_container_resource_limits{{container="qdrant", resource="memory", {where}}}': 2 * 1024**3,
    }
    firing = 'count by (pod, instance) (ALERTS{alertname="ComemoryQdrantMemoryNearLimit", alertstate="firing"})'
    expected = [{"labels": '{pod="p"}', "value": 1}, {"labels": '{instance="2:6333"}', "value": 1}]
    case = {
        "interval": "1m",
        "input_series": [{"series": key, "values": f"{value}x40"} for key, value in full.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": "30m", "exp_samples": expected}],
    }
    test = tmp_path / "test.yaml"
    test.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [case]}))
    said = subprocess.run([programs().promtool, "test", "rules", test], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_an_interval_is_one_that_prometheus_reads():
    with pytest.raises(ValidationError, match="interval"):
        MonitoringSettings.model_validate({"monitors": {"interval": "soon"}})
    assert DashboardsSettings().label == "grafana_dashboard"
