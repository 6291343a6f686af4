"""Every metric of the daemon: name, type, labels, unit and help, declared once.

The exposition, `docs/metrics.md`, the dashboards and the alerts are made from this list. Nothing is imported
here, so that whoever only needs the names takes nothing else along.

Tenant and scope are labels of gauges and counters, never of a histogram; team, agent and owner are never labels. A
job's label is `job_name`, since `job` is Prometheus' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PREFIX: Final = "comemory_"

OTHER_TENANTS: Final = "__other__"
"""The `tenant_id` under which all tenants beyond the largest `census.max_tenants` are added up."""

NO_TENANT: Final = "__none__"
"""The `tenant_id` of points that have none: missing, null, empty, or no text at all."""

OTHER_SCOPES: Final = "__other__"
"""The `scope` of points whose scope is missing or none of the schema's."""

STATUSES: Final = ("green", "yellow", "grey", "red")
"""What Qdrant may say of a collection: in order, being optimised, optimisation pending, failed."""

WINDOWS: Final = {"1d": 1, "7d": 7, "30d": 30}
"""The windows of the expiry forecast, in days."""

MetricType = Literal["gauge", "counter", "info"]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric; each is declared once, so two are equal only when they are the same.

    `family` is the name in OpenMetrics' sense, with the unit at its end and without `_total` or `_info`; `source`
    says where its numbers come from and how old they may be.
    """

    family: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    source: Literal["census", "jobs", "daemon"] = "census"

    @property
    def name(self) -> str:
        """The name to ask Prometheus for."""
        return self.family + {"gauge": "", "counter": "_total", "info": "_info"}[self.type]


_TENANT: Final = ("collection", "tenant_id", "scope")

POINTS: Final = Metric("comemory_points", "gauge", "Points stored.", _TENANT)
EXPIRED_POINTS: Final = Metric(
    "comemory_expired_points", "gauge", "Points past created_at + ttl_days (+ grace) and not yet deleted.", _TENANT
)
EXPIRED_OLDEST_AGE: Final = Metric(
    "comemory_expired_oldest_age_seconds",
    "gauge",
    "How long ago the expired point that waits longest should have been deleted; 0 when none waits.",
    ("collection",),
    "seconds",
)
EXPIRING_POINTS: Final = Metric(
    "comemory_expiring_points",
    "gauge",
    "Points not yet expired that will be within the window (1d, 7d, 30d); a forecast, not an exact count.",
    ("collection", "tenant_id", "window"),
)
TENANTS: Final = Metric("comemory_tenants", "gauge", "Distinct tenants in the collection.", ("collection",))
TENANTS_FOLDED: Final = Metric(
    "comemory_tenants_folded",
    "gauge",
    f'Tenants beyond census.max_tenants, which have no series of their own but share tenant_id="{OTHER_TENANTS}".',
)

COLLECTION_POINTS: Final = Metric(
    "comemory_collection_points", "gauge", "Points in the collection, counted exactly.", ("collection",)
)
COLLECTION_VECTORS: Final = Metric(
    "comemory_collection_vectors", "gauge", "Points that have the named vector.", ("collection", "vector")
)
COLLECTION_INDEXED_VECTORS: Final = Metric(
    "comemory_collection_indexed_vectors",
    "gauge",
    "Vectors in a graph or quantized index, as Qdrant reports them; small segments are searched without one.",
    ("collection",),
)
COLLECTION_SEGMENTS: Final = Metric(
    "comemory_collection_segments", "gauge", "Segments of the collection.", ("collection",)
)
COLLECTION_STATUS: Final = Metric(
    "comemory_collection_status",
    "gauge",
    f"1 for the status that Qdrant reports, 0 for the others ({', '.join(STATUSES)}).",
    ("collection", "status"),
)
SCHEMA_DRIFT: Final = Metric(
    "comemory_schema_drift",
    "gauge",
    "Differences between the collection as declared and as it is, by kind; see docs/audit.md.",
    ("collection", "kind"),
)

INVALID_POINTS: Final = Metric(
    "comemory_invalid_points",
    "gauge",
    "Points that break the payload schema, by reason, as the last audit counted them; a point may have several.",
    ("collection", "tenant_id", "reason"),
    source="jobs",
)
DUPLICATE_POINTS: Final = Metric(
    "comemory_duplicate_points",
    "gauge",
    "Copies that the last run of dedup found (and, unless it was a dry run, deleted).",
    _TENANT,
    source="jobs",
)
DELETED_POINTS: Final = Metric(
    "comemory_deleted_points",
    "counter",
    "Points deleted since the daemon started, by the job that did it (ttl, dedup).",
    ("job_name", *_TENANT),
    source="jobs",
)

JOB_RUNNING: Final = Metric("comemory_job_running", "gauge", "1 while the job runs.", ("job_name",), source="jobs")
JOB_LAST_SUCCESS: Final = Metric(
    "comemory_job_last_success_timestamp_seconds",
    "gauge",
    "When the job last ended without a problem; absent until it has.",
    ("job_name",),
    "seconds",
    source="jobs",
)
JOB_LAST_DURATION: Final = Metric(
    "comemory_job_last_duration_seconds",
    "gauge",
    "How long the job's last run took.",
    ("job_name",),
    "seconds",
    source="jobs",
)
JOB_PROBLEMS: Final = Metric(
    "comemory_job_problems", "gauge", "Problems that the job's last report names.", ("job_name",), source="jobs"
)
JOB_RUNS: Final = Metric(
    "comemory_job_runs",
    "counter",
    "Runs of the job by outcome: success, partial (something was left for the next), failed.",
    ("job_name", "outcome"),
    source="jobs",
)
JOB_HANDLED: Final = Metric(
    "comemory_job_points_handled", "counter", "Points that the job changed.", ("job_name",), source="jobs"
)
JOB_SKIPPED: Final = Metric(
    "comemory_job_points_skipped",
    "counter",
    "Points that the job found and left alone.",
    ("job_name",),
    source="jobs",
)
JOB_BATCHES: Final = Metric(
    "comemory_job_batches", "counter", "Batches that the job applied.", ("job_name",), source="jobs"
)
JOB_REQUESTS: Final = Metric(
    "comemory_job_requests", "counter", "Requests that the job sent to Qdrant.", ("job_name",), source="jobs"
)
JOB_RETRIES: Final = Metric(
    "comemory_job_retries",
    "counter",
    "Requests sent again because Qdrant was busy or away.",
    ("job_name",),
    source="jobs",
)

JOB_INTERVAL: Final = Metric(
    "comemory_job_interval_seconds",
    "gauge",
    "How much time there is between two runs of the job by its schedule, at most; absent when it has none.",
    ("job_name",),
    "seconds",
    source="daemon",
)

COLLECTOR_SUCCESS: Final = Metric(
    "comemory_collector_success",
    "gauge",
    "1 when the collector's last run worked; at 0 its other series are those of the last run that did.",
    ("collector", "collection"),
)
COLLECTOR_DURATION: Final = Metric(
    "comemory_collector_duration_seconds",
    "gauge",
    "How long the collector's last run took.",
    ("collector", "collection"),
    "seconds",
)
COLLECTOR_LAST_SUCCESS: Final = Metric(
    "comemory_collector_last_success_timestamp_seconds",
    "gauge",
    "When the collector last worked; absent until it has.",
    ("collector", "collection"),
    "seconds",
)
SNAPSHOT_TIME: Final = Metric(
    "comemory_snapshot_timestamp_seconds",
    "gauge",
    "When the last census ended; absent until one has.",
    (),
    "seconds",
)
QDRANT_UP: Final = Metric("comemory_qdrant_up", "gauge", "1 when Qdrant answered the last census.")
QDRANT_INFO: Final = Metric("comemory_qdrant", "info", "The version of Qdrant that answered last.", ("version",))

CERTIFICATE_EXPIRY: Final = Metric(
    "comemory_certificate_expiry_timestamp_seconds",
    "gauge",
    "When a certificate ends: the daemon's own (http), what it trusts Qdrant by (qdrant_ca), Qdrant's (qdrant).",
    ("certificate",),
    "seconds",
)
TOKEN_EXPIRY: Final = Metric(
    "comemory_token_expiry_timestamp_seconds",
    "gauge",
    "When the token that the daemon shows Qdrant ends; absent for a key that has no end.",
    ("token",),
    "seconds",
)

BUILD_INFO: Final = Metric(
    "comemory_build", "info", "The daemon's own version.", ("version", "python"), source="daemon"
)
LEASE_HELD: Final = Metric(
    "comemory_lease_held", "gauge", "1 while this daemon is the one that works.", source="daemon"
)

METRICS: Final[tuple[Metric, ...]] = (
    POINTS, EXPIRED_POINTS, EXPIRED_OLDEST_AGE, EXPIRING_POINTS, TENANTS, TENANTS_FOLDED,
    COLLECTION_POINTS, COLLECTION_VECTORS, COLLECTION_INDEXED_VECTORS, COLLECTION_SEGMENTS, COLLECTION_STATUS,
    SCHEMA_DRIFT,
    COLLECTOR_SUCCESS, COLLECTOR_DURATION, COLLECTOR_LAST_SUCCESS, SNAPSHOT_TIME, QDRANT_UP, QDRANT_INFO,
    CERTIFICATE_EXPIRY, TOKEN_EXPIRY,
    INVALID_POINTS, DUPLICATE_POINTS, DELETED_POINTS,
    JOB_RUNNING, JOB_LAST_SUCCESS, JOB_LAST_DURATION, JOB_PROBLEMS, JOB_RUNS, JOB_HANDLED, JOB_SKIPPED, JOB_BATCHES,
    JOB_REQUESTS, JOB_RETRIES,
    BUILD_INFO, LEASE_HELD, JOB_INTERVAL,
)  # fmt: skip
"""All of them, in the order in which docs and exposition show them."""
