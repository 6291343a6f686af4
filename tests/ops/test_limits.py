"""The limits of strict mode, as a server states them."""

from __future__ import annotations

from typing import Any

from ops.jobs.limits import Limits, parts


def of(**strict: Any) -> Limits:
    return Limits.of({"config": {"strict_mode_config": strict}})


def test_without_strict_mode_or_without_a_limit_what_is_wanted_is_allowed() -> None:
    for limits in (Limits.of({"config": {}}), of(enabled=False, max_query_limit=5), of(enabled=True)):
        assert (limits.page(1000), limits.ids(1000), limits.conditions(50, beside=5)) == (1000, 1000, 50)


def test_a_limit_holds_and_what_a_filter_always_has_counts() -> None:
    limits = of(enabled=True, max_query_limit=5, condition_max_size=7, filter_max_conditions=9)
    assert (limits.page(1000), limits.page(3)) == (5, 3)
    assert (limits.ids(1000), limits.ids(3)) == (7, 3)
    assert (limits.conditions(50, beside=5), limits.conditions(2, beside=5), limits.conditions(9, beside=20)) == (
        4,
        2,
        1,
    )


def test_parts() -> None:
    assert list(parts([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert list(parts([], 2)) == []
