"""Tenant: everything about one tenant, over all its scopes and collections."""

from __future__ import annotations

from dashboards.expressions import aggregate, largest, ratio, total
from dashboards.panels import NONE_IS_GOOD, PLAIN, Board, Panel, Query, Row, bars, lines, number, rising, rows
from dashboards.settings import DashboardSettings
from dashboards.thresholds import Thresholds
from dashboards.variables import of_daemon, ours
from ops import metrics

UID = "comemory-tenant"


def board(settings: DashboardSettings, limits: Thresholds) -> Board:
    """The dashboard."""
    return Board(
        UID,
        "Co-Memory / Tenant",
        "One tenant: its memory by scope, growth, expiry forecast, and the largest sources of invalid payloads.",
        list(of_daemon(one_tenant=True, scope=True)),
        [
            Row("$tenant now", _now(limits)),
            Row("Growth", _growth()),
            Row("Retention", _retention(limits)),
            Row("Quality", _quality(limits)),
        ],
        since="now-7d",
    )


def _now(limits: Thresholds) -> list[Panel]:
    source = ours("one_tenant", "scope")
    points = source.leader(metrics.POINTS)
    everyone = ours("scope").leader(metrics.POINTS)
    return [
        number("Points", "Points of this tenant.", "short", total(points), PLAIN),
        number(
            "Share of all points",
            "This tenant's part of the whole memory. One that outgrows the others may deserve shards of its own.",
            "percentunit", ratio(total(points), total(everyone)), rising(0.5, 0.8),
        ),
        number(
            "Overdue",
            "Points past their time that are not yet deleted. More than one run's worth: see Operations.",
            "short", source.counted(metrics.EXPIRED_POINTS),
            rising(1, limits.backlog_points),
        ),
        number(
            "Expire within a week",
            "A forecast for all scopes; warn the tenant before a large part of its memory goes.",
            "short", source.counted(metrics.EXPIRING_POINTS, 'window="7d"'), PLAIN,
        ),
        number(
            "Breaks of the schema",
            "Findings of the last audit in this tenant's points, of all scopes; the table below says which.",
            "short", source.reported(metrics.INVALID_POINTS, "audit"),
            rising(1, limits.invalid_points),
        ),
        number(
            "Copies found",
            "Copies of this tenant that the last run of dedup found. Never across an access boundary.",
            "short", source.reported(metrics.DUPLICATE_POINTS, "dedup"), PLAIN,
        ),
    ]  # fmt: skip


def _growth() -> list[Panel]:
    source = ours("one_tenant", "scope")
    points = source.leader(metrics.POINTS)
    return [
        lines(
            "Points by scope",
            "What this tenant keeps, by scope. A scope that appears anew tells of a new use.",
            "short", [Query(total(points, "scope"), "{{scope}}")], stacked=True,
        ),
        lines(
            "Points by collection",
            "In which embedding spaces this tenant has points.",
            "short", [Query(total(points, "collection"), "{{collection}}")], stacked=True,
        ),
        lines(
            "Change within a day",
            "Points now less points a day before, over time. Below 0 more was removed than written.",
            "short", [Query(source.change(metrics.POINTS, "1d"), "change")],
        ),
        rows(
            "By collection and scope",
            "Points and overdue points of each part of this tenant's memory.",
            "short",
            [
                Query(total(points, "collection", "scope"), "points"),
                Query(total(source.leader(metrics.EXPIRED_POINTS), "collection", "scope"), "overdue"),
                Query(total(source.leader(metrics.DUPLICATE_POINTS), "collection", "scope"), "copies"),
            ],
            width=12,
            colours={"overdue": NONE_IS_GOOD},
        ),
    ]  # fmt: skip


def _retention(limits: Thresholds) -> list[Panel]:
    source = ours("one_tenant", "scope")
    return [
        bars(
            "Expiry forecast",
            "Points of all scopes that expire within a day, a week and a month; each includes the one before. "
            "Renewed points leave the forecast.",
            "short", [Query(total(source.leader(metrics.EXPIRING_POINTS), "window"), "within {{window}}")], width=8,
        ),
        lines(
            "Overdue by scope",
            "Points past their time that wait for the ttl job. Points with an exempt tag, such as legal_hold, do "
            "not count.",
            "short", [Query(total(source.leader(metrics.EXPIRED_POINTS), "scope"), "{{scope}}")],
            rising(limits.backlog_points), width=8,
        ),
        lines(
            "Deleted",
            "Points of this tenant deleted per second, by job and scope. Ask the logs for the run that did it.",
            "cps",
            [Query(total(source.rate(metrics.DELETED_POINTS), "job_name", "scope"), "{{job_name}} {{scope}}")],
            width=8,
        ),
    ]  # fmt: skip


def _quality(limits: Thresholds) -> list[Panel]:
    source = ours("one_tenant", "scope")
    found = source.leader(metrics.INVALID_POINTS)
    return [
        rows(
            "Largest sources of invalid payloads",
            "Where most breaks of the schema are, in all scopes, by collection and reason. List the points with: "
            "comemory audit --deep --tenant ID --quarantine FILE, and give it to the team that writes them.",
            "short", [Query(largest(20, total(found, "collection", "reason")), "points")],
            width=12, colours={"points": rising(1, limits.invalid_points)},
        ),
        lines(
            "Breaks of the schema over time",
            "By reason, in all scopes. A line that begins on one day began with a writer's new version on that "
            "day.",
            "short", [Query(aggregate("sum", found, "reason"), "{{reason}}")], rising(limits.invalid_points),
        ),
    ]  # fmt: skip
