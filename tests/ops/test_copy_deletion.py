"""Deleting copies while something else changes them or their survivors: another run, a writer, a busy server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from qdrant_client import QdrantClient

from ops.jobs.holding import HELD_READERS
from ops.report import JobReport
from tests.ops.copies import copy, full, hashed
from tests.ops.memory import Memory, days_ago, memory
from tests.support.fault_proxy import Call, FaultProxy, Status


@pytest.fixture(scope="module")
def shared(qdrant: QdrantClient, qdrant_url: str) -> Iterator[Memory]:
    with memory(qdrant, qdrant_url) as made:
        yield made


@pytest.fixture
def points(shared: Memory) -> Memory:
    shared.clear()
    return shared


def test_a_survivor_deleted_meanwhile_keeps_its_copies(points: Memory) -> None:
    points.put({1: copy(), 2: copy(), 3: copy(), 11: copy(2), 12: copy(2)})
    with FaultProxy(points.url) as proxy:
        # The first read of points decides; the second is the one that makes sure of the survivors.
        gone = Call(lambda: points.client.delete(points.name, [1], wait=True))
        proxy.script(gone, path="/points$", after=1)
        report = points.run(full(), url=proxy.url)
    assert points.ids() == {2, 3, 11}
    assert report.details[points.name]["skipped"] == {"survivor_changed": 2}
    points.run(full())
    assert points.ids() == {2, 11}


@pytest.mark.parametrize(
    "changes",
    [
        {"visibility": "public"},
        {"fingerprint": hashed(9 << 192)},
        {"ttl_days": 1},
        {"acl": {"read_team_ids": ["x"]}},
    ],
)
def test_a_survivor_that_is_no_longer_what_it_was_keeps_its_copies(points: Memory, changes: dict[str, Any]) -> None:
    points.put({1: copy(ttl_days=900), 2: copy(ttl_days=30)})
    with FaultProxy(points.url) as proxy:
        change = Call(lambda: points.client.set_payload(points.name, changes, points=[1], wait=True))
        proxy.script(change, path="/points$", after=1)
        points.run(full(), url=proxy.url)
    assert points.ids() == {1, 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"ttl_days": 900}, {"created_at": days_ago(0)}, {"tags": ["legal_hold"]}, {"tenant_id": "t_b"},
        {"fingerprint": hashed(9 << 192)}, {"visibility": "public"}, {"schema_version": "cm_payload_v2"},
        {"team_id": "team_other"}, {"team_id": None}, {"project_id": "proj_other"}, {"agent_id": "agt_other"},
        {"owner_kind": "user"}, {"owner_id": "usr_other"}, {"indexed": False}, {"tenant_id": ["t_daarion", "t_b"]},
        {"acl": {"read_team_ids": ["team_1", "team_2"]}}, {"acl": {"read_agent_ids": ["agt_1", "agt_2"]}},
        {"acl": {"read_role_ids": ["role_1"]}}, {"acl": {"read_role_ids": []}}, {"acl": None}, {"scope": "docs"},
    ],
)  # fmt: skip
def test_a_copy_changed_between_reading_and_deleting_survives(points: Memory, changes: dict[str, Any]) -> None:
    readers = {"read_team_ids": ["team_1"], "read_agent_ids": ["agt_1"], "read_role_ids": ["role_1", "role_2"]}
    points.put({number: copy(acl=readers, ttl_days=30 if number > 1 else 90) for number in (1, 2, 3)})
    with FaultProxy(points.url) as proxy:
        change = Call(lambda: points.client.set_payload(points.name, changes, points=[2], wait=True))
        proxy.script(change, path="/points/delete")
        report = points.run(full(), url=proxy.url)
    assert points.ids() == {1, 2}
    assert (report.handled, report.details[points.name]["skipped"]) == (1, {"changed": 1})


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("tenant_id", ("t_a", "t_b", "t_c")), ("team_id", ("team_1", "team_2", None)),
        ("project_id", (None, "proj_1", "proj_2")), ("agent_id", ("agt_1", None, "agt_2")),
        ("owner_kind", ("user", "team", "agent")), ("owner_id", ("usr_1", "usr_2", "usr_3")),
        ("visibility", ("public", "confidential", "private")), ("scope", ("memory", "docs", "signals")),
        ("indexed", (True, False)),
        ("acl", ({}, {"read_team_ids": ["team_1"]}, {"read_team_ids": ["team_2", "team_1"]})),
        ("acl", ({}, {"read_role_ids": ["role_1"]}, {"read_agent_ids": ["agt_1"]})),
    ],
)  # fmt: skip
def test_a_copy_that_takes_the_value_of_another_one_in_the_batch_survives(
    points: Memory, field: str, values: tuple[Any, ...]
) -> None:
    """The copies of several domains go by one request; one that moves to another of them is no copy there."""
    groups = dict(enumerate(values))
    points.put({10 * n + one: copy(n, **{field: value}) for n, value in groups.items() for one in (1, 2)})
    moved = {field: values[1]}
    with FaultProxy(points.url) as proxy:
        change = Call(lambda: points.client.overwrite_payload(points.name, copy(0, **moved), points=[2], wait=True))
        proxy.script(change, path="/points/delete")
        report = points.run(full(), url=proxy.url)
    assert points.ids() == {2} | {10 * n + 1 for n in groups}
    assert (report.handled, report.details[points.name]["skipped"]) == (len(values) - 1, {"changed": 1})


def test_a_long_list_of_readers_is_held_against_additions(points: Memory) -> None:
    readers = [f"agt_{number}" for number in range(HELD_READERS + 1)]
    points.put({number: copy(acl={"read_agent_ids": readers}) for number in (1, 2, 3)})
    with FaultProxy(points.url) as proxy:
        more = {"acl": {"read_agent_ids": [*readers, "agt_new"]}}
        proxy.script(
            Call(lambda: points.client.set_payload(points.name, more, points=[2], wait=True)), path="/points/delete"
        )
        points.run(full(), url=proxy.url)
    assert points.ids() == {1, 2}


def test_a_survivor_deleted_while_a_busy_server_is_waited_for_keeps_its_copies(points: Memory) -> None:
    points.put({number: copy(number // 10) for number in (10, 11, 20, 21)})
    with FaultProxy(points.url) as proxy:
        proxy.script(Status(503), path="/points/delete")
        gone = Call(lambda: points.client.delete(points.name, [10], wait=True))
        proxy.script(gone, method="POST", path="/points$", after=2)
        report = points.run(full(), url=proxy.url)
    assert points.ids() == {11, 20}
    assert (report.handled, report.details[points.name]["skipped"]) == (1, {"survivor_changed": 1})


def test_two_runs_at_once_choose_the_same_survivors(points: Memory) -> None:
    points.put({number: copy(number % 50, importance=number / 1000) for number in range(400)})
    reports: list[JobReport] = []
    threads = [
        threading.Thread(target=lambda: reports.append(points.run(full(), dedup={"batch": 25}))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert points.ids() == set(range(350, 400))
    assert [report.problems for report in reports] == [[], []]


WINS = [
    ({"importance": 0.5}, {"importance": 0.1}, {"importance": 0.9}),
    ({"importance": 0.5}, {}, {"importance": 1}),
    ({}, {}, {"importance": 0.1}),
    ({"created_at": days_ago(5)}, {"created_at": days_ago(3)}, {"created_at": days_ago(9)}),
    ({}, {}, {"created_at": days_ago(900)}),
    ({"ttl_days": 30, "created_at": days_ago(1)}, {"ttl_days": 30, "created_at": days_ago(5)},
     {"created_at": days_ago(0)}),
    ({"ttl_days": 20}, {"ttl_days": 7}, {"ttl_days": 30}),
    ({"ttl_days": 20}, {"ttl_days": 7}, {"ttl_days": None}),
    ({"ttl_days": 20}, {"ttl_days": 7}, {"ttl_days": [7, 30]}),
    ({"ttl_days": 20}, {"ttl_days": 7}, {"created_at": "once"}),
    ({"importance": 0.1}, {"ttl_days": 7, "importance": 0.9}, {"ttl_days": None}),
    ({"ttl_days": 20, "importance": 0.5}, {"ttl_days": 20, "importance": 0.1}, {"importance": 0.9}),
    ({"ttl_days": 20}, {"ttl_days": 20}, {"importance": 0.1}),
]  # fmt: skip
"""A survivor, its copy, and what makes the copy win over it."""


@pytest.mark.parametrize(("survivor", "loser", "change"), WINS)
def test_a_run_in_the_middle_of_another_that_sees_another_survivor_loses_nothing(
    points: Memory, survivor: dict[str, Any], loser: dict[str, Any], change: dict[str, Any]
) -> None:
    """The copy wins just before it is to be deleted, and a second run then deletes the survivor of the first."""
    points.put({1: copy(**survivor), 2: copy(**loser)})
    points.put({11: copy(2, ttl_days=90), 12: copy(2, ttl_days=30)})  # 30 days stand in the batch for another copy

    def meanwhile() -> None:
        points.client.set_payload(points.name, change, points=[2], wait=True)
        assert points.run(full()).handled == 2

    with FaultProxy(points.url) as proxy:
        proxy.script(Call(meanwhile), path="/points/delete")
        report = points.run(full(), url=proxy.url)
    assert points.ids() == {2, 11}
    assert report.handled <= 1


@pytest.mark.parametrize("change", [{"importance": 0.1}, {"ttl_days": 1}, {"created_at": days_ago(0)}])
def test_a_survivor_that_loses_by_now_is_left_to_the_other_run(points: Memory, change: dict[str, Any]) -> None:
    points.put({number: copy(importance=0.5, created_at=days_ago(number)) for number in (9, 8)})

    def meanwhile() -> None:
        points.client.set_payload(points.name, change, points=[9], wait=True)
        assert points.run(full()).handled == 1

    with FaultProxy(points.url) as proxy:
        # The first read of points decides; the second is the one that makes sure of the survivors.
        proxy.script(Call(meanwhile), path="/points$", after=1)
        report = points.run(full(), url=proxy.url)
    assert points.ids() == {8}
    assert (report.handled, report.details[points.name]["skipped"]) == (0, {"survivor_changed": 1})


@pytest.mark.parametrize("change", [{"importance": 0.2}, {"created_at": days_ago(1)}, {"ttl_days": 5}])
def test_a_copy_that_was_changed_and_still_loses_goes(points: Memory, change: dict[str, Any]) -> None:
    points.put({1: copy(importance=0.5, created_at=days_ago(9)), 2: copy(importance=0.1, created_at=days_ago(5))})
    with FaultProxy(points.url) as proxy:
        less = Call(lambda: points.client.set_payload(points.name, change, points=[2], wait=True))
        proxy.script(less, path="/points/delete")
        assert points.run(full(), url=proxy.url).handled == 1
    assert points.ids() == {1}


def test_copies_of_one_time_are_deleted_in_as_many_batches_as_it_takes(
    points: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.jobs.standing.MOST_CLAUSES", 3)
    points.put({10 * n + one: copy(n, created_at=days_ago(n)) for n in range(8) for one in (1, 2)})
    report = points.run(full())
    assert points.ids() == {10 * n + 1 for n in range(8)}
    assert (report.handled, report.batches) == (8, 3)
