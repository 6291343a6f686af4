"""Recorded series, named `level:metric:operation`: what alerts and long ranges would else compute again and again.

Gauges are those of the daemon that works. Every series keeps `cluster` and `job`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dashboards import foreign
from dashboards.expressions import WHOLE, Source, aggregate, total
from dashboards.foreign import Foreign
from dashboards.settings import DashboardSettings
from dashboards.thresholds import DEFAULTS, Thresholds, duration, number
from ops import metrics
from ops.metrics import Metric

WINDOW: Final = "5m"
"""Of recorded rates: several scrapes at the usual 30 s or 1 min."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded series: what its name is made of, and the labels it has besides `cluster` and `job`."""

    level: str
    metric: Metric | Foreign
    operation: str
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name, `level:metric:operation`; Qdrant's metrics are told by their program here."""
        metric = self.metric
        of = metric.family if isinstance(metric, Metric) else f"qdrant_{metric.name.removesuffix('_total')}"
        return f"{self.level}:{of}:{self.operation}"


CLUSTER_POINTS: Final = Recorded("cluster", metrics.POINTS, "sum")
COLLECTION_POINTS: Final = Recorded("collection", metrics.POINTS, "sum", ("collection",))
TENANT_POINTS: Final = Recorded("tenant", metrics.POINTS, "sum", ("tenant_id",))
EXPIRED: Final = Recorded("collection", metrics.EXPIRED_POINTS, "sum", ("collection",))
EXPIRED_AGE: Final = Recorded("collection", metrics.EXPIRED_OLDEST_AGE, "max", ("collection",))
DUPLICATES: Final = Recorded("collection", metrics.DUPLICATE_POINTS, "sum", ("collection",))
INVALID: Final = Recorded("collection_reason", metrics.INVALID_POINTS, "sum", ("collection", "reason"))
DRIFT: Final = Recorded("collection_kind", metrics.SCHEMA_DRIFT, "sum", ("collection", "kind"))
DELETED: Final = Recorded(
    "collection_job_name", metrics.DELETED_POINTS, f"rate{WINDOW}", ("collection", "job_name")
)
LAST_SUCCESS: Final = Recorded("job_name", metrics.JOB_LAST_SUCCESS, "max", ("job_name",))
STALE_AFTER: Final = Recorded("job_name", metrics.JOB_INTERVAL, "stale_after", ("job_name",))
QDRANT_REQUESTS: Final = Recorded("job_endpoint", foreign.REST_RESPONSES, f"rate{WINDOW}", ("endpoint", "status"))
QDRANT_P99: Final = Recorded("job", foreign.REST_SECONDS, f"p99_{WINDOW}")

RECORDED: Final = (
    CLUSTER_POINTS, COLLECTION_POINTS, TENANT_POINTS, EXPIRED, EXPIRED_AGE, DUPLICATES, INVALID, DRIFT, DELETED,
    LAST_SUCCESS, STALE_AFTER, QDRANT_REQUESTS, QDRANT_P99,
)  # fmt: skip


def groups(
    settings: DashboardSettings, limits: Thresholds = DEFAULTS, *, window: str = WINDOW
) -> list[dict[str, Any]]:
    """The rule groups, as in a rule file of Prometheus.

    Args:
        settings: Of the installation.
        limits: For how long things are remembered, and when a job is stale.
        window: Over which rates are taken.
    """
    ours = Source(qdrant_prefix=settings.qdrant_prefix)
    theirs = Source((f'job=~"{settings.qdrant_jobs}"',), qdrant_prefix=settings.qdrant_prefix)
    dedup_done = ours.leader(metrics.JOB_LAST_SUCCESS, 'job_name="dedup"')
    remembered = duration(limits.jobs_remembered)
    interval = ours.leader(metrics.JOB_INTERVAL)
    bounds = f"{number(limits.stale_least)}, {number(limits.stale_most)}"
    memory = [
        _rule(CLUSTER_POINTS, _sum(ours.leader(metrics.POINTS), CLUSTER_POINTS)),
        _rule(COLLECTION_POINTS, _sum(ours.leader(metrics.POINTS), COLLECTION_POINTS)),
        _rule(TENANT_POINTS, _sum(ours.leader(metrics.POINTS), TENANT_POINTS)),
        # 0 for a collection where nothing has expired, so that the series is there before it grows
        _rule(
            EXPIRED,
            f"{_sum(ours.leader(metrics.EXPIRED_POINTS), EXPIRED)} "
            f"or {_sum(ours.leader(metrics.EXPIRED_OLDEST_AGE), EXPIRED)} * 0",
        ),
        _rule(EXPIRED_AGE, ours.leader(metrics.EXPIRED_OLDEST_AGE)),
        # 0 where dedup found none, for the same reason; but not before its first run: a rise from nothing
        _rule(
            DUPLICATES,
            f"{_sum(ours.leader(metrics.DUPLICATE_POINTS), DUPLICATES)} "
            f"or {_sum(ours.leader(metrics.COLLECTION_POINTS), DUPLICATES)} * 0 "
            f"and on ({', '.join(WHOLE)}) {dedup_done}",
        ),
        _rule(INVALID, _sum(ours.leader(metrics.INVALID_POINTS), INVALID)),
        _rule(DRIFT, _sum(ours.leader(metrics.SCHEMA_DRIFT), DRIFT)),
        _rule(DELETED, _sum(ours.rate(metrics.DELETED_POINTS, window=window), DELETED)),
        # of whatever daemon: one that takes over may have worked long ago last, and the one before may be gone
        _rule(
            LAST_SUCCESS, _max(f"max_over_time({ours.of(metrics.JOB_LAST_SUCCESS)}[{remembered}])", LAST_SUCCESS)
        ),
        _rule(STALE_AFTER, f"{number(limits.stale_intervals)} * {interval} + clamp({interval}, {bounds})"),
    ]
    qdrant = [
        _rule(QDRANT_REQUESTS, _sum(theirs.rate(foreign.REST_RESPONSES, window=window), QDRANT_REQUESTS)),
        _rule(
            QDRANT_P99,
            "histogram_quantile(0.99, "
            + total(theirs.rate(foreign.REST_SECONDS, window=window, suffix="_bucket"), *WHOLE, "le")
            + ")",
        ),
    ]
    return [{"name": "comemory.memory", "rules": memory}, {"name": "comemory.qdrant", "rules": qdrant}]


def _rule(recorded: Recorded, expression: str) -> dict[str, Any]:
    return {"record": recorded.name, "expr": expression}


def _sum(expression: str, recorded: Recorded) -> str:
    return total(expression, *WHOLE, *recorded.labels)


def _max(expression: str, recorded: Recorded) -> str:
    return aggregate("max", expression, *WHOLE, *recorded.labels)


def series(recorded: Recorded, *matchers: str) -> str:
    """A selector of a recorded series."""
    return f"{recorded.name}{{{', '.join(matchers)}}}" if matchers else recorded.name
