"""Overview: the whole fleet at a glance. What is red here is explained by a link to a closer dashboard."""

from __future__ import annotations

from dashboards import foreign
from dashboards.alerts import PREFIX
from dashboards.expressions import CLUSTER, WHOLE, Source, aggregate, largest, total
from dashboards.panels import (
    NONE_IS_GOOD,
    ONE_IS_GOOD,
    ONE_ONLY,
    PLAIN,
    Board,
    Panel,
    Query,
    Row,
    bars,
    lines,
    number,
    rising,
    rows,
)
from dashboards.settings import DashboardSettings
from dashboards.thresholds import MINUTE, Thresholds, duration
from dashboards.variables import of_daemon, ours
from ops import metrics
from ops.metrics import NO_TENANT, OTHER_TENANTS, Metric

UID = "comemory-overview"
_ALWAYS = "${__url_time_range}&${datasource:queryparam}"
_KEPT = f"{_ALWAYS}&${{cluster:queryparam}}"
TO_TENANT = {"This tenant": f"/d/comemory-tenant?{_KEPT}&var-tenant=${{__data.fields.tenant_id:percentencode}}"}
TO_INSTALLATION = {
    "Its operations": f"/d/comemory-operations?{_ALWAYS}&var-cluster=${{__data.fields.cluster:percentencode}}"
}
TO_OPERATIONS = {"Operations": f"/d/comemory-operations?{_KEPT}"}
TO_QDRANT = {"Qdrant": f"/d/comemory-qdrant?{_KEPT}"}
YES = {"0": ("no", "red"), "1": ("yes", "green")}


def board(settings: DashboardSettings, limits: Thresholds) -> Board:
    """The dashboard."""
    return Board(
        UID,
        "Co-Memory / Overview",
        "The memory of all tenants: how much there is, what expires, what was cleaned, and whether all is well.",
        list(of_daemon(tenant=True, scope=True)),
        [
            Row("Is all well?", _health(limits)),
            Row("How much there is", _size()),
            Row("What expires and what was cleaned", _cleaning(limits)),
            Row("Does the schema hold?", _schema(limits)),
        ],
    )


def _health(limits: Thresholds) -> list[Panel]:
    source = ours("tenant", "scope")
    remembered = duration(limits.daemon_remembered)
    alerts = f'{foreign.ALERTS.name}{{alertname=~"{PREFIX}.*", alertstate="firing", cluster=~"$cluster"}}'
    return [
        number(
            "Alerts firing",
            "Alerts of Co-Memory that fire now. Each names its runbook; begin with the critical ones.",
            "none", f"count({alerts}) or vector(0)", rising(1, 3),
        ),
        number(
            "Qdrant answers",
            "Whether every Qdrant answered its last census; no also where no daemon works that could ask. Look at "
            "the Qdrant dashboard and its pods first.",
            "none", _worst(source.or_missing(source.leader(metrics.QDRANT_UP), remembered)), ONE_IS_GOOD,
            words=YES, links=TO_QDRANT,
        ),
        number(
            "Daemon works",
            "Whether a daemon works in every installation. Where not, nothing is deleted or counted: the table "
            "below says where.",
            "none",
            _worst(source.or_missing(aggregate("max", source.of(metrics.LEASE_HELD), *WHOLE), remembered)),
            ONE_IS_GOOD, words=YES, links=TO_OPERATIONS,
        ),
        number(
            "Oldest overdue point",
            "How long the expired point that waits longest, of all tenants and scopes, has been overdue. When it "
            "grows past a few runs of the ttl job, look at that job's budget and problems.",
            "s", aggregate("max", source.leader(metrics.EXPIRED_OLDEST_AGE)),
            rising(limits.backlog_age / 3, limits.backlog_age), links=TO_OPERATIONS,
        ),
        number(
            "Breaks of the schema",
            "Findings of the last audit, in all scopes; a point may have several. List them with: comemory audit "
            "--deep --quarantine FILE.",
            "short", source.reported(metrics.INVALID_POINTS, "audit"),
            rising(1, limits.invalid_points),
        ),
        number(
            "Differences from declared",
            "Differences between collections as declared and as they are. `comemory plan` shows them, `pulumi up` "
            "mends most.",
            "none", total(source.leader(metrics.SCHEMA_DRIFT)), NONE_IS_GOOD, links=TO_OPERATIONS,
        ),
        _installations(source, limits, remembered),
    ]  # fmt: skip


