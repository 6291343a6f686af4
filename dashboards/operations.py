"""Operations: whether the daemon's jobs run, what they cost, and what is left undone."""

from __future__ import annotations

from dashboards.expressions import CLUSTER, WHOLE, aggregate, total
from dashboards.panels import (
    NONE_IS_GOOD,
    ONE_IS_GOOD,
    Board,
    Panel,
    Query,
    Row,
    falling,
    lines,
    number,
    rising,
    rows,
)
from dashboards.rules import LAST_SUCCESS, STALE_AFTER, series
from dashboards.settings import DashboardSettings
from dashboards.thresholds import HOUR, MINUTE, Thresholds, duration
from dashboards.variables import of_daemon, ours, recorded
from ops import metrics

UID = "comemory-operations"


def board(settings: DashboardSettings, limits: Thresholds) -> Board:
    """The dashboard."""
    return Board(
        UID,
        "Co-Memory / Operations",
        "The daemon's jobs: whether they run, how long they take, what they leave, and how it stands with drift.",
        list(of_daemon()),
        [
            Row("The daemon", _daemon(limits)),
            Row("Jobs", _jobs(limits)),
            Row("Work and budgets", _work()),
            Row("Backlog", _backlog(limits)),
            Row("Counting", _counting(limits)),
            Row("Drift and expiry", _drift(limits)),
        ],
        since="now-6h",
    )


def _daemon(limits: Thresholds) -> list[Panel]:
    source = ours()
    remembered = duration(limits.daemon_remembered)
    seen = source.or_missing(aggregate("count", source.of(metrics.BUILD_INFO), *WHOLE), remembered)
    held = total(source.of(metrics.LEASE_HELD), *WHOLE)
    counted = source.counted_at(remembered)
    return [
        number(
            "Daemons",
            "Daemons that Prometheus sees, in the installation that has fewest; 0 where one was seen of late and "
            "is gone. One works, the others wait for its lease.",
            "none", f"min{seen} or vector(0)", ONE_IS_GOOD,
        ),
        number(
            "Daemons that work",
            "Daemons that work, in the installation that has fewest. With 0 nothing is deleted or counted there: "
            "see who holds the lease.",
            "none", f"min{source.or_missing(held, remembered)} or vector(0)", ONE_IS_GOOD,
        ),
        number(
            "Work done twice",
            "Installations in which more than one daemon works. It does no harm, but give them a lease "
            "(lease.kind).",
            "none", f"count({held} > 1) or sum({held}) * 0", NONE_IS_GOOD,
        ),
        number(
            "Age of the census",
            "How old the oldest numbers of these dashboards are, of all installations. When it grows, no daemon "
            "works, Qdrant is away, or the census fails.",
            "s", f"time() - min{counted}", rising(3 * MINUTE, limits.census_old),
        ),
        number(
            "Problems named",
            "Problems in the last reports of all jobs. Read them at /status, or in the log event `run`.",
            "none", total(source.leader(metrics.JOB_PROBLEMS)), NONE_IS_GOOD,
        ),
        number(
            "Tenants folded",
            "Tenants beyond census.max_tenants, which share one series. Raise the setting if you need to see them.",
            "none", aggregate("max", source.leader(metrics.TENANTS_FOLDED)), NONE_IS_GOOD,
        ),
    ]  # fmt: skip


def _jobs(limits: Thresholds) -> list[Panel]:
    source = ours()
    by = "job_name"
    success, limit = (series(recorded_series, *recorded()) for recorded_series in (LAST_SUCCESS, STALE_AFTER))
    return [
        rows(
            "Jobs now",
            "The last run of each job. `of limit` compares the time since its last success with what its own "
            "schedule allows; beyond 100%, or when runs only fail, there are alerts. No time: no success is "
            "known. Run one by hand with: comemory JOB --dry-run.",
            "none",
            [
                Query(f"time() - {success}", "since success"),
                Query(f"(time() - {success}) / {limit}", "of limit"),
                Query(source.leader(metrics.JOB_LAST_DURATION), "last took"),
                Query(source.leader(metrics.JOB_PROBLEMS), "problems"),
                Query(source.leader(metrics.JOB_RUNNING), "running"),
            ],
            units={"since success": "s", "of limit": "percentunit", "last took": "s"},
            colours={"of limit": rising(0.75, 1), "problems": NONE_IS_GOOD},
        ),
        lines(
            "Runs by outcome",
            "Runs per second. `partial` left something for the next run (a budget, one collection); `failed` did "
            "nothing.",
            "cps",
            [Query(total(source.rate(metrics.JOB_RUNS), by, "outcome") + " > 0", "{{job_name}} {{outcome}}")],
        ),
        lines(
            "Duration of the last run",
            "Growth follows the number of points; a jump tells of a missing index or a busy server.",
            "s", [Query(aggregate("max", source.leader(metrics.JOB_LAST_DURATION), by), "{{job_name}}")],
            rising(10 * MINUTE, HOUR),
        ),
    ]  # fmt: skip


