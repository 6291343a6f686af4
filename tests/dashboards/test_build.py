"""What is generated is what is committed, and a stale or foreign file is noticed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dashboards import expressions
from dashboards.__main__ import main
from dashboards.build import GENERATED, stale, texts, write
from dashboards.settings import DashboardSettings
from dashboards.thresholds import duration
from ops import metrics

ROOT = GENERATED.parent.parent


def test_what_is_committed_is_not_stale() -> None:
    assert stale(GENERATED, texts()) == [], "run: make dashboards"


def test_writing_twice_changes_nothing_and_leftovers_go(tmp_path: Path) -> None:
    made = texts()
    assert {path.name for path in write(tmp_path, made)} == set(made)
    assert write(tmp_path, made) == []
    (tmp_path / "old.json").write_text("{}")
    (tmp_path / "comemory-tenant.json").write_text("{}")
    assert stale(tmp_path, made) == ["comemory-tenant.json", "old.json"]
    write(tmp_path, made)
    assert stale(tmp_path, made) == []
    assert not (tmp_path / "old.json").exists()


def test_a_renamed_metric_makes_everything_with_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metrics, "EXPIRED_POINTS", replace(metrics.EXPIRED_POINTS, family="comemory_overdue_points")
    )
    found = stale(GENERATED, texts())
    assert {"comemory-overview.json", "comemory-tenant.json", "recording-rules.yaml"} <= set(found)


def test_the_prefix_goes_before_qdrants_metrics_only() -> None:
    made = texts(DashboardSettings(qdrant_prefix="vectors_"))
    assert "vectors_rest_responses_total{" in made["comemory-qdrant.json"]
    assert "(rest_responses_total{" not in made["comemory-qdrant.json"]
    assert "vectors_up" not in made["comemory-qdrant.json"]
    assert made["comemory-tenant.json"] == texts()["comemory-tenant.json"]


def test_the_command_checks_and_says_what_to_run(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "dashboards", "build", "--check", "--out", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 1
    assert said.stderr.count("make dashboards") == 6


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--qdrant-prefix", "qd rant_"], "the prefix 'qd rant_'"),
        (["--qdrant-jobs", 'a"b'], "write [.] for a point"),
        (["--qdrant-jobs", r"vectors\.memory"], "write [.] for a point"),
        (["--qdrant-jobs", "(vectors"], "no regular expression"),
        (["--qdrant-jobs", ""], "name at least one"),
        (["--qdrant-memory-bytes", "0"], "more than 0 bytes"),
    ],
)
def test_what_prometheus_would_refuse_is_not_made(
    options: list[str], named: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["dashboards", "build", "--out", str(tmp_path), *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert named in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (1.5, "1500ms"), (90, "90s"), (300, "5m"), (7200, "2h"), (176400, "49h"), (1209600, "14d")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_expression_is_wrapped_once() -> None:
    assert expressions.total("(a and b)") == "sum(a and b)"
    assert expressions.total("(a) / (b)") == "sum((a) / (b))"
    assert expressions.total("a", "x") == "sum by (x) (a)"
