"""The limits of a run hold whatever the batches are."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from ops.budget import Budget


@given(limit=st.integers(1, 500), batch=st.integers(1, 100))
def test_never_more_points_than_the_budget_and_all_of_it_used(limit: int, batch: int) -> None:
    budget = Budget(max_points=limit)
    while size := budget.next_batch(batch):
        budget.spend(size)
    assert budget.spent == limit
    assert budget.exhausted() == f"point budget of {limit} used up"


def test_time_ends_a_run_between_two_batches() -> None:
    moment = [0.0]
    budget = Budget(max_seconds=10, clock=lambda: moment[0])
    assert budget.next_batch(5) == 5
    moment[0] = 10.0
    assert budget.next_batch(5) == 0
    assert budget.exhausted() == "time budget used up"


def test_a_stop_ends_the_run_and_the_wait_of_the_speed_limit() -> None:
    stop = threading.Event()
    budget = Budget(points_per_second=0.001, stop=stop)
    assert budget.next_batch(10) == 10
    stop.set()
    budget.spend(10)  # would wait for hours if the stop did not end it
    assert budget.exhausted() == "asked to stop"


def test_the_speed_limit_waits_for_what_the_batch_did_not_take() -> None:
    waits: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0)
            return False

    moment = [0.0]
    budget = Budget(points_per_second=100, stop=Stop(), clock=lambda: moment[0])
    budget.next_batch(50)
    moment[0] = 0.2
    budget.spend(50)
    assert waits == [0.5 - 0.2]
