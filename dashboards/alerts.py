"""The alerts: each needs a person, says what is wrong and where, and has a page in `docs/runbooks/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from dashboards import foreign, rules
from dashboards.expressions import CLUSTER, WHOLE, Source, aggregate
from dashboards.rules import Recorded, series
from dashboards.settings import DashboardSettings
from dashboards.thresholds import DEFAULTS, Thresholds, duration, number
from ops import metrics

PREFIX: Final = "Comemory"
QDRANT_DOWN: Final = "QdrantDown"
BY: Final = ", ".join(WHOLE)


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert: `name` without the prefix, `lasting` in seconds, `job_name` a label that tells rules apart."""

    name: str
    expression: str
    lasting: float
    severity: Literal["critical", "warning"]
    summary: str
    description: str
    job_name: str | None = None

    def rule(self, settings: DashboardSettings) -> dict[str, Any]:
        """It, as a rule file of Prometheus writes it."""
        full = f"{PREFIX}{self.name}"
        return {
            "alert": full,
            "expr": self.expression,
            "for": duration(self.lasting),
            "labels": {"severity": self.severity} | ({"job_name": self.job_name} if self.job_name else {}),
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{settings.runbook_base.rstrip('/')}/{full}.md",
            },
        }


def groups(settings: DashboardSettings, limits: Thresholds = DEFAULTS) -> list[dict[str, Any]]:
    """The rule groups, as in a rule file of Prometheus."""
    ours = Source(qdrant_prefix=settings.qdrant_prefix)
    theirs = Source((f'job=~"{settings.qdrant_jobs}"',), qdrant_prefix=settings.qdrant_prefix)
    by_group = {
        "comemory.daemon.alerts": [*_daemon(ours, limits), *_jobs(ours, limits), *_expiry(ours, limits)],
        "comemory.memory.alerts": list(_memory(ours, limits)),
        "comemory.qdrant.alerts": list(_qdrant(ours, theirs, settings, limits)),
    }
    return [{"name": name, "rules": [a.rule(settings) for a in alerts]} for name, alerts in by_group.items()]


def _daemon(ours: Source, limits: Thresholds) -> Iterator[Alert]:
    build = metrics.BUILD_INFO.name
    seen = f"last_over_time({build}[{duration(limits.daemon_remembered)}])"
    yield Alert(
        "DaemonAbsent",
        f"(group by ({BY}) ({seen}) unless group by ({BY}) ({build})) or on () absent({build})",
        limits.daemon_absent,
        "critical",
        "No ops daemon of {{ $labels.cluster }} {{ $labels.job }} is seen by Prometheus.",
        "Nothing expires, no copy is removed and nothing is counted until one runs again; "
        "all other alerts of Co-Memory are blind meanwhile.",
    )
    yield Alert(
        "NoActiveDaemon",
        f"{aggregate('max', ours.of(metrics.LEASE_HELD), *WHOLE)} == 0",
        limits.no_active_daemon,
        "critical",
        "Daemons of {{ $labels.cluster }} {{ $labels.job }} run, but none holds the lease.",
        "Each waits; no job runs. The lease may be held by something that no longer lives, or be out of reach.",
    )
    yield Alert(
        "CollectorFailing",
        f"{ours.leader(metrics.COLLECTOR_SUCCESS, pick='min')} == 0 "
        f"and on ({BY}) {ours.leader(metrics.QDRANT_UP)} == 1",
        limits.collector_failing,
        "warning",
        "The collector {{ $labels.collector }} cannot count {{ $labels.collection }}.",
        "Its numbers on the dashboards are those of its last success. Qdrant answers otherwise.",
    )


