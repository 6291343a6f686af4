"""PromQL made from declared metrics, so that no name of a metric is written twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from dashboards.foreign import QDRANT, Foreign
from ops.metrics import (
    COLLECTION_POINTS,
    COLLECTOR_LAST_SUCCESS,
    JOB_LAST_SUCCESS,
    LEASE_HELD,
    SNAPSHOT_TIME,
    Metric,
)

CLUSTER: Final = "cluster"
"""The label that tells installations apart where one Prometheus sees several; the scrape configuration sets it."""

WHOLE: Final = (CLUSTER, "job")
"""What every alert and recorded series keeps, so that two installations are never added up."""

Any = Metric | Foreign


@dataclass(frozen=True, slots=True)
class Source:
    """Makes selectors that all have the same matchers.

    Args:
        matchers: Matchers for every selector, such as `job=~"$job"`.
        by_label: Matchers for selectors of metrics that have the label.
        qdrant_prefix: Put before Qdrant's own metrics.
    """

    matchers: tuple[str, ...] = ()
    by_label: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    qdrant_prefix: str = ""

    def name(self, metric: Any) -> str:
        """The name to ask for, with the prefix where it is Qdrant's."""
        return f"{self.qdrant_prefix if metric in QDRANT else ''}{metric.name}"

    def of(self, metric: Any, *more: str, suffix: str = "") -> str:
        """A selector of a metric; `suffix` is `_bucket` and its like for a histogram."""
        by_label = [self.by_label[label] for label in metric.labels if label in self.by_label]
        inner = ", ".join([*self.matchers, *by_label, *more])
        return f"{self.name(metric)}{suffix}{{{inner}}}" if inner else f"{self.name(metric)}{suffix}"

    def bare(self, metric: Any, *more: str) -> str:
        """A selector with these matchers only: a metric of the cluster below has not our jobs."""
        return replace(self, matchers=(), by_label={}).of(metric, *more)

    def leader(self, metric: Metric, *more: str, pick: str = "max", ago: str = "") -> str:
        """A gauge of the daemon that works: one that lost the lease keeps its last numbers.

        Where several work, since they have no lease, each counts the same things. Their numbers must not be added
        up, so one of them is picked.
        """
        then = f" offset {ago}" if ago else ""
        held = f"{self.of(LEASE_HELD)}{then} == 1"
        works = f"{self.of(metric, *more)}{then} and on ({CLUSTER}, job, instance) {held}"
        return aggregate(pick, works, *WHOLE, *metric.labels)

    def counted(self, metric: Metric, *more: str, by: Iterable[str] = (), ago: str = "") -> str:
        """A sum of what a census counts: 0 where it found none, but nothing where there was no census."""
        found = total(self.leader(metric, *more, ago=ago), *by)
        return f"({found} or {total(self.leader(COLLECTION_POINTS, ago=ago), *by)} * 0)"

    def reported(self, metric: Metric, job_name: str) -> str:
        """A sum of what a job found: 0 where it found nothing, but nothing before it has looked."""
        looked = total(self.leader(JOB_LAST_SUCCESS, f'job_name="{job_name}"'))
        return f"({total(self.leader(metric))} or {looked} * 0)"

    def change(self, metric: Metric, ago: str) -> str:
        """How much more a census counts than a while ago, over the installations that counted both times."""
        return f"sum({self.counted(metric, by=WHOLE)} - {self.counted(metric, by=WHOLE, ago=ago)})"

    def or_missing(self, expression: str, remembered: str) -> str:
        """By installation; 0 for one whose daemon was seen of late and is not now: it would else be forgotten."""
        seen = aggregate("max", f"last_over_time({self.of(LEASE_HELD)}[{remembered}])", *WHOLE)
        return f"({expression} or {seen} * 0)"

    def counted_at(self, remembered: str) -> str:
        """By installation, when the oldest of its numbers was counted; the last census, where no daemon works."""
        last = f"last_over_time({self.of(SNAPSHOT_TIME)}[{remembered}])"
        oldest = aggregate("min", self.leader(COLLECTOR_LAST_SUCCESS), *WHOLE)
        return f"({oldest} or {aggregate('max', last, *WHOLE)})"

    def rate(self, metric: Any, *more: str, window: str = "$__rate_interval", suffix: str = "") -> str:
        """How fast a counter grows, per second."""
        return f"rate({self.of(metric, *more, suffix=suffix)}[{window}])"

    def quantile(self, part: float, metric: Any, *more: str, by: Iterable[str] = ()) -> str:
        """A quantile of a histogram."""
        rates = total(self.rate(metric, *more, suffix="_bucket"), "le", *by)
        return f"histogram_quantile({part}, {rates})"


def total(expression: str, *by: str) -> str:
    """A sum, over all or by labels."""
    return aggregate("sum", expression, *by)


def aggregate(function: str, expression: str, *by: str) -> str:
    """An aggregation, over all or by labels."""
    inner = expression if _wrapped(expression) else f"({expression})"
    return f"{function} by ({', '.join(by)}) {inner}" if by else f"{function}{inner}"


def ratio(part: str, whole: str) -> str:
    """A part of a whole; nothing where there is no whole."""
    return f"{part} / ({whole} > 0)"


def largest(count: int, expression: str) -> str:
    """The largest series."""
    return f"topk({count}, {expression})"


def _wrapped(expression: str) -> bool:
    """Whether one pair of parentheses holds it all."""
    if not expression.startswith("("):
        return False
    depth = 0
    for place, letter in enumerate(expression):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(expression) - 1
    return False
