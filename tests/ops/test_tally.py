"""Points counted by tenant and scope."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from ops.jobs.tally import EXAMPLES, Tally, counts_table, whose
from ops.report import Row


@pytest.mark.parametrize(
    ("tenant", "scope", "found"),
    [
        ("t_a", "docs", ("t_a", "docs")),
        (["t_a"], ["docs"], ("t_a", "docs")),
        (["t_a", "t_b"], ["docs", "memory"], ("", "")),
        (5, "odd", ("", "")),
        (None, None, ("", "")),
    ],
)
def test_whose_a_point_is(tenant: Any, scope: Any, found: tuple[str, str]) -> None:
    assert whose({"tenant_id": tenant, "scope": scope}) == found


def test_a_row_has_the_oldest_and_a_few_examples() -> None:
    tally = Tally()
    for number, created in enumerate(["2026-01-02", "2025-01-01T00:00:00Z", "yesterday", None, ["2026-01-01"]]):
        tally.add({"id": number, "payload": {"created_at": created}})
    assert tally.row("c", ("t_a", "docs"), "why") == Row(
        "c", "t_a", "docs", 5, "why", datetime(2025, 1, 1, tzinfo=UTC), tuple(map(str, range(EXAMPLES)))
    )


def test_counts_leave_out_what_is_none() -> None:
    counts = Counter({("t_b", "docs"): 1, ("t_a", ""): 2, ("t_a", "docs"): 0})
    assert counts_table(counts) == [
        {"tenant": "t_a", "scope": "", "count": 2}, {"tenant": "t_b", "scope": "docs", "count": 1},
    ]  # fmt: skip