def _worst(each: str) -> str:
    """Of several installations that which has least; 0 when there is none."""
    return f"min{each} or vector(0)"


def _installations(source: Source, limits: Thresholds, remembered: str) -> Panel:
    def sums(expression: str) -> str:
        return source.or_missing(total(expression, *WHOLE), remembered)

    return rows(
        "Each installation",
        "One line for each, also for one whose daemon is gone since some days. Two that work without a lease do "
        "the work twice. Click one to see its jobs.",
        "none",
        [
            Query(
                source.or_missing(aggregate("count", source.of(metrics.BUILD_INFO), *WHOLE), remembered), "daemons"
            ),
            Query(sums(source.of(metrics.LEASE_HELD)), "work"),
            Query(source.or_missing(source.leader(metrics.QDRANT_UP), remembered), "Qdrant answers"),
            Query(f"time() - {source.counted_at(remembered)}", "counted ago"),
            Query(total(source.leader(metrics.COLLECTION_POINTS), *WHOLE), "points"),
            Query(aggregate("max", source.leader(metrics.EXPIRED_OLDEST_AGE), *WHOLE), "oldest overdue"),
            Query(total(source.leader(metrics.SCHEMA_DRIFT), *WHOLE), "differences"),
        ],
        height=6,
        units={"counted ago": "s", "oldest overdue": "s", "points": "short"},
        colours={
            "daemons": ONE_IS_GOOD,
            "work": ONE_ONLY,
            "Qdrant answers": ONE_IS_GOOD,
            "counted ago": rising(3 * MINUTE, limits.census_old),
            "oldest overdue": rising(limits.backlog_age / 3, limits.backlog_age),
            "differences": NONE_IS_GOOD,
        },
        links=TO_INSTALLATION,
    )


def _size() -> list[Panel]:
    source = ours("tenant", "scope")
    points = source.leader(metrics.POINTS)
    named = source.leader(metrics.POINTS, f'tenant_id!~"{NO_TENANT}|{OTHER_TENANTS}"')
    others = source.leader(metrics.POINTS, f'tenant_id="{OTHER_TENANTS}"')
    folded = f"{source.leader(metrics.TENANTS_FOLDED)} and on ({', '.join(WHOLE)}) {others}"
    tenants = f"sum({aggregate('group', named, 'tenant_id')} or {folded})"
    most = largest(20, total(points, "tenant_id"))
    per = ["collection"]

    def of_largest(metric: Metric) -> str:
        return f"{total(source.leader(metric), 'tenant_id')} and on (tenant_id) {most}"

    return [
        number(
            "Points", "Points stored, of the tenants and scopes chosen above.", "short", total(points), PLAIN
        ),
        number(
            "Tenants",
            "Tenants that have points, of those chosen above. Those beyond census.max_tenants are counted where "
            "all are chosen, but have no series.",
            "none", tenants, PLAIN,
        ),
        number(
            "Collections",
            "Collections looked after. Fewer than declared is drift: see Operations.",
            "none", f"count({source.leader(metrics.COLLECTION_POINTS)})", PLAIN,
        ),
        number(
            "Added or removed in a day",
            "Points now less points a day ago (negative: more were removed). A jump without a known cause deserves "
            "a look at the tenants below.",
            "short", source.change(metrics.POINTS, "1d"), PLAIN,
        ),
        number(
            "Expire within a week",
            "A forecast, for all scopes, of what the ttl job will delete within seven days, if nobody renews it.",
            "short", source.counted(metrics.EXPIRING_POINTS, 'window="7d"'), PLAIN,
        ),
        number(
            "Copies found",
            "Copies that the last run of dedup found (and deleted, unless it was a dry run). Many each time: a "
            "writer stores the same again and again.",
            "short", source.reported(metrics.DUPLICATE_POINTS, "dedup"), PLAIN,
        ),
        lines(
            "Points by collection",
            "Growth of each collection. Plan memory and disk by it.",
            "short", [Query(total(points, *per), "{{collection}}")], stacked=True,
        ),
        lines(
            "Points by scope",
            "What the memory is made of: documents, messages, agents' memory, artifacts, signals.",
            "short", [Query(total(points, "scope"), "{{scope}}")], stacked=True,
        ),
        rows(
            "Largest tenants",
            "The 20 tenants with most points, with what is overdue and what breaks the schema (in all scopes). "
            "Click one for its own dashboard.",
            "short",
            [
                Query(most, "points"),
                Query(of_largest(metrics.EXPIRED_POINTS), "overdue"),
                Query(of_largest(metrics.INVALID_POINTS), "invalid"),
                Query(of_largest(metrics.DUPLICATE_POINTS), "copies"),
            ],
            links=TO_TENANT,
            colours={"overdue": NONE_IS_GOOD, "invalid": NONE_IS_GOOD},
        ),
    ]  # fmt: skip