def _work() -> list[Panel]:
    source = ours()
    by = "job_name"
    return [
        lines(
            "Points handled",
            "Points changed per second by each job. A flat line at points_per_second is the speed limit at work.",
            "cps", [Query(total(source.rate(metrics.JOB_HANDLED), by), "{{job_name}}")], width=8,
        ),
        lines(
            "Points found and left alone",
            "Points per second that a job found but did not change: renewed meanwhile, exempt, or past its budget.",
            "cps", [Query(total(source.rate(metrics.JOB_SKIPPED), by), "{{job_name}}")], width=8,
        ),
        lines(
            "Runs that left something",
            "Runs per second that ended as partial. If it is always the same job, raise its max_points or "
            "max_seconds.",
            "cps", [Query(total(source.rate(metrics.JOB_RUNS, 'outcome="partial"'), by), "{{job_name}}")], width=8,
        ),
        lines(
            "Batches",
            "Batches of deletions per second.",
            "cps", [Query(total(source.rate(metrics.JOB_BATCHES), by), "{{job_name}}")], width=8,
        ),
        lines(
            "Requests to Qdrant",
            "What the jobs cost Qdrant. The number does not depend on how many tenants there are.",
            "reqps", [Query(total(source.rate(metrics.JOB_REQUESTS), by), "{{job_name}}")], width=8,
        ),
        lines(
            "Retries",
            "Requests sent again because Qdrant was busy or away. If it does not end: lower batch or "
            "points_per_second, or give Qdrant more.",
            "reqps", [Query(total(source.rate(metrics.JOB_RETRIES), by), "{{job_name}}")], rising(0.1, 1), width=8,
        ),
    ]  # fmt: skip


def _backlog(limits: Thresholds) -> list[Panel]:
    source = ours()
    return [
        lines(
            "Overdue points",
            "Points past their time and not yet deleted. The ttl job brings it down at each run.",
            "short", [Query(total(source.leader(metrics.EXPIRED_POINTS), "collection"), "{{collection}}")],
            rising(limits.backlog_points), width=8,
        ),
        lines(
            "Oldest overdue point",
            "For how long the oldest has been overdue. It should stay below a few intervals of the ttl job.",
            "s", [Query(aggregate("max", source.leader(metrics.EXPIRED_OLDEST_AGE), "collection"),
                        "{{collection}}")],
            rising(limits.backlog_age), width=8,
        ),
        lines(
            "Deleted by collection",
            "Points deleted per second. Compare it with what expires: in the long run both must be equal.",
            "cps", [Query(total(source.rate(metrics.DELETED_POINTS), "collection", "job_name"),
                          "{{collection}} {{job_name}}")],
            width=8,
        ),
    ]  # fmt: skip


def _counting(limits: Thresholds) -> list[Panel]:
    source = ours()
    return [
        rows(
            "Collectors",
            "Who counts what. At `works` 0 the numbers are those of the last success; the job census names the "
            "reason in its problems.",
            "none",
            [
                Query(source.leader(metrics.COLLECTOR_SUCCESS, pick="min"), "works"),
                Query(source.leader(metrics.COLLECTOR_DURATION), "took"),
                Query(f"time() - {source.leader(metrics.COLLECTOR_LAST_SUCCESS)}", "since success"),
            ],
            width=12, units={"took": "s", "since success": "s"},
            colours={"works": ONE_IS_GOOD, "since success": rising(3 * MINUTE, limits.census_old)},
        ),
        lines(
            "Duration of collectors",
            "What one census spends where. It should stay far below its interval.",
            "s", [Query(aggregate("max", source.leader(metrics.COLLECTOR_DURATION), "collector"), "{{collector}}")],
            rising(30, 60),
        ),
    ]  # fmt: skip


def _drift(limits: Thresholds) -> list[Panel]:
    source = ours()
    drift = source.leader(metrics.SCHEMA_DRIFT)
    return [
        rows(
            "Differences from declared",
            "What of each collection is not as declared. `comemory plan` shows the change, `pulumi up` makes it; "
            "docs/audit.md explains the kinds.",
            "none",
            [Query(f"{total(drift, CLUSTER, 'collection', 'kind')} > 0", "differences")],
            width=12, colours={"differences": NONE_IS_GOOD},
        ),
        lines(
            "Time until certificates and tokens end",
            "Renew them before 0: after that connections are refused.",
            "s",
            [
                Query(f"{aggregate('min', source.of(metrics.CERTIFICATE_EXPIRY), 'certificate')} - time()",
                      "certificate {{certificate}}"),
                Query(f"{aggregate('min', source.of(metrics.TOKEN_EXPIRY), 'token')} - time()", "token {{token}}"),
            ],
            falling(limits.certificate_warning, limits.certificate_critical),
        ),
    ]  # fmt: skip
