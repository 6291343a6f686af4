"""The rules of Grafana's dashboard linter, and some of our own, on the generated JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import foreign, rules
from dashboards.build import GENERATED
from dashboards.settings import DEFAULT_RUNBOOKS, DashboardSettings
from ops.metrics import METRICS

BOARDS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in GENERATED.glob("*.json")}
EXCEPTIONS: list[dict[str, str]] = yaml.safe_load((Path(__file__).resolve().parent / "exceptions.yaml").read_text())
HISTOGRAM = ("_bucket", "_count", "_sum")
KNOWN = (
    {metric.name for metric in METRICS}
    | {recorded.name for recorded in rules.RECORDED}
    | {metric.name for metric in (*foreign.QDRANT, *foreign.PROMETHEUS, *foreign.KUBERNETES)}
    | {f"{m.name}{end}" for m in foreign.QDRANT if m.type == "histogram" for end in HISTOGRAM}
)
COUNTERS = (
    {m.name for m in METRICS if m.type == "counter"}
    | {m.name for m in foreign.QDRANT if m.type == "counter"}
    | {f"{m.name}{end}" for m in foreign.QDRANT if m.type == "histogram" for end in HISTOGRAM}
)
_WORDS = frozenset(
    {
        "sum", "max", "min", "count", "group", "avg", "by", "on", "and", "or", "unless", "rate", "increase", "topk",
        "vector", "time", "offset", "histogram_quantile", "last_over_time",
        "absent", "without", "ignoring", "group_left", "bool",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    uid: str
    panel: dict[str, Any]
    expression: str

    @property
    def where(self) -> str:
        return f"{self.uid} / {self.panel['title']} / {self.expression}"


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (panel for panel in board["panels"] if panel["type"] != "row")


TARGETS = [
    Target(uid, panel, target["expr"])
    for uid, board in BOARDS.items()
    for panel in panels(board)
    for target in panel["targets"]
]


def metrics_of(expression: str) -> set[str]:
    """Names of metrics in an expression: words that are no function, and not inside braces, brackets or `by ()`."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(by|on|without|ignoring|group_left)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\boffset\s+\w+", "", bare)
    return {word for word in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", bare) if word not in _WORDS}


def selectors(expression: str) -> list[tuple[str, str]]:
    """Each metric with what stands in its braces."""
    return re.findall(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}", expression)


def excused(rule: str, where: str) -> bool:
    return any(re.fullmatch(e["rule"], rule) and re.search(e["where"], where) for e in EXCEPTIONS)


def test_every_exception_is_needed_and_has_a_reason() -> None:
    for entry in EXCEPTIONS:
        assert any(re.search(entry["where"], target.where) for target in TARGETS), entry
        assert entry["reason"].endswith(".")


@pytest.mark.parametrize("uid", BOARDS)
def test_a_dashboard_can_be_found_and_not_be_edited(uid: str) -> None:
    board = BOARDS[uid]
    assert board["uid"] == uid
    assert board["title"].startswith("Co-Memory / ")
    assert board["description"]
    assert board["editable"] is False
    assert board["tags"] == ["comemory"]
    ids = [panel["id"] for panel in board["panels"]]
    assert ids == list(range(1, len(ids) + 1))


@pytest.mark.parametrize("uid", BOARDS)
def test_variables(uid: str) -> None:
    variables = {one["name"]: one for one in BOARDS[uid]["templating"]["list"]}
    assert {"datasource", "cluster", "job", "instance", "collection"} <= set(variables)
    source = variables.pop("datasource")
    assert (source["type"], source["query"], source["label"]) == ("datasource", "prometheus", "Data source")
    for name, one in variables.items():
        assert one["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert one["label"].lower() == name
        assert one["refresh"] == 2, "on a change of the time range"
        if not (uid == "comemory-tenant" and name == "tenant"):
            assert one["multi"]
            assert one["includeAll"]
            # All of Qdrant's jobs are not all jobs: its metrics have names that any process may have.
            jobs = uid == "comemory-qdrant" and name == "job"
            assert one["allValue"] in ((DashboardSettings().qdrant_jobs,) if jobs else (".*", ".+"))
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", one["query"]["query"])
        assert asked
        assert metrics_of(asked[1]) <= KNOWN
    if uid in ("comemory-overview", "comemory-tenant"):
        assert {"tenant", "scope"} <= set(variables)


@pytest.mark.parametrize("uid", BOARDS)
def test_every_variable_is_used_and_every_used_one_there(uid: str) -> None:
    board = BOARDS[uid]
    there = {one["name"] for one in board["templating"]["list"]}
    rest = {**board, "templating": {}}
    chained = " ".join(json.dumps(one.get("query", "")) for one in board["templating"]["list"])
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(rest) + chained))
    assert used - {"__rate_interval", "__data", "__url_time_range"} <= there
    assert there <= used


