"""What `comemory migrate` prints: the plan, a report, and the counts of both sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ops.cli import output
from ops.report import JobReport


def show_plan(plan: Mapping[str, Any], *, as_json: bool) -> None:
    """What would become of each collection, who would read it, and what has no place and why."""
    if as_json:
        output.print_json({"format": 1, **plan})
        return
    rows = [
        (
            one["collection"],
            f"{one['points']:,}",
            ", ".join(f"{shape} {count:,}" for shape, count in one["shapes"].items()) or "none",
            "0" if one["blocked"] else f"{one['mapped']:,}",
            "0" if one["blocked"] else f"{sum(one['refused'].values()):,}",
            f"{one['left_out']:,}",
        )
        for one in plan["collections"]
    ]
    output.table(
        ("collection", "points", "shapes found", "migrated", "quarantined", "left out"),
        rows,
        right=("points", "migrated", "quarantined", "left out"),
    )
    ways = [
        (
            one["collection"], way["rule"], way["target"], way["tenant"], way["scope"],
            _who_reads(way), f"{way['count']:,}",
        )
        for one in plan["collections"] if not one["blocked"] for way in one["rules"]
    ]  # fmt: skip
    if ways:
        output.console().print()
        output.table(
            ("collection", "rule", "target", "tenant", "scope", "who reads", "how many"), ways, right=["how many"]
        )
    reasons = [
        (one["collection"], code, f"{count:,}", (one["examples"].get(code) or [""])[0])
        for one in plan["collections"] if not one["blocked"] for code, count in one["refused"].items()
    ]  # fmt: skip
    if reasons:
        output.console().print()
        output.table(("collection", "no place because", "how many", "first"), reasons, right=["how many"])
    for one in plan["collections"]:
        if one["blocked"]:
            output.tell(f"{one['collection']} cannot be migrated: {one['blocked']}.")
    for alias, name in plan["aliases"].items():
        output.tell(f"{alias} is an alias of {name}, which no rule is about; name that in the rule.")
    if plan["others"]:
        output.tell(f"No rule is about {', '.join(plan['others'])}; left alone.")


def _who_reads(way: Mapping[str, Any]) -> str:
    readers = way["readers"]
    if way["visibility"] == "public" and readers == way["tenant"]:
        readers = f"all of {readers}"
    return f"{way['visibility']}{f': {readers}' if readers else ''}, owner: {way['owner_kind']}"


def show_report(result: JobReport, *, as_json: bool) -> None:
    """How it went, as a table or as JSON."""
    if as_json:
        output.print_json(result.to_json())
    else:
        output.report(result)


def show_counts(result: JobReport) -> None:
    """The counts per rule on both sides, and whether the digests are equal."""
    rows = [
        (collection, rule, f"{count['source']:,}", f"{count['target']:,}")
        for collection, details in result.details.items() for rule, count in (details.get("rules") or {}).items()
    ]  # fmt: skip
    output.table(("collection", "rule", "source", "target"), rows, right=("source", "target"))
    for collection, details in result.details.items():
        digests = details.get("digests")
        if digests is not None:
            same = "equal" if digests["source"] == digests["target"] else "different"
            output.console().print(
                f"{collection}: digests of ids, payloads and vectors are {same} ({digests['source'][:16]})",
                markup=False,
            )
