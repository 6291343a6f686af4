"""A job as `/status` shows it; documented in docs/operations.md."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ops.results import JobState

STATUS_ROWS = 100
"""Rows of a report that are shown; a census has one per tenant and scope."""


def job_json(state: JobState) -> dict[str, Any]:
    """What the job is doing, its totals, and its last report, shortened."""
    report = None
    if state.last_report is not None:
        report = state.last_report.to_json()
        rows, problems = report["rows"], report["problems"]
        report |= {
            "rows": rows[:STATUS_ROWS],
            "rows_omitted": max(0, len(rows) - STATUS_ROWS),
            "problems": problems[:STATUS_ROWS],
            "details": shortened(report["details"]),
        }
    return {
        "running": state.running,
        "started": moment(state.started),
        "last_success": moment(state.last_success),
        "last_duration_seconds": state.last_duration,
        "last_error": state.last_error,
        "outcomes": dict(state.outcomes),
        "handled": state.handled,
        "skipped": state.skipped,
        "batches": state.batches,
        "requests": state.requests,
        "retries": state.retries,
        "last_report": report,
    }


def shortened(value: Any) -> Any:
    """Details without what is longer than the rows: there may be one item per tenant and scope."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in list(value.items())[:STATUS_ROWS]}
    return [shortened(item) for item in value[:STATUS_ROWS]] if isinstance(value, list | tuple) else value


def moment(time: datetime | None) -> str | None:
    """A time in RFC 3339, UTC."""
    return None if time is None else time.isoformat().replace("+00:00", "Z")