def _jobs(ours: Source, limits: Thresholds) -> Iterator[Alert]:
    untold = _untold(limits)
    # of a daemon that is ended again and again, too: it is never seen for as long as an alert must last
    stale_after = f"last_over_time({series(rules.STALE_AFTER)}[{duration(limits.schedule_remembered)}])"
    yield Alert(
        "JobStale",
        f"time() - {series(rules.LAST_SUCCESS)} > {stale_after} {untold}",
        limits.persistent / 3,
        "warning",
        "The job {{ $labels.job_name }} last succeeded {{ $value | humanizeDuration }} ago.",
        f"That is more than {number(limits.stale_intervals)} of its intervals and a little. It may fail, be cut "
        "short by its budget each time, or not be started.",
    )
    seen = f"timestamp({ours.of(metrics.JOB_INTERVAL)})[{duration(limits.jobs_remembered)}:5m]"
    first = f"min by ({BY}, job_name) (min_over_time({seen}))"
    yield Alert(
        "JobNeverSucceeded",
        f"{stale_after} < time() - {first} unless on ({BY}, job_name) {series(rules.LAST_SUCCESS)} {untold}",
        limits.persistent,
        "warning",
        "The job {{ $labels.job_name }} has not succeeded since it was first seen, and should every "
        "{{ $value | humanizeDuration }}.",
        "Each of its runs fails, is cut short, or is ended by a restart before it is done.",
    )
    for job, limit in limits.failing.items():
        this, window = f'job_name="{job}"', duration(limit)
        failed = ours.of(metrics.JOB_RUNS, this, 'outcome="failed"')
        worked = ours.of(metrics.JOB_RUNS, this, 'outcome!="failed"')
        # rounded, since one failure is a little more than 1 where Prometheus extrapolates to the whole window
        yield Alert(
            "JobFailing",
            f"round(sum by ({BY}, job_name) (increase({failed}[{window}]))) > 1 "
            f"unless sum by ({BY}, job_name) (increase({worked}[{window}])) > 0 {untold}",
            limits.persistent / 3,
            "warning",
            "The job {{ $labels.job_name }} only fails: {{ $value | humanize }} times in " + window + ".",
            "No run of it did anything in that time. The reason is the run's `problems` in the log and in /status.",
            job,
        )


def _untold(limits: Thresholds) -> str:
    """Left out where an outage of Qdrant is the reason, of which `QdrantDown` tells, or told a short while ago.

    A shorter outage, of which nobody is told, holds nothing back.
    """
    firing = f'{foreign.ALERTS.name}{{alertname="{PREFIX}{QDRANT_DOWN}", alertstate="firing"}}'
    return f"unless on ({BY}) max_over_time({firing}[{duration(limits.outage_told)}])"


def _memory(ours: Source, limits: Thresholds) -> Iterator[Alert]:
    yield Alert(
        "RetentionBacklogOld",
        f"{series(rules.EXPIRED_AGE)} > {number(limits.backlog_age)}",
        limits.persistent,
        "warning",
        "Points of {{ $labels.collection }} should have been deleted {{ $value | humanizeDuration }} ago.",
        "Memory is kept longer than its owners were promised.",
    )
    yield Alert(
        "RetentionBacklogGrowing",
        _risen(rules.EXPIRED, limits.backlog_points, limits.backlog_growth, limits.backlog_window),
        limits.backlog_persistent,
        "warning",
        "{{ $value | humanize }} expired points of {{ $labels.collection }} wait, and they become more.",
        "More expires than is deleted. The budget or the speed limit of the job may be too small for what comes.",
    )
    yield Alert(
        "DuplicatesRising",
        _risen(rules.DUPLICATES, limits.duplicate_points, limits.duplicate_growth, limits.duplicate_window),
        limits.persistent,
        "warning",
        "The last dedup found {{ $value | humanize }} copies in {{ $labels.collection }}, far more than before.",
        "Some writer probably stores the same things again and again.",
    )
    yield Alert(
        "InvalidPayloads",
        f"{series(rules.INVALID)} > {number(limits.invalid_points)}",
        limits.persistent,
        "warning",
        "{{ $value | humanize }} points of {{ $labels.collection }} break the schema: {{ $labels.reason }}.",
        "What breaks the schema may be found by nobody, never expire, or never be recognised as a copy.",
    )
    yield Alert(
        "SchemaDrift",
        f"{series(rules.DRIFT)} > 0",
        limits.drift,
        "warning",
        "{{ $labels.collection }} is not as declared: {{ $labels.kind }} ({{ $value | humanize }}).",
        "Filters may be slow or refused, or what was declared does not exist.",
    )
    yield Alert(
        "TenantsFolded",
        f"{ours.leader(metrics.TENANTS_FOLDED)} > 0",
        limits.folded,
        "warning",
        "{{ $value | humanize }} tenants have no series of their own.",
        f'They are added up under tenant_id="{metrics.OTHER_TENANTS}", and cannot be told apart on the dashboards.',
    )


