"""The declaration of the metrics: the rules of the design, and of OpenMetrics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ops.metrics import METRICS, PREFIX, Metric

ROOT = Path(__file__).resolve().parent.parent.parent
KNOWN_LABELS = {
    "collection", "tenant_id", "scope", "vector", "status", "kind", "reason", "window", "job_name", "outcome",
    "collector", "version", "python", "certificate", "token",
}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.family)
def test_each_metric_keeps_the_rules(metric: Metric) -> None:
    assert metric.family.startswith(PREFIX)
    assert not metric.family.endswith(("_total", "_info", "_count", "_sum", "_bucket", "_created"))
    assert metric.family.endswith(f"_{metric.unit}") if metric.unit else not metric.family.endswith("_seconds")
    assert set(metric.labels) <= KNOWN_LABELS  # `job` and `instance` are Prometheus' own, and would be renamed
    assert len(set(metric.labels)) == len(metric.labels)
    assert metric.help.endswith(".")
    assert metric.name == metric.family + {"gauge": "", "counter": "_total", "info": "_info"}[metric.type]


def test_no_name_stands_twice() -> None:
    assert len({metric.family for metric in METRICS}) == len(METRICS)
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_nothing_else_is_imported_with_it() -> None:
    """The dashboards take the names; they must not need a Qdrant client for it."""
    code = (
        "import sys; before = set(sys.modules); import ops.metrics; new = set(sys.modules) - before;"
        "print(sorted(n for n in new if n.partition('.')[0] not in sys.stdlib_module_names))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "['ops', 'ops.metrics']"
