"""The clock rules: no overlap, missed runs once, errors survived, clocks that are set."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.schedule import Timed, Timetable, longest_pause, trigger_of
from ops.settings import Schedule

HOURLY = Schedule(every=timedelta(hours=1))
Start = Callable[..., Timetable]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Timetable] = []

    def begin(*timed: Timed, **clocks: Callable[[], float]) -> Timetable:
        table = Timetable(timed, **clocks)
        table.start()
        started.append(table)
        return table

    yield begin
    for table in started:
        table.stop()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def test_a_run_due_during_a_run_is_made_up_once_and_never_overlaps(start: Start) -> None:
    going, runs, at_once = threading.Event(), [], []
    inside = threading.Semaphore(1)

    def work() -> None:
        at_once.append(inside.acquire(blocking=False))
        runs.append(1)
        going.wait(60)
        inside.release()

    table = start(Timed("a", HOURLY, work))
    until(lambda: len(runs) == 1)
    for _ in range(3):
        table.run_soon("a")
        # It came due, was not started, and waits for its next regular time.
        until(lambda: table.next_runs()["a"] > datetime.now(UTC) + timedelta(minutes=30))
    assert len(runs) == 1
    going.set()
    until(lambda: len(runs) == 2)
    until(lambda: table.next_runs()["a"] > datetime.now(UTC) + timedelta(minutes=30))
    time.sleep(0.2)
    assert len(runs) == 2
    assert all(at_once)


def test_hours_missed_while_the_machine_slept_are_made_up_once(start: Start) -> None:
    runs: list[int] = []
    table = start(Timed("a", HOURLY, lambda: runs.append(1)))
    until(lambda: len(runs) == 1)
    table._scheduler.modify_job("a", next_run_time=datetime.now(UTC) - timedelta(hours=5, minutes=30))
    until(lambda: len(runs) == 2)
    until(lambda: table.next_runs()["a"] > datetime.now(UTC))
    time.sleep(0.2)
    assert len(runs) == 2


def test_a_job_that_raises_runs_again_and_so_do_the_others(start: Start) -> None:
    raised: list[int] = []
    others: list[int] = []

    def fails() -> None:
        raised.append(1)
        raise RuntimeError("on purpose")

    often = Schedule(every=timedelta(milliseconds=20))
    start(Timed("a", often, fails), Timed("b", often, lambda: others.append(1)))
    until(lambda: len(raised) >= 3 and len(others) >= 3)


def test_a_clock_set_back_does_not_stop_the_jobs(start: Start) -> None:
    wall, steady = [1000.0], [0.0]
    runs: list[int] = []
    table = start(
        Timed("a", HOURLY, lambda: runs.append(1)), Timed("c", Schedule(cron="0 0 1 1 *"), lambda: None),
        wall=lambda: wall[0], steady=lambda: steady[0],
    )  # fmt: skip
    until(lambda: len(runs) == 1)
    before = table.next_runs()
    wall[0], steady[0] = 1010.0, 10.0
    assert table.check_clock() == 0
    assert table.next_runs() == before
    wall[0] -= 1800
    assert table.check_clock() == -1800
    assert table.next_runs()["a"] == before["a"] - timedelta(seconds=1800)
    assert table.next_runs()["c"] == before["c"]
    wall[0] -= 86400
    table.check_clock()
    until(lambda: len(runs) == 2)


def test_a_clock_set_forward_moves_nothing(start: Start) -> None:
    wall = [0.0]
    table = start(Timed("a", HOURLY, lambda: None), wall=lambda: wall[0], steady=lambda: 0.0)
    until(lambda: table.next_runs()["a"] > datetime.now(UTC) + timedelta(minutes=30))
    before = table.next_runs()
    wall[0] = 500.0
    assert table.check_clock() == 500
    assert table.next_runs() == before


def test_without_a_time_it_only_runs_when_asked_for(start: Start) -> None:
    table = start(Timed("a", Schedule(), lambda: None))
    table.run_soon("a")
    assert table.next_runs() == {}


def test_a_cron_time_is_read_in_its_zone() -> None:
    trigger = trigger_of(Schedule(cron="30 2 * * *", zone="Europe/Kyiv"))
    assert trigger is not None
    due = trigger.get_next_fire_time(None, datetime(2026, 1, 26, tzinfo=UTC))
    assert due.astimezone(UTC) == datetime(2026, 1, 26, 0, 30, tzinfo=UTC)


@given(
    moment=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    jitter=st.integers(1, 3600),
)
def test_jitter_only_ever_delays_and_by_no_more_than_it_says(moment: datetime, jitter: int) -> None:
    plain = trigger_of(Schedule(cron="15 * * * *"))
    delayed = trigger_of(Schedule(cron="15 * * * *", jitter=timedelta(seconds=jitter)))
    assert plain is not None
    assert delayed is not None
    due = plain.get_next_fire_time(None, moment)
    assert due <= delayed.get_next_fire_time(None, moment) <= due + timedelta(seconds=jitter)


@pytest.mark.parametrize(
    ("schedule", "pause"),
    [
        (Schedule(), None),
        (Schedule(every=timedelta(minutes=15)), timedelta(minutes=15)),
        (Schedule(every=timedelta(minutes=15), jitter=timedelta(seconds=30)), timedelta(minutes=15, seconds=30)),
        (Schedule(cron="* * * * *"), timedelta(minutes=1)),
        (Schedule(cron="15 4 * * *", jitter=timedelta(minutes=10)), timedelta(days=1, minutes=10)),
        (Schedule(cron="15 4 * * *", zone="Europe/Berlin"), timedelta(days=1, hours=1)),  # winter time begins
        (Schedule(cron="0 9-17 * * mon-fri"), timedelta(days=2, hours=16)),
        (Schedule(cron="0 4 * * 0"), timedelta(days=7)),
        (Schedule(cron="0 4 1 * *"), timedelta(days=31)),
    ],
    ids=str,
)
def test_the_longest_pause_of_a_schedule(schedule: Schedule, pause: timedelta | None) -> None:
    assert longest_pause(schedule) == pause
