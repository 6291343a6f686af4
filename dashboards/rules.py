"""Recorded series, named `level:metric:operation`: what alerts and long ranges would else compute again and again.

Gauges are those of the daemon that holds the lease. Every series keeps `cluster` and `job`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dashboards import foreign
from dashboards.expressions import WHOLE, Source, aggregate, total
from dashboards.settings import DashboardSettings
from ops import metrics

WINDOW: Final = "5m"
"""Of recorded rates: several scrapes at the usual 30 s or 1 min."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded series: its name, and the labels it has besides `cluster` and `job`."""

    name: str
    labels: tuple[str, ...] = ()


CLUSTER_POINTS: Final = Recorded("cluster:comemory_points:sum")
COLLECTION_POINTS: Final = Recorded("collection:comemory_points:sum", ("collection",))
TENANT_POINTS: Final = Recorded("tenant:comemory_points:sum", ("tenant_id",))
EXPIRED: Final = Recorded("collection:comemory_expired_points:sum", ("collection",))
EXPIRED_AGE: Final = Recorded("collection:comemory_expired_oldest_age_seconds:max", ("collection",))
DUPLICATES: Final = Recorded("collection:comemory_duplicate_points:sum", ("collection",))
INVALID: Final = Recorded("collection_reason:comemory_invalid_points:sum", ("collection", "reason"))
DRIFT: Final = Recorded("collection_kind:comemory_schema_drift:sum", ("collection", "kind"))
DELETED: Final = Recorded("collection_job_name:comemory_deleted_points:rate5m", ("collection", "job_name"))
LAST_SUCCESS: Final = Recorded("job_name:comemory_job_last_success_timestamp_seconds:max", ("job_name",))
QDRANT_REQUESTS: Final = Recorded("job_endpoint:qdrant_rest_responses:rate5m", ("endpoint", "status"))
QDRANT_P99: Final = Recorded("job:qdrant_rest_responses_duration_seconds:p99_5m")

RECORDED: Final = (
    CLUSTER_POINTS, COLLECTION_POINTS, TENANT_POINTS, EXPIRED, EXPIRED_AGE, DUPLICATES, INVALID, DRIFT, DELETED,
    LAST_SUCCESS, QDRANT_REQUESTS, QDRANT_P99,
)  # fmt: skip


def groups(settings: DashboardSettings, *, window: str = WINDOW) -> list[dict[str, Any]]:
    """The rule groups, as in a rule file of Prometheus.

    Args:
        settings: Of the installation.
        window: Over which rates are taken.
    """
    ours = Source(qdrant_prefix=settings.qdrant_prefix)
    theirs = Source((f'job=~"{settings.qdrant_jobs}"',), qdrant_prefix=settings.qdrant_prefix)
    dedup_done = ours.leader(metrics.JOB_LAST_SUCCESS, 'job_name="dedup"')
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
        _rule(EXPIRED_AGE, _max(ours.leader(metrics.EXPIRED_OLDEST_AGE), EXPIRED_AGE)),
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
        _rule(LAST_SUCCESS, _max(ours.of(metrics.JOB_LAST_SUCCESS), LAST_SUCCESS)),
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
