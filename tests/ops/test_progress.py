"""What a log file is told of a long run."""

from __future__ import annotations

import pytest

from ops.cli.progress import progress
from ops.jobs.base import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("ops.cli.progress.time.monotonic", lambda: now[0])
    return now


def test_a_line_every_ten_seconds_with_rate_and_time_left(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress() as show:
        show(Progress("cm_a", "copying", 20_000, 100_000))
        clock[0] += 9
        show(Progress("cm_a", "copying", 29_000, 100_000))
        assert capsys.readouterr().err == ""
        clock[0] += 1
        show(Progress("cm_a", "copying", 30_000, 100_000))
        # What stood before this run began is not part of its pace.
        assert capsys.readouterr().err == "cm_a: copying 30,000 of 100,000, 1,000/s, 1 min 10 s left\n"
        clock[0] += 5
        show(Progress("cm_a", "copying", 31_000, 100_000))
        assert capsys.readouterr().err == ""


def test_each_step_has_its_own_pace_and_one_without_a_total_is_told_all_the_same(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress() as show:
        show(Progress("cm_a", "reading", 0))
        clock[0] += 60
        show(Progress("cm_b", "reading", 0))
        assert capsys.readouterr().err == "cm_b: reading 0, 0/s\n"
        clock[0] += 60
        show(Progress("cm_a", "reading", 240))
        assert capsys.readouterr().err == "cm_a: reading 240, 2/s\n"