@pytest.mark.parametrize(
    "panel", [pytest.param(p, id=f"{u}/{p['title']}") for u, b in BOARDS.items() for p in panels(b)]
)
def test_a_panel_tells_what_it_is(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert len(panel["description"].split()) >= 4
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert defaults["thresholds"]["steps"][0]["value"] is None
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]


def test_titles_are_told_apart() -> None:
    for board in BOARDS.values():
        titles = [panel["title"] for panel in panels(board)]
        assert len(titles) == len(set(titles))


@pytest.mark.parametrize("target", [pytest.param(t, id=f"{t.uid}/{t.panel['title']}") for t in TARGETS])
def test_a_query(target: Target) -> None:
    names = metrics_of(target.expression)
    assert names
    assert names <= KNOWN, "a metric that nobody declares"
    for name, matchers in selectors(target.expression):
        assert 'cluster=~"$cluster"' in matchers
        if not excused("job matcher", f"{name}{{"):
            assert 'job=~"$job"' in matchers
        if not excused("instance matcher", f"{name}{{"):
            assert 'instance=~"$instance"' in matchers
    assert {name for name, _ in selectors(target.expression)} == names, "a metric without matchers"
    for counter in names & COUNTERS:
        inside = re.findall(rf"(\w+)\({re.escape(counter)}\{{[^}}]*\}}\[([^\]]*)\]\)", target.expression)
        assert len(inside) == target.expression.count(f"{counter}{{")
        assert all(found == ("rate", "$__rate_interval") for found in inside)
    for name in names - COUNTERS:
        if name.endswith(("_total", *HISTOGRAM)):
            assert excused("counter aggregation", target.where), name


OF_VARIABLES = {"tenant": ("tenant_id",), "scope": ("scope",), "collection": ("collection", "id")}
LABELS = {m.name: m.labels for m in (*METRICS, *foreign.QDRANT, *foreign.PROMETHEUS)} | {
    recorded.name: recorded.labels for recorded in rules.RECORDED
}


@pytest.mark.parametrize("target", [pytest.param(t, id=f"{t.uid}/{t.panel['title']}") for t in TARGETS])
def test_a_query_heeds_every_variable_of_its_dashboard(target: Target) -> None:
    there = {one["name"] for one in BOARDS[target.uid]["templating"]["list"]}
    for variable, labels in OF_VARIABLES.items():
        for name, matchers in selectors(target.expression) if variable in there else ():
            where = f"{target.uid} / {target.panel['title']} / {name}"
            of = LABELS.get(name, LABELS.get(re.sub("_(bucket|count|sum)$", "", name), ()))
            has = [label for label in labels if label in of]
            if has and not excused("filter", where):
                operator = "=" if (target.uid, variable) == ("comemory-tenant", "tenant") else "=~"
                assert any(f'{label}{operator}"${variable}"' in matchers for label in has), (variable, name)
            if not has:
                assert excused(f"no {variable}", where), (variable, name)
            if not has and name in OF_ALL_SCOPES and variable == "scope":
                assert "all scopes" in target.panel["description"]


OF_ALL_SCOPES = {"comemory_expiring_points", "comemory_invalid_points"}


def test_a_value_in_a_link_is_encoded() -> None:
    for text in re.findall(r"var-\w+=\$\{[^}]*\}", json.dumps(BOARDS)):
        assert text.endswith(":percentencode}"), text


def test_a_table_of_tenants_has_an_end() -> None:
    for target in TARGETS:
        if target.panel["type"] == "table" and re.search(r"by \(tenant_id\)", target.expression):
            assert "topk(" in target.expression, target.where


@pytest.mark.parametrize("uid", BOARDS)
def test_links_lead_somewhere(uid: str) -> None:
    text = json.dumps(BOARDS[uid])
    for linked in re.findall(r"/d/([\w-]+)", text):
        assert linked in BOARDS
    assert BOARDS[uid]["links"][0]["tags"] == ["comemory"]
    for name in re.findall(r"docs/[\w./-]+\.md", text):
        assert (GENERATED.parent.parent / name).exists(), name
    assert DEFAULT_RUNBOOKS == "docs/runbooks"


def test_every_metric_of_ours_is_shown_or_alerted_on() -> None:
    text = " ".join(t.expression for t in TARGETS)
    text += "".join(path.read_text() for path in GENERATED.glob("*.yaml"))
    text += json.dumps(BOARDS)
    left = {metric.name for metric in METRICS if metric.name not in text}
    assert left == {"comemory_collection_vectors", "comemory_qdrant_info"}, (
        "shown on the Qdrant dashboard by its own"
    )
