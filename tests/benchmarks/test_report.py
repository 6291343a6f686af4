"""A figure is met up to its limit and not beyond, and the table says so."""

from __future__ import annotations

import math

import pytest

from benchmarks.report import Row, table


@pytest.mark.parametrize(("measured", "met"), [(1.0, True), (2.0, True), (2.0001, False), (math.nan, False)])
def test_what_is_met(measured: float, met: bool) -> None:
    row = Row("a", measured, 2.0, "s")
    assert row.met is met
    assert row.cells()[3] == ("met" if met else "SHORT")


def test_the_table_has_a_line_per_row() -> None:
    lines = table([Row("first", 1.5, 3, "x"), Row("the second", 9, 3, "s")]).splitlines()
    assert len(lines) == 3
    assert lines[1].split() == ["first", "1.5", "x", "3", "x", "met"]
    assert lines[2].endswith("SHORT")