def _qdrant(ours: Source, theirs: Source, settings: DashboardSettings, limits: Thresholds) -> Iterator[Alert]:
    yield Alert(
        QDRANT_DOWN,
        f"{ours.leader(metrics.QDRANT_UP)} == 0",
        limits.qdrant_down,
        "critical",
        "Qdrant does not answer the daemon of {{ $labels.cluster }}.",
        "Agents most likely cannot read or write their memory either.",
    )
    yield Alert(
        "QdrantTargetDown",
        f"{theirs.of(foreign.UP)} == 0",
        limits.qdrant_target_down,
        "warning",
        "Prometheus cannot scrape Qdrant at {{ $labels.instance }}.",
        "This instance is down, or refuses the scrape; where there are replicas, others may still answer.",
    )
    yield Alert(
        "QdrantReplicaDead",
        f"{aggregate('max', theirs.of(foreign.DEAD_REPLICAS), *WHOLE)} > 0",
        limits.replica_dead,
        "critical",
        "{{ $value | humanize }} shards of Qdrant in {{ $labels.cluster }} have a replica that is not active.",
        "One more loss and these shards may answer nothing.",
    )
    for status, severity, lasting, meaning in (
        ("red", "critical", limits.collection_red, "Qdrant failed to optimise it; writes may be lost."),
        ("grey", "warning", limits.collection_grey, "Its optimisation waits, so searches become slower."),
    ):
        statuses = ours.leader(metrics.COLLECTION_STATUS, f'status="{status}"')
        yield Alert(
            f"Collection{status.capitalize()}",
            f"{aggregate('max', statuses, *WHOLE, 'collection')} == 1",
            lasting,
            "critical" if severity == "critical" else "warning",
            f"The collection {{{{ $labels.collection }}}} is {status}.",
            meaning,
        )
    yield Alert(
        "QdrantMemoryNearLimit",
        " or ".join(_memory_use(theirs, settings, number(limits.memory_ratio))),
        limits.memory,
        "warning",
        "Qdrant {{ $labels.pod }}{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its memory.",
        "When the limit is reached the process is killed, and starts again with all its work before it.",
    )


def _memory_use(theirs: Source, settings: DashboardSettings, most: str) -> Iterator[str]:
    by = (CLUSTER, "namespace", "pod")
    container = 'container="qdrant"'
    used = aggregate("max", theirs.bare(foreign.CONTAINER_MEMORY, container), *by)
    limit = aggregate("max", theirs.bare(foreign.CONTAINER_LIMITS, container, 'resource="memory"'), *by)
    contained, on = f"{used} / {limit}", f"on ({', '.join(by)})"
    # only of pods that are scraped as ours: somebody else may run a Qdrant, too
    yield f"{contained} > {most} and {on} {theirs.of(foreign.UP)}"
    if settings.qdrant_memory_bytes is not None:
        # not a second alert about a pod that the first one watches
        resident = f"{theirs.of(foreign.MEMORY_RESIDENT)} / {settings.qdrant_memory_bytes}"
        yield f"({resident} unless {on} {contained}) > {most}"


def _expiry(ours: Source, limits: Thresholds) -> Iterator[Alert]:
    for what, metric, label, warning, critical in (
        ("Certificate", metrics.CERTIFICATE_EXPIRY, "certificate", limits.certificate_warning,
         limits.certificate_critical),
        ("Token", metrics.TOKEN_EXPIRY, "token", limits.token_warning, limits.token_critical),
    ):  # fmt: skip
        left = f"{aggregate('min', ours.of(metric), *WHOLE, label)} - time()"
        summary = f"The {what.lower()} {{{{ $labels.{label} }}}} ends in {{{{ $value | humanizeDuration }}}}."
        description = "After that connections that need it are refused."
        yield Alert(
            f"{what}Expiring", f"{left} < {number(warning)} > {number(critical)}", limits.persistent, "warning",
            summary, description,
        )  # fmt: skip
        yield Alert(
            f"{what}Expiring", f"{left} <= {number(critical)}", limits.persistent, "critical", summary, description
        )


def _risen(recorded: Recorded, least: float, factor: float, window: float) -> str:
    now = series(recorded)
    return f"{now} > {number(least)} and {now} > {number(factor)} * {now} offset {duration(window)}"


def names(settings: DashboardSettings | None = None) -> tuple[str, ...]:
    """Every alert's full name, each once, in the order of the file."""
    made = groups(settings or DashboardSettings())
    return tuple(dict.fromkeys(rule["alert"] for group in made for rule in group["rules"]))