def _cleaning(limits: Thresholds) -> list[Panel]:
    source = ours("tenant", "scope")
    return [
        lines(
            "Overdue points",
            "Points past their time that are not yet deleted. It falls with each run of the ttl job; where it only "
            "rises, the job's budget is too small or the job does not run.",
            "short", [Query(total(source.leader(metrics.EXPIRED_POINTS), "collection"), "{{collection}}")],
            rising(limits.backlog_points),
        ),
        lines(
            "Deleted",
            "Points deleted per second, by the job that did it: ttl (expired) or dedup (copies).",
            "cps", [Query(total(source.rate(metrics.DELETED_POINTS), "job_name"), "{{job_name}}")],
        ),
        bars(
            "Will expire",
            "Points of all scopes that expire within a day, a week and a month; each includes the one before. A "
            "forecast.",
            "short", [Query(total(source.leader(metrics.EXPIRING_POINTS), "window"), "within {{window}}")],
            width=8,
        ),
        lines(
            "Copies found by scope",
            "Copies that the last run of dedup found. A step up that stays tells of a writer that repeats itself.",
            "short", [Query(total(source.leader(metrics.DUPLICATE_POINTS), "scope"), "{{scope}}")], width=16,
        ),
    ]  # fmt: skip


def _schema(limits: Thresholds) -> list[Panel]:
    source = ours("tenant", "scope")
    found = source.leader(metrics.INVALID_POINTS)
    each = (CLUSTER, "collection")
    return [
        lines(
            "Breaks of the schema by reason",
            "What the last audit found in all scopes, by reason; docs/audit.md explains each. New reasons come "
            "with new writers.",
            "short", [Query(largest(10, total(found, "reason")), "{{reason}}")], rising(limits.invalid_points),
        ),
        lines(
            "Differences from declared by kind",
            "What of the collections is not as declared, by kind; docs/audit.md explains each. 0 is right.",
            "none", [Query(total(source.leader(metrics.SCHEMA_DRIFT), "kind") + " > 0", "{{kind}}"),
                     Query(total(source.leader(metrics.SCHEMA_DRIFT)), "all")],
            NONE_IS_GOOD,
        ),
        rows(
            "Each collection",
            "Each collection as it is now, with all its tenants and scopes. Red and grey are states that Qdrant "
            "reports; see the Qdrant dashboard.",
            "short",
            [
                Query(total(source.leader(metrics.COLLECTION_POINTS), *each), "points"),
                Query(total(source.leader(metrics.TENANTS), *each), "tenants"),
                Query(total(source.leader(metrics.COLLECTION_INDEXED_VECTORS), *each), "indexed vectors"),
                Query(total(source.leader(metrics.COLLECTION_SEGMENTS), *each), "segments"),
                Query(aggregate("max", source.leader(metrics.EXPIRED_OLDEST_AGE), *each), "oldest overdue"),
                Query(total(source.leader(metrics.SCHEMA_DRIFT), *each), "differences"),
                Query(
                    total(source.leader(metrics.COLLECTION_STATUS, 'status=~"red|grey"'), *each),
                    "red or grey",
                ),
            ],
            units={"oldest overdue": "s"},
            colours={
                "oldest overdue": rising(limits.backlog_age / 3, limits.backlog_age),
                "differences": NONE_IS_GOOD,
                "red or grey": NONE_IS_GOOD,
            },
        ),
    ]  # fmt: skip
