"""Do the panels tell the truth? Each query on the real promtool, in worlds that are not as they should be.

In all of them only the daemon's metrics matter, so that the dashboard of Qdrant's own is left out.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.build import GENERATED
from ops.metrics import METRICS, STATUSES, WINDOWS, Metric
from tests.support.prometheus import programs

BOARDS = ("comemory-overview", "comemory-tenant", "comemory-operations")
NOW = 40
"""The minute at which is asked."""

VALUES: dict[str, tuple[str, ...]] = {
    "collection": ("cm_a", "cm_b"), "tenant_id": ("t_a", "t_b"), "scope": ("docs", "memory"), "vector": ("dense",),
    "status": STATUSES, "kind": ("index_missing",), "reason": ("x.y",), "window": tuple(WINDOWS),
    "job_name": ("audit", "census", "dedup", "ttl"), "outcome": ("success", "partial", "failed"),
    "collector": ("tenants",), "version": ("1",), "python": ("3",), "certificate": ("qdrant",),
    "token": ("qdrant",),
}  # fmt: skip
"""What the labels of metrics may be."""


@dataclass(frozen=True)
class Query:
    uid: str
    title: str
    ref: str
    expression: str
    steps: tuple[dict[str, Any], ...]
    kind: str

    def of(self, cluster: str) -> str:
        """It, as Grafana sends it, in parentheses."""
        text = self.expression.replace("$__rate_interval", "5m").replace("offset 1d", "offset 10m")
        text = text.replace('=~"$cluster"', f'=~"{cluster}"').replace('"$tenant"', '"t_a"')
        text = re.sub(r'"[$](job|instance|collection|scope)"', '".*"', text)
        return f"({text})"

    @property
    def where(self) -> str:
        return f"{self.uid.removeprefix('comemory-')} / {self.title} / {self.ref}"


def _queries() -> Iterator[Query]:
    for uid in BOARDS:
        for panel in json.loads((GENERATED / f"{uid}.json").read_text())["panels"]:
            for target in panel.get("targets", ()):
                steps = tuple(panel["fieldConfig"]["defaults"]["thresholds"]["steps"])
                yield Query(uid, panel["title"], target["refId"], target["expr"], steps, panel["type"])


QUERIES = list(_queries())


def daemon(cluster: str, instance: str = "i", until: int = 90, **values: float) -> dict[str, str]:
    """Every series of a daemon that works; `values` are by metric, and else a number that is neither 0 nor 1."""
    return {
        series: numbers
        for metric in METRICS
        for series, numbers in _series(
            metric, f'cluster="{cluster}", job="c", instance="{instance}"', until, values
        )
    }


def _series(metric: Metric, place: str, until: int, values: dict[str, float]) -> Iterator[tuple[str, str]]:
    ones = {"comemory_lease_held", "comemory_qdrant_up", "comemory_collector_success", "comemory_build_info"}
    usual = 1.0 if metric.name in ones else 120.0 if metric.unit else 3.0
    value = values.get(metric.name, usual)
    for labels in itertools.product(*(VALUES[label] for label in metric.labels)):
        inner = ", ".join([place, *(f'{n}="{v}"' for n, v in zip(metric.labels, labels, strict=True))])
        yield f"{metric.name}{{{inner}}}", f"0+60x{until}" if metric.type == "counter" else f"{value}x{until}"


def ask(folder: Path, series: dict[str, str], wanted: list[tuple[str, str, list[float]]]) -> None:
    """Let promtool compare: what is asked, the expression, and the values that its series have."""
    (folder / "rules.yaml").write_text((GENERATED / "recording-rules.yaml").read_text())
    names = {f"{number} {expression}": where for number, (where, expression, _) in enumerate(wanted)}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": f"{NOW}m",
                "exp_samples": [{"labels": "{}", "value": v} for v in values],
            }
            for _, expression, values in wanted
        ],
    }
    file = folder / "truth.test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}, width=100_000)
    )
    said = subprocess.run([programs().promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    text = said.stdout + said.stderr
    told = [where for name, where in names.items() if json.dumps(name.partition(" ")[2]) in text]
    assert said.returncode == 0, "\n".join(told) + "\n" + text


TWICE = {
    "operations / Daemons / A", "operations / Daemons that work / A", "operations / Work done twice / A",
    "overview / Each installation / A", "overview / Each installation / B",
}  # fmt: skip
"""What is to be seen of two daemons that work without a lease."""


def test_two_daemons_without_a_lease_change_no_number_but_what_they_did(tmp_path: Path) -> None:
    series = daemon("one") | daemon("two", "i") | daemon("two", "j")
    wanted: list[tuple[str, str, list[float]]] = []
    for query in QUERIES:
        one, two = query.of("one"), query.of("two")
        wanted.append((f"{query.where}: has no data", f"absent({one})", []))
        if "rate(" in query.expression or query.where in TWICE:
            continue
        for left, right in ((one, two), (two, one)):
            wanted.append((f"{query.where}: other series", f"{left} unless ignoring (cluster) {right}", []))
        wanted.append((f"{query.where}: other values", f"{one} != ignoring (cluster) {two}", []))
    ask(tmp_path, series, wanted)


def test_each_of_two_daemons_without_a_lease_is_seen(tmp_path: Path) -> None:
    series = daemon("one") | daemon("two", "i") | daemon("two", "j")
    found = {query.where: query.of(".*") for query in QUERIES}
    assert set(found) >= TWICE
    ask(tmp_path, series, [
        ("twice", found["operations / Work done twice / A"], [1]),
        ("fewest", found["operations / Daemons that work / A"], [1]),
        ("two", f"max{found['overview / Each installation / B']}", [2]),
    ])  # fmt: skip


def test_of_several_installations_panels_about_health_show_the_worst(tmp_path: Path) -> None:
    """Their colours say in which direction it is worse; beside one that is well it looks no better than alone."""
    sick = {
        "comemory_lease_held": 1, "comemory_qdrant_up": 0, "comemory_collector_success": 0,
        "comemory_collector_last_success_timestamp_seconds": 0, "comemory_expired_oldest_age_seconds": 99_999,
        "comemory_invalid_points": 99_999, "comemory_schema_drift": 9, "comemory_tenants_folded": 9,
        "comemory_job_problems": 9, "comemory_expired_points": 99_999,
    }  # fmt: skip
    series = daemon("well") | daemon("sick", **sick) | daemon("gone", until=10)
    wanted: list[tuple[str, str, list[float]]] = []
    for query in (q for q in QUERIES if q.kind == "stat" and len(q.steps) > 1 and q.title != "Share of all points"):
        worse = "<" if query.steps[0]["color"] == "green" else ">"
        for ill in ("sick", "gone"):
            both = f"{query.of(f'well|{ill}')} {worse} {query.of(ill)}"
            wanted.append((f"{query.where}: hides {ill}", both, []))
    assert len(wanted) > 20
    ask(tmp_path, series, wanted)


GONE = {
    "overview / Daemon works / A": 0.0, "overview / Qdrant answers / A": 0.0, "operations / Daemons / A": 0.0,
    "operations / Daemons that work / A": 0.0, "operations / Age of the census / A": NOW * 60 - 120.0,
}  # fmt: skip


@pytest.mark.parametrize("well", [True, False])
def test_an_installation_without_a_daemon_is_not_forgotten(tmp_path: Path, *, well: bool) -> None:
    series = daemon("gone", until=10) | (daemon("well") if well else {})
    ask(tmp_path, series, [(q.where, q.of(".*"), [GONE[q.where]]) for q in QUERIES if q.where in GONE])


def test_where_nothing_is_known_nothing_is_said(tmp_path: Path) -> None:
    """A 0 would look like a good answer; only that no daemon works is known."""
    zero = {"overview / Alerts firing / A", *GONE} - {"operations / Age of the census / A"}
    ask(tmp_path, {"other": "1x90"}, [(q.where, q.of(".*"), [0.0] if q.where in zero else []) for q in QUERIES])


def test_what_no_job_has_looked_for_yet_is_not_called_none(tmp_path: Path) -> None:
    found = ("comemory_invalid_points", "comemory_duplicate_points", "comemory_job_last_success")
    series = {key: values for key, values in daemon("new").items() if not key.startswith(found)}
    looked = {key: values for key, values in daemon("old").items() if not key.startswith(found[:2])}
    jobs = [q for q in QUERIES if q.title in ("Breaks of the schema", "Copies found")]
    assert len(jobs) == 4
    ask(
        tmp_path,
        series | looked,
        [(q.where, q.of(c), value) for q in jobs for c, value in (("new", []), ("old", [0.0]))],
    )


def test_a_tenant_that_came_or_went_within_a_day_has_changed(tmp_path: Path) -> None:
    whole = daemon("c")
    place = 'cluster="c", job="c", instance="i", collection="cm_a", scope="docs"'
    changes = [q for q in QUERIES if q.title in ("Added or removed in a day", "Change within a day")]
    others = {key: values for key, values in whole.items() if not key.startswith("comemory_points{")}
    for number, (values, change) in enumerate([("_x35 7x50", 7), ("7x33 _x50", -7), ("7x90", 0)]):
        (tmp_path / str(number)).mkdir()
        series = others | {f'comemory_points{{{place}, tenant_id="t_a"}}': values}
        ask(tmp_path / str(number), series, [(q.where, q.of("c"), [change]) for q in changes])


def test_a_new_leader_is_not_blamed_for_what_it_did_long_ago(tmp_path: Path) -> None:
    """The daemon before it, which is gone, worked eleven minutes ago."""
    former = daemon("c", "former", until=30, comemory_job_last_success_timestamp_seconds=29 * 60.0)
    leader = daemon("c", "leader", comemory_job_last_success_timestamp_seconds=60.0)
    (query,) = (q for q in QUERIES if q.title == "Jobs now" and q.ref == "A")
    ask(tmp_path, former | leader, [(query.where, f"max{query.of('c')}", [(NOW - 29) * 60.0])])
