"""What the command line prints: tables and JSON on stdout, problems on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from ops.report import JobReport

WIDTH_OF_A_FILE = 200
"""Columns when stdout is no terminal; rich would take 80 and cut names."""


def console() -> Console:
    """Stdout, as wide as the terminal."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE, highlight=False, soft_wrap=False)


def tell(sentence: str) -> None:
    """A sentence for the person, on stderr."""
    sys.stderr.write(f"{sentence}\n")


def ending() -> None:
    """Say, at the first Ctrl-C or SIGTERM, what happens now."""
    tell("Ending after the batch under way; once more ends at once.")


def print_json(value: Any) -> None:
    """The one JSON document of `--json`."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """A plain table; `right` names the columns of numbers."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(_plain(cell) for cell in row))
    console().print(made)


def report(result: JobReport) -> None:
    """The table of a run or dry run, its sum, and what went wrong."""
    rows = [
        (
            row.collection,
            row.tenant,
            row.scope,
            row.reason,
            f"{row.count:,}",
            _day(row.oldest),
            ", ".join(row.examples),
        )
        for row in result.rows
    ]
    if rows:
        table(
            ("collection", "tenant", "scope", "reason", "how many", "oldest", "examples"), rows, right=["how many"]
        )
    console().print(summary(result), markup=False)
    for problem in result.problems:
        tell(problem.message)


def summary(result: JobReport) -> str:
    """One line under the table, such as `ttl: 12 found, 12 handled in 1 batch, 9 requests, 0.1 s`."""
    finished = result.finished or result.started
    parts = [f"{result.found:,} found"]
    if not result.dry_run:
        parts.append(f"{result.handled:,} handled in {counted(result.batches, 'batch', 'batches')}")
    if result.skipped:
        parts.append(f"{result.skipped:,} left alone")
    parts.append(
        f"{counted(result.requests, 'request', 'requests')}, {(finished - result.started).total_seconds():.1f} s"
    )
    ended = f"; ended early: {result.stopped}" if result.stopped else ""
    dry = " (dry run: nothing was changed)" if result.dry_run else ""
    return f"{result.job}: {', '.join(parts)}{ended}{dry}"


def counted(count: int, one: str, many: str) -> str:
    """`1 batch`, `2,000 batches`."""
    return f"{count:,} {one if count == 1 else many}"


def _plain(cell: str) -> str:
    """Data is no markup: a tenant named `[red]` is shown as it is, and a terminal gets no control characters."""
    safe = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cell)
    return safe.replace("[", r"\[")


def _day(moment: datetime | None) -> str:
    return "" if moment is None else moment.strftime("%Y-%m-%d %H:%M")
