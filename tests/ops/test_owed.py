"""What is owed is made up once."""

from __future__ import annotations

import pytest

from ops.owed import Owed


def test_what_was_passed_over_is_taken_once() -> None:
    owed = Owed()
    owed.due("nightly")
    owed.due("nightly")
    owed.due("hourly")
    owed.begin("hourly")
    owed.end("hourly", done=True)
    assert owed.take() == ["nightly"]
    assert owed.take() == []


def test_what_could_not_do_its_work_is_owed_until_it_was_made_up() -> None:
    owed = Owed()
    owed.begin("deep")
    owed.end("deep", done=False)
    assert owed.take() == ["deep"]
    owed.begin("deep")
    owed.end("deep", done=False)  # perhaps it is what brings Qdrant down
    assert owed.take() == []
    owed.begin("deep")  # a day later, by its schedule
    owed.end("deep", done=False)
    assert owed.take() == ["deep"]


@pytest.mark.parametrize("done", [True, False])
def test_a_run_under_way_is_not_owed(*, done: bool) -> None:
    owed = Owed()
    owed.due("deep")
    owed.begin("deep")
    assert owed.take() == []
    owed.end("deep", done=done)
    assert owed.take() == ([] if done else ["deep"])
