"""Every recorded series on the real promtool: its value, and that it is of the daemon that holds the lease."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from dashboards import rules
from dashboards.settings import DashboardSettings
from tests.support.prometheus import programs

STANDBY = 'cluster="c", job="comemory", instance="standby"'
TWIN = 'cluster="c", job="comemory", instance="twin"'
GONE = 'cluster="c", job="comemory", instance="gone"'
OURS = 'cluster="c", job="comemory", instance="i"'
QDRANT = 'cluster="c", job="qdrant", instance="q"'

INPUT = {
    f"comemory_lease_held{{{OURS}}}": "1x30",
    f"comemory_lease_held{{{STANDBY}}}": "0x30",
    f'comemory_points{{{OURS}, collection="a", tenant_id="t_a", scope="docs"}}': "10x30",
    f'comemory_points{{{OURS}, collection="a", tenant_id="t_b", scope="docs"}}': "20x30",
    f'comemory_points{{{OURS}, collection="b", tenant_id="t_b", scope="memory"}}': "5x30",
    f'comemory_points{{{STANDBY}, collection="a", tenant_id="t_a", scope="docs"}}': "999x30",
    f'comemory_collection_points{{{OURS}, collection="a"}}': "30x30",
    f'comemory_collection_points{{{OURS}, collection="b"}}': "5x30",
    f'comemory_expired_points{{{OURS}, collection="a", tenant_id="t_a", scope="docs"}}': "3x30",
    f'comemory_expired_points{{{OURS}, collection="a", tenant_id="t_b", scope="docs"}}': "4x30",
    f'comemory_expired_oldest_age_seconds{{{OURS}, collection="a"}}': "60x30",
    f'comemory_expired_oldest_age_seconds{{{OURS}, collection="b"}}': "0x30",
    f'comemory_duplicate_points{{{OURS}, collection="a", tenant_id="t_a", scope="docs"}}': "2x30",
    f'comemory_duplicate_points{{{OURS}, collection="a", tenant_id="t_a", scope="memory"}}': "6x30",
    f'comemory_invalid_points{{{OURS}, collection="a", tenant_id="t_a", reason="x.y"}}': "1x30",
    f'comemory_invalid_points{{{OURS}, collection="a", tenant_id="t_b", reason="x.y"}}': "2x30",
    f'comemory_invalid_points{{{OURS}, collection="a", tenant_id="t_b", reason="x.z"}}': "7x30",
    f'comemory_schema_drift{{{OURS}, collection="a", kind="index_missing"}}': "2x30",
    f'comemory_schema_drift{{{STANDBY}, collection="a", kind="index_missing"}}': "9x30",
    # another that works, too, since there is no lease, counts the same
    f"comemory_lease_held{{{TWIN}}}": "1x30",
    f'comemory_points{{{TWIN}, collection="a", tenant_id="t_a", scope="docs"}}': "10x30",
    f'comemory_collection_points{{{TWIN}, collection="a"}}': "30x30",
    f'comemory_expired_points{{{TWIN}, collection="a", tenant_id="t_a", scope="docs"}}': "3x30",
    f'comemory_expired_oldest_age_seconds{{{TWIN}, collection="a"}}': "60x30",
    f'comemory_duplicate_points{{{TWIN}, collection="a", tenant_id="t_a", scope="docs"}}': "2x30",
    f'comemory_invalid_points{{{TWIN}, collection="a", tenant_id="t_a", reason="x.y"}}': "1x30",
    f'comemory_schema_drift{{{TWIN}, collection="a", kind="index_missing"}}': "2x30",
    # counters and times are of all daemons: what a former leader did was done
    f'comemory_deleted_points_total{{{OURS}, job_name="ttl", collection="a", tenant_id="t_a", scope="docs"}}':
        "0+60x30",
    f'comemory_deleted_points_total{{{STANDBY}, job_name="ttl", collection="a", tenant_id="t_b", scope="docs"}}':
        "0+120x30",
    f'comemory_job_last_success_timestamp_seconds{{{OURS}, job_name="dedup"}}': "900x30",
    f'comemory_job_last_success_timestamp_seconds{{{STANDBY}, job_name="dedup"}}': "300x30",
    f'comemory_job_last_success_timestamp_seconds{{{GONE}, job_name="dedup"}}': "950x5 _x30",
    f'comemory_job_interval_seconds{{{OURS}, job_name="dedup"}}': "21600x30",
    f'comemory_job_interval_seconds{{{OURS}, job_name="census"}}': "60x30",
    f'comemory_job_interval_seconds{{{TWIN}, job_name="census"}}': "60x30",
    f'rest_responses_total{{{QDRANT}, method="POST", endpoint="/x", status="200"}}': "0+60x30",
    f'rest_responses_total{{{QDRANT}, method="GET", endpoint="/x", status="200"}}': "0+30x30",
    'rest_responses_total{cluster="c", job="other", endpoint="/x", status="200"}': "0+600x30",
    f'rest_responses_duration_seconds_bucket{{{QDRANT}, endpoint="/x", status="200", le="0.1"}}': "0+98x30",
    f'rest_responses_duration_seconds_bucket{{{QDRANT}, endpoint="/x", status="200", le="0.3"}}': "0+100x30",
    f'rest_responses_duration_seconds_bucket{{{QDRANT}, endpoint="/x", status="200", le="+Inf"}}': "0+100x30",
}  # fmt: skip

EXPECTED: dict[rules.Recorded, dict[tuple[str, ...], float]] = {
    rules.CLUSTER_POINTS: {(): 35},
    rules.COLLECTION_POINTS: {("a",): 30, ("b",): 5},
    rules.TENANT_POINTS: {("t_a",): 10, ("t_b",): 25},
    rules.EXPIRED: {("a",): 7, ("b",): 0},
    rules.EXPIRED_AGE: {("a",): 60, ("b",): 0},
    rules.DUPLICATES: {("a",): 8, ("b",): 0},
    rules.INVALID: {("a", "x.y"): 3, ("a", "x.z"): 7},
    rules.DRIFT: {("a", "index_missing"): 2},
    rules.DELETED: {("a", "ttl"): 3},
    rules.LAST_SUCCESS: {("dedup",): 950},
    rules.STALE_AFTER: {("dedup",): 2 * 21600 + 3600, ("census",): 2 * 60 + 600},
    rules.QDRANT_REQUESTS: {("/x", "200"): 1.5},
    rules.QDRANT_P99: {(): 0.2},
}
"""By the values of the labels besides `cluster` and `job`."""


def test_every_recorded_series_has_the_value_that_its_input_makes(tmp_path: Path) -> None:
    assert set(EXPECTED) == set(rules.RECORDED)
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": rules.groups(DashboardSettings())}))
    asked = []
    for recorded, values in EXPECTED.items():
        job = "qdrant" if recorded in (rules.QDRANT_REQUESTS, rules.QDRANT_P99) else "comemory"
        samples = []
        for labels, value in values.items():
            named = {"cluster": "c", "job": job, **dict(zip(recorded.labels, labels, strict=True))}
            inner = ", ".join(f'{name}="{text}"' for name, text in named.items())
            samples.append({"labels": f"{recorded.name}{{{inner}}}", "value": value})
        asked.append({"expr": recorded.name, "eval_time": "20m", "exp_samples": samples})
    series = [{"series": name, "values": values} for name, values in INPUT.items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": asked}
    file = tmp_path / "rules.test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}))
    said = subprocess.run([programs().promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
