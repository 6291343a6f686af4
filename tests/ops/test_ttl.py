"""The ttl job: exactly what `is_expired` says goes, whatever happens meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from comemory.retention import is_expired
from ops.budget import Budget
from ops.jobs.ttl import TtlJob
from ops.report import JobReport
from tests.comemory.payloads import malformed
from tests.conftest import ROOT, Endpoint
from tests.ops.memory import NOW, Memory, days_ago, memory, payload
from tests.support.fault_proxy import Call, Delay, FaultProxy, Reset, Status


@pytest.fixture(scope="module")
def shared(qdrant: QdrantClient, qdrant_url: str) -> Iterator[Memory]:
    with memory(qdrant, qdrant_url) as made:
        yield made


@pytest.fixture
def points(shared: Memory) -> Memory:
    shared.clear()
    return shared


def expired(**changes: Any) -> dict[str, Any]:
    return payload(**{"ttl_days": 7, "created_at": days_ago(8), **changes})


def live(**changes: Any) -> dict[str, Any]:
    return payload(**{"ttl_days": 7, "created_at": days_ago(6), **changes})


def rows(report: JobReport) -> dict[tuple[str, str], int]:
    return {(row.tenant, row.scope): row.count for row in report.rows}


def test_what_is_expired_goes_and_what_is_not_stays(points: Memory) -> None:
    uuid_id = "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"
    points.put(
        {
            1: expired(),
            uuid_id: expired(tenant_id="t_b", scope="memory", created_at=days_ago(9)),
            3: live(),
            4: payload(created_at=days_ago(9000)),
            5: expired(tags=["legal_hold", "x"]),
            6: expired(schema_version="cm_payload_v2"),
            7: expired(ttl_days=7.0),
            8: expired(ttl_days="7"),
            9: expired(ttl_days=[7, 30]),
            10: expired(created_at="yesterday"),
            11: expired(ttl_days=0),
            12: expired(ttl_days=[7, "x"]),
        }
    )
    dry = points.run(TtlJob(), dry_run=True)
    assert len(points.ids()) == 12
    report = points.run(TtlJob())
    assert points.ids() == {3, 4, 5, 6, 8, 9, 10, 11, 12}
    assert (report.handled, report.outcome) == (3, "success")
    assert dry.rows == report.rows
    assert rows(report) == {("t_a", "docs"): 2, ("t_b", "memory"): 1}
    theirs = next(row for row in report.rows if row.tenant == "t_b")
    assert (theirs.oldest, theirs.examples) == (NOW - timedelta(days=9), (uuid_id,))
    details = report.details[points.name]
    assert details["skipped"] == {
        "created_at.malformed": 1, "ttl_days.list": 2, "ttl_days.out_of_range": 1, "ttl_days.wrong_type": 1,
    }  # fmt: skip
    assert report.skipped == 5
    assert [(one["tenant"], one["scope"], one["count"]) for one in details["before"]] == [
        ("t_a", "docs", 2), ("t_b", "memory", 1),
    ]  # fmt: skip
    assert details["after"] == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_exactly_the_points_remain_for_which_the_oracle_says_so(points: Memory, data: st.DataObject) -> None:
    points.clear()
    made: dict[Any, dict[str, Any]] = {}
    for number in range(data.draw(st.integers(1, 40))):
        values = {
            "ttl_days": data.draw(st.sampled_from([None, 1, 7, 7.0, 30, 365]) | malformed(7)),
            "created_at": data.draw(
                st.sampled_from([days_ago(age) for age in (0, 1, 6.9, 7, 7.1, 31, 400)]) | malformed(days_ago(8))
            ),
            "tags": data.draw(st.sampled_from([None, [], ["a"], ["a", "legal_hold"], "legal_hold"])),
            "schema_version": data.draw(st.sampled_from(["cm_payload_v1"] * 6 + ["v2", ["cm_payload_v1"]])),
            "tenant_id": data.draw(st.sampled_from(["t_a", "t_b"])),
            "scope": data.draw(st.sampled_from(["docs", "memory", "odd", ["docs"]])),
        }
        key = number if data.draw(st.booleans()) else str(uuid.UUID(int=number))
        made[key] = payload(**values)
    grace = timedelta(days=data.draw(st.sampled_from([0, 2])))
    points.put(made)
    dry = points.run(TtlJob(grace=grace), dry_run=True)
    report = points.run(TtlJob(grace=grace), ttl={"batch": data.draw(st.integers(1, 7))})
    gone = {key for key, value in made.items() if is_expired(value, NOW, grace=grace)}
    assert points.ids() == made.keys() - gone
    assert report.handled == report.found == len(gone)
    assert sorted(rows(dry).items()) == sorted(rows(report).items())
    assert points.run(TtlJob(grace=grace)).found == 0


def test_more_values_than_one_page_of_a_facet(points: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.session.FACET_PAGE", 10)
    points.put({days: expired(ttl_days=days, created_at=days_ago(days + 1)) for days in range(1, 61)})
    points.put({100: live()})
    assert points.run(TtlJob()).handled == 60
    assert points.ids() == {100}


def test_the_number_of_points_is_exact_and_the_next_run_goes_on(points: Memory) -> None:
    points.put({number: expired() for number in range(25)})
    dry = points.run(TtlJob(), dry_run=True, budget=Budget(max_points=12), ttl={"batch": 5})
    first = points.run(TtlJob(), budget=Budget(max_points=12), ttl={"batch": 5})
    assert (dry.found, first.handled, first.outcome) == (12, 12, "partial")
    assert first.stopped == "point budget of 12 used up"
    assert first.details[points.name]["before"][0]["count"] == 25
    assert first.details[points.name]["after"][0]["count"] == len(points.ids()) == 13
    second = points.run(TtlJob(), budget=Budget(max_points=13), ttl={"batch": 5})
    assert (second.handled, second.stopped, points.ids()) == (13, None, set())


def test_what_is_after_leaves_out_lists_that_only_look_expired(points: Memory) -> None:
    points.put({0: expired(ttl_days=[7, 30]), **{number: expired() for number in range(1, 6)}})
    report = points.run(TtlJob(), budget=Budget(max_points=2), ttl={"batch": 2})
    assert report.details[points.name]["after"] == [{"tenant": "t_a", "scope": "docs", "count": 3}]


def test_a_run_about_one_tenant_leaves_what_is_of_two(points: Memory) -> None:
    points.put({0: expired(tenant_id=["t_a", "t_b"]), 1: expired(), 2: expired(scope=["docs", "memory"])})
    report = points.run(TtlJob(), tenant="t_a")
    assert points.ids() == {0}
    assert report.details[points.name]["skipped"] == {"tenant_id.list": 1}
    points.put({2: expired(scope=["docs", "memory"])})
    points.run(TtlJob(), scope="docs")
    assert points.ids() == {2}
    assert points.run(TtlJob()).handled == 1


def test_a_speed_limit_makes_a_run_wait_between_its_batches(points: Memory) -> None:
    points.put({number: expired() for number in range(6)})
    clock, waited = iter(range(1000)), []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            return False

    budget = Budget(points_per_second=0.01, stop=Event(), clock=lambda: float(next(clock)))
    assert points.run(TtlJob(), budget=budget, ttl={"batch": 2}).handled == 6
    assert len(waited) == 3
    assert all(seconds > 100 for seconds in waited)


def test_a_run_ends_between_two_batches_when_asked_to(points: Memory) -> None:
    points.put({number: expired() for number in range(9)})
    stop = threading.Event()
    with FaultProxy(points.url) as proxy:
        proxy.script(Call(stop.set), path="/points/delete", after=1)
        report = points.run(TtlJob(), url=proxy.url, budget=Budget(stop=stop), ttl={"batch": 3})
    assert (report.handled, report.stopped, len(points.ids())) == (6, "asked to stop", 3)


def test_selection_grace_and_tags(points: Memory) -> None:
    made = {
        1: expired(), 2: expired(tenant_id="t_b"), 3: expired(scope="memory"),
        4: expired(tags=["keep"]), 5: expired(tags=["legal_hold"]),
    }  # fmt: skip
    points.put(made)
    assert points.run(TtlJob(grace=timedelta(days=2))).found == 0
    assert points.run(TtlJob(), collection="test_other").outcome == "failed"
    assert points.run(TtlJob(), tenant="t_b").handled == 1
    assert points.run(TtlJob(), scope="memory").handled == 1
    assert points.ids() == {1, 4, 5}
    points.run(TtlJob(), ttl={"exempt_tags": ["keep"]})
    assert points.ids() == {4}


def test_a_collection_that_is_not_ours_is_left_alone(points: Memory) -> None:
    points.put({1: expired()})
    assert points.run(TtlJob(), include=["cm_text_2_v1"]).found == 0
    named = points.run(TtlJob(), include=["cm_text_2_v1"], collection=points.name)
    assert "not one the settings look after" in named.problems[0].message
    assert points.ids() == {1}


def test_one_large_tenant_beside_many_small_ones(points: Memory) -> None:
    points.put({number: expired(tenant_id="t_large") for number in range(600)})
    points.put({1000 + number: expired(tenant_id=f"t_{number}") for number in range(60)})
    report = points.run(TtlJob(), ttl={"batch": 50})
    assert rows(report) == {("t_large", "docs"): 600} | {(f"t_{number}", "docs"): 1 for number in range(60)}
    assert points.ids() == set()


def test_a_payload_with_ten_thousand_readers(points: Memory) -> None:
    acl = {"read_team_ids": [f"team_{number}" for number in range(10_000)]}
    points.put({1: expired(acl=acl), 2: live(acl=acl)})
    points.run(TtlJob())
    assert points.ids() == {2}


def test_a_point_renewed_between_finding_and_deleting_survives(points: Memory) -> None:
    points.put({number: expired() for number in range(1, 6)})

    def renew() -> None:
        points.client.set_payload(points.name, {"created_at": days_ago(0)}, points=[1], wait=True)
        points.client.set_payload(points.name, {"ttl_days": 365}, points=[2], wait=True)
        points.client.set_payload(points.name, {"tags": ["legal_hold"]}, points=[3], wait=True)

    with FaultProxy(points.url) as proxy:
        proxy.script(Call(renew), path="/points/delete")
        report = points.run(TtlJob(), url=proxy.url)
    assert points.ids() == {1, 2, 3}
    assert (report.handled, report.found, report.skipped) == (2, 2, 3)
    assert report.details[points.name]["skipped"] == {"renewed": 3}


def test_a_clock_set_back_deletes_less_and_one_set_right_again_the_rest(points: Memory) -> None:
    points.put({1: expired(), 2: expired(ttl_days=1, created_at=days_ago(40))})
    assert points.run(TtlJob(), now=NOW - timedelta(days=20)).handled == 1
    assert points.ids() == {1}
    assert points.run(TtlJob()).handled == 1


@pytest.mark.parametrize(
    "faults",
    [
        (Status(503), Status(500), Status(429, retry_after=0)),
        (Reset(), Reset(forwarded=True)),
    ],
)
def test_a_server_that_answers_with_errors_or_goes_away_mid_batch(points: Memory, faults: tuple[Any, ...]) -> None:
    points.put({number: expired() for number in range(9)} | {100: live()})
    with FaultProxy(points.url) as proxy:
        proxy.script(*faults, path="/points/delete", after=1)
        proxy.script(*faults, path="/points/scroll", after=1)
        report = points.run(TtlJob(), url=proxy.url, ttl={"batch": 3})
    assert (report.handled, report.outcome, report.retries) == (9, "success", 2 * len(faults))
    assert points.ids() == {100}


def test_a_server_that_answers_too_late(points: Memory) -> None:
    # Ids of their own: the late request still arrives, perhaps when the next test is under way.
    points.put({number: expired() for number in range(7000, 7004)})
    with FaultProxy(points.url) as proxy:
        proxy.script(Delay(1.5), path="/points/delete")
        report = points.run(TtlJob(), url=proxy.url, timeout=0.8)
    assert (report.handled, report.outcome) == (4, "success")
    assert report.retries >= 1
    assert points.ids() == set()


def test_a_server_that_stays_away_is_a_problem_and_the_next_run_goes_on(points: Memory) -> None:
    points.put({number: expired() for number in range(9)})
    with FaultProxy(points.url) as proxy:
        proxy.always(Status(503), path="/points/delete", after=1)
        report = points.run(TtlJob(), url=proxy.url, ttl={"batch": 3}, retry_for=0.2)
        assert (report.handled, report.found, report.outcome) == (3, 3, "partial")
        assert "it answered 503" in report.problems[0].message
        proxy.heal()
        assert points.run(TtlJob(), url=proxy.url).handled == 6


def test_a_collection_deleted_during_a_run(qdrant: QdrantClient, points: Memory) -> None:
    points.put({1: expired()})
    with memory(qdrant, points.url) as other:
        other.put({1: expired()})
        with FaultProxy(points.url) as proxy:
            proxy.script(Call(lambda: qdrant.delete_collection(other.name)), path=f"{other.name}/points/delete")
            report = points.run(TtlJob(), url=proxy.url, include=[points.name, other.name])
    assert [problem.collection for problem in report.problems] == [other.name]
    assert "was deleted during the run" in report.problems[0].message
    assert (report.handled, points.ids()) == (1, set())


def test_an_alias_switched_during_a_run_changes_nothing(qdrant: QdrantClient, points: Memory) -> None:
    points.put({1: expired()})
    with memory(qdrant, points.url) as other:
        other.put({1: expired()})
        alias = f"alias_{points.name}"

        def switch(name: str) -> Callable[[], object]:
            create = models.CreateAlias(collection_name=name, alias_name=alias)
            return lambda: qdrant.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])

        switch(points.name)()
        with FaultProxy(points.url) as proxy:
            proxy.script(Call(switch(other.name)), path="/facet")
            report = points.run(TtlJob(), url=proxy.url, collection=alias)
        assert report.rows[0].collection == points.name
        assert (points.ids(), other.ids()) == (set(), {1})


def test_a_missing_index_is_named_and_the_others_go_on(qdrant: QdrantClient, points: Memory) -> None:
    points.put({1: expired()})
    with memory(qdrant, points.url, without=["created_at"]) as other:
        other.put({1: expired()})
        report = points.run(TtlJob(), include=[points.name, other.name])
        assert [(one.collection, "'created_at'" in one.message) for one in report.problems] == [(other.name, True)]
        assert (points.ids(), other.ids()) == (set(), {1})
        again = points.run(TtlJob(), include=[points.name, other.name])
        assert (again.found, again.collections, again.outcome) == (0, 1, "partial"), "one was gone through"
        assert points.run(TtlJob(), include=[other.name]).outcome == "failed"
    with memory(qdrant, points.url, without=["ttl_days"]) as other:
        assert "'ttl_days'" in points.run(TtlJob(), include=[other.name]).problems[0].message


def test_limits_of_strict_mode_are_kept_to(qdrant: QdrantClient, points: Memory) -> None:
    with memory(qdrant, points.url) as small:
        small.put({days: expired(ttl_days=1 + days % 8, created_at=days_ago(20)) for days in range(30)})
        limits = models.StrictModeConfig(max_query_limit=7, condition_max_size=5, filter_max_conditions=10)
        qdrant.update_collection(small.name, strict_mode_config=limits)
        report = small.run(TtlJob())
        assert (report.problems, report.handled, qdrant.count(small.name).count) == ([], 30, 0)


@pytest.mark.embedded_only("starts an endpoint with keys")
def test_a_key_without_the_right_to_write(start_endpoint: Callable[..., Endpoint]) -> None:
    url = start_endpoint(api_key="writer", read_only_api_key="reader").url
    client = QdrantClient(url=url, api_key="writer", check_compatibility=False, timeout=60)
    with memory(client, url) as guarded:
        guarded.put({1: expired()})
        assert guarded.run(TtlJob(), api_key="reader", dry_run=True).found == 1
        report = guarded.run(TtlJob(), api_key="reader")
        assert (report.outcome, report.found, guarded.ids()) == ("failed", 0, {1})
        assert "no right to POST" in report.problems[0].message
        assert "reader" not in report.problems[0].message
    client.close()


@pytest.mark.embedded_only("kills the endpoint")
def test_the_endpoint_killed_in_the_middle_then_a_clean_run(start_endpoint: Callable[..., Endpoint]) -> None:
    endpoint = start_endpoint()
    client = QdrantClient(url=endpoint.url, check_compatibility=False, timeout=60)
    with memory(client, endpoint.url) as mine:
        mine.put({number: expired() for number in range(30)} | {100: live()})
        with FaultProxy(endpoint.url) as proxy:
            proxy.script(Call(endpoint.kill), path="/points/delete", after=2)
            report = mine.run(TtlJob(), url=proxy.url, ttl={"batch": 5}, retry_for=0.3)
        assert report.outcome == "partial"
        endpoint.restart()
        left = mine.ids()
        assert len(left) == 21
        assert mine.run(TtlJob(), ttl={"batch": 5}).handled == 20
        assert mine.ids() == {100}
    client.close()


KILLED = """
import sys
sys.path.insert(0, {root!r})
from tests.ops.memory import Memory, NOW
from ops.jobs.{module} import {job}
print("started", flush=True)
Memory(None, {url!r}, {name!r}).run({job}({arguments}), {section}={{"batch": 2}})
"""


def kill_mid_job(proxy: FaultProxy, name: str, module: str, job: str, section: str, arguments: str = "") -> None:
    """Run a job in a process of its own, and kill it while its third deletion is under way."""
    reached = threading.Event()

    def hold() -> None:
        reached.set()
        time.sleep(0.5)

    proxy.script(Call(hold), path="/points/delete", after=2)
    script = KILLED.format(
        root=str(ROOT), module=module, job=job, url=proxy.url, name=name, section=section, arguments=arguments
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE) as process:
        assert reached.wait(60), process.stderr and process.stderr.read().decode()
        process.kill()


def test_the_job_killed_in_the_middle_then_a_clean_run(points: Memory) -> None:
    points.put({number: expired() for number in range(10)} | {100: live()})
    with FaultProxy(points.url) as proxy:
        kill_mid_job(proxy, points.name, "ttl", "TtlJob", "ttl")
        time.sleep(0.6)
    assert points.ids() >= {6, 7, 8, 9, 100}
    points.run(TtlJob())
    assert points.ids() == {100}


def test_two_runs_at_once_delete_each_point_once_or_say_so(points: Memory) -> None:
    points.put({number: expired() for number in range(200)} | {1000: live()})
    reports: list[JobReport] = []
    threads = [
        threading.Thread(target=lambda: reports.append(points.run(TtlJob(), ttl={"batch": 20}))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert points.ids() == {1000}
    assert Counter(report.outcome for report in reports) == {"success": 2}
    assert sum(report.handled for report in reports) >= 200
