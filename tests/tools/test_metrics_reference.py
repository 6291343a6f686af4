"""docs/metrics.md is what `make docs` would write, and names every metric once."""

from __future__ import annotations

from ops.metrics import METRICS
from tools.metrics_reference import FILE, reference


def test_the_page_is_not_stale() -> None:
    assert FILE.read_text(encoding="utf-8") == reference(), "run: make docs"


def test_every_metric_is_in_it_once() -> None:
    for metric in METRICS:
        assert reference().count(f"| `{metric.name}` |") == 1
