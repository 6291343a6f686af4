"""Every alert on the real promtool: what makes it fire, and that nothing else does."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import alerts, rules
from dashboards.alerts import groups
from dashboards.build import GENERATED, texts, write
from dashboards.settings import DashboardSettings
from dashboards.thresholds import DEFAULTS
from tests.dashboards.cases import CASES, LIMITS, Case
from tests.support.prometheus import programs

FILES = ("recording-rules.yaml", "alert-rules.yaml")
SETTINGS = DashboardSettings(qdrant_memory_bytes=1000)
GROUPS = groups(SETTINGS, LIMITS)
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]


def test_promtool_accepts_the_rules_as_they_are_and_with_everything_set(tmp_path: Path) -> None:
    write(tmp_path, texts(DashboardSettings("qdrant_", "vectors|db[.]memory", "https://w", 8_000_000)))
    said = subprocess.run(
        [programs().promtool, "check", "rules", "--lint-fatal",
         *(folder / name for folder in (GENERATED, tmp_path) for name in FILES)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr


def _batches(cases: list[Case]) -> list[list[Case]]:
    """Cases that can share a run, each in a cluster of its own: no alert fires in two of them, at any time."""
    batches: list[list[Case]] = [[case for case in cases if not case.fires]]
    for case in cases:
        if not case.fires:
            continue
        names = {name for name, *_ in case.fires}
        for batch in batches:
            if not (
                names & {name for other in batch for name, *_ in other.fires}
                or case.alone
                or batch[0].alone
                or batch is batches[0]
            ):
                batch.append(case)
                break
        else:
            batches.append([case])
    return [[case.placed(f"c{n}x{place}") for place, case in enumerate(batch)] for n, batch in enumerate(batches)]


def _selector(**labels: str) -> str:
    return "ALERTS{" + ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "}"


def _unit_test(number: int, batch: list[Case]) -> dict[str, Any]:
    """In each case's cluster its alerts fire and no others, and each has its annotations."""
    firing: list[dict[str, Any]] = []
    described: list[dict[str, Any]] = []
    for place, case in enumerate(batch):
        cluster = "" if case.alone else f', cluster="c{number}x{place}"'
        expected = [
            {"labels": _selector(alertname=name, alertstate="firing", severity=severity, **labels), "value": 1}
            for name, severity, labels, _ in case.fires
        ]
        expression = f'ALERTS{{alertstate="firing"{cluster}}}'
        firing.append({"expr": expression, "eval_time": f"{case.at}m", "exp_samples": expected})
        for name, severity, labels, summary in case.fires:
            annotations = {"summary": summary, **_annotations(name, severity, labels)}
            alert = {"exp_labels": {"severity": severity, **labels}, "exp_annotations": annotations}
            described.append({"eval_time": f"{case.at}m", "alertname": name, "exp_alerts": [alert]})
    return {
        "name": ", ".join(case.about for case in batch),
        "interval": "1m",
        "input_series": [
            {"series": name, "values": values} for case in batch for name, values in case.series.items()
        ],
        "promql_expr_test": firing,
        "alert_rule_test": described,
    }


def _annotations(name: str, severity: str, labels: dict[str, str]) -> dict[str, str]:
    """The annotations without a template, from the rule."""
    job = labels.get("job_name")
    rule = next(
        r for r in RULES
        if r["alert"] == name and r["labels"]["severity"] == severity and r["labels"].get("job_name") in (None, job)
    )  # fmt: skip
    return {key: value for key, value in rule["annotations"].items() if key != "summary"}


def _run(folder: Path, tests: list[dict[str, Any]]) -> str:
    file, made = folder / "alerts.test.yaml", folder / "rules.yaml"
    groups = rules.groups(SETTINGS, LIMITS) + GROUPS
    made.write_text(yaml.safe_dump({"groups": groups}))
    content = {
        "rule_files": [str(made)],
        "evaluation_interval": "1m",
        # Without an order promtool takes any: an alert then sees this minute's recorded series, or the last one's.
        "group_eval_order": [group["name"] for group in groups],
        "tests": tests,
    }
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    said = subprocess.run([programs().promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    return "" if said.returncode == 0 else said.stdout + said.stderr


def test_each_case_fires_what_it_should_and_nothing_else(tmp_path: Path) -> None:
    failed = _run(tmp_path, [_unit_test(n, batch) for n, batch in enumerate(_batches(CASES))])
    assert not failed, failed


def test_promtool_would_notice(tmp_path: Path) -> None:
    """The way of asking is not blind: a case with an alert too few or too many fails."""
    placed = next(case for case in CASES if case.fires and not case.alone).placed("c0x0")
    right = _unit_test(0, [placed])
    too_few = {**right, "promql_expr_test": [{**right["promql_expr_test"][0], "exp_samples": []}]}
    other_text = _unit_test(0, [replace(placed, fires=[(*placed.fires[0][:3], "other")])])
    too_many = _unit_test(0, [replace(placed, at=1)])
    assert [bool(_run(tmp_path, [test])) for test in (right, too_few, other_text, too_many)] == [
        False, True, True, True
    ]  # fmt: skip


def test_every_rule_is_made_to_fire_by_a_case() -> None:
    fired = {(name, severity, labels.get("job_name")) for c in CASES for name, severity, labels, _ in c.fires}
    fired |= {(name, severity, None) for name, severity, _ in fired}  # where the label is the series'
    wanted = {(r["alert"], r["labels"]["severity"], r["labels"].get("job_name")) for r in RULES}
    assert wanted <= fired
    assert {name for name, *_ in fired} == {name for name, *_ in wanted}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r['alert']}-{r['labels']['severity']}-{r['for']}")
def test_every_rule_has_what_it_needs(rule: dict[str, Any]) -> None:
    assert rule["alert"].startswith(alerts.PREFIX)
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"].endswith(f"/{rule['alert']}.md")
    assert all(text.endswith((".", ".md")) for text in rule["annotations"].values())


def test_recorded_series_have_level_metric_operation_and_are_used_or_shown() -> None:
    made = [rule["record"] for group in rules.groups(DashboardSettings()) for rule in group["rules"]]
    assert made == [recorded.name for recorded in rules.RECORDED]
    assert all(name.count(":") == 2 and all(name.split(":")) for name in made)


def test_settings_reach_the_rules() -> None:
    settings = DashboardSettings("qdrant_", "vectors", "https://docs.example/runbooks/", 8_000_000)
    text = yaml.safe_dump({"groups": groups(settings) + rules.groups(settings)}, width=10_000)
    assert 'qdrant_collection_dead_replicas{job=~"vectors"}' in text
    assert 'qdrant_rest_responses_total{job=~"vectors"}' in text
    assert "https://docs.example/runbooks/ComemoryQdrantDown.md" in text
    assert '(qdrant_memory_resident_bytes{job=~"vectors"} / 8000000 unless on' in text
    assert "comemory_points" in text
    assert "qdrant_comemory" not in text
    assert "qdrant_up" not in text.replace("comemory_qdrant_up", "")


def test_hurried_thresholds_divide_times_only() -> None:
    fast = DEFAULTS.hurried(60)
    assert fast.qdrant_down == DEFAULTS.qdrant_down / 60
    assert fast.failing["ttl"] == DEFAULTS.failing["ttl"] / 60
    assert fast.stale_most == DEFAULTS.stale_most / 60
    assert fast.stale_intervals == DEFAULTS.stale_intervals
    assert fast.invalid_points == DEFAULTS.invalid_points
    assert fast.memory_ratio == DEFAULTS.memory_ratio
