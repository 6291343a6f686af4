"""The results store: totals grow, a failure keeps the last success, and threads do not lose counts."""

import threading
from datetime import UTC, datetime

from ops.report import JobReport, Problem, Row
from ops.results import Results

NOW = datetime(2026, 1, 26, 12, tzinfo=UTC)


def report(job: str = "ttl", **values: object) -> JobReport:
    return JobReport(job=job, **{"dry_run": False, "started": NOW, "finished": NOW, **values})


def test_a_job_that_never_ran_is_there() -> None:
    state = Results(("ttl",)).jobs()["ttl"]
    assert (state.running, state.last_success, dict(state.outcomes)) == (
        False,
        None,
        {"success": 0, "partial": 0, "failed": 0},
    )


def test_runs_add_up() -> None:
    moment = [100.0]
    results = Results(clock=lambda: moment[0])
    rows = [Row("c", "t_a", "docs", 3), Row("c", "t_a", "docs", 2, reason="other"), Row("c", "t_b", "memory", 1)]
    for _ in range(2):
        results.start("ttl", NOW)
        assert results.jobs()["ttl"].running
        moment[0] += 1.5
        results.finish(report(rows=rows, handled=6, skipped=1, batches=2, requests=9, retries=1))
    state = results.jobs()["ttl"]
    assert (state.handled, state.skipped, state.batches, state.requests, state.retries) == (12, 2, 4, 18, 2)
    assert (state.running, state.last_duration, state.last_success) == (False, 1.5, NOW)
    assert results.deleted() == {("ttl", "c", "t_a", "docs"): 10, ("ttl", "c", "t_b", "memory"): 2}


def test_only_a_deleting_job_that_was_no_dry_run_deleted_something() -> None:
    results = Results()
    results.finish(report(rows=[Row("c", "t_a", "docs", 3)], dry_run=True))
    results.finish(report("audit", rows=[Row("c", "t_a", "docs", 3)]))
    assert results.deleted() == {}


def test_a_failure_keeps_the_last_success_and_says_why() -> None:
    results = Results()
    results.finish(report())
    results.start("ttl", NOW)
    results.fail("ttl", "It broke.")
    state = results.jobs()["ttl"]
    assert (state.last_success, state.last_error, state.running) == (NOW, "It broke.", False)
    assert state.outcomes["failed"] == 1
    results.finish(report(problems=[Problem("c", "gone")]))
    state = results.jobs()["ttl"]
    assert (state.last_error, state.outcomes["failed"], state.outcomes["success"]) == (None, 2, 1)


def test_what_a_run_missed_stays_as_it_was_found_before() -> None:
    results = Results()

    def found(*rows: Row, missed: set[str], unchecked: str = "") -> tuple[set[tuple[str, int]], set[str]]:
        left = [{"collection": c, "reason": "lang", "why": "no index"} for c in unchecked]
        results.finish(report("audit", rows=list(rows), missed=missed, details={"not_checked": left}))
        state = results.jobs()["audit"].found
        assert state is not None
        return {(r.collection, r.count) for r in state.rows}, {collection for collection, _ in state.unchecked}

    a, b = Row("a", "t", "", 5, "x"), Row("b", "t", "", 7, "x")
    assert found(a, b, missed=set(), unchecked="ab") == ({("a", 5), ("b", 7)}, {"a", "b"})
    assert found(missed={""}) == ({("a", 5), ("b", 7)}, {"a", "b"}), "Qdrant was away"
    half = Row("b", "t", "", 1, "x")
    assert found(half, missed={"b"}) == ({("b", 7)}, {"b"}), "a is well or gone, b was not counted to the end"
    assert found(missed=set()) == (set(), set())
    assert found(half, missed={"b"}) == (set(), set()), "half a count is none"


def test_threads_lose_no_count() -> None:
    results = Results()

    def work() -> None:
        for _ in range(200):
            results.finish(report(rows=[Row("c", "t", "docs", 1)], handled=1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.jobs()["ttl"].handled == 800
    assert results.deleted() == {("ttl", "c", "t", "docs"): 800}
