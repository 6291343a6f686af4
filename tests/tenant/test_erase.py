"""Erasing: exactly what is the tenant's goes, from everywhere, whatever happens meanwhile."""

from __future__ import annotations

import json
import stat
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from comemory.tenancy import Subject
from ops.budget import Budget
from ops.errors import SettingsError
from ops.report import JobReport
from ops.tenant.erase import ABOUT, erase
from ops.tenant.log import ErasureLog, verify
from tests.conftest import Endpoint
from tests.support.fault_proxy import Call, FaultProxy, Status
from tests.support.memory import memory
from tests.tenant.server import INDEXES, Tenancy, everything, payload, put, unique

pytestmark = pytest.mark.embedded_only("erases from every collection of its server, and counts what is there")


@pytest.fixture(scope="module")
def endpoint(start_endpoint: Callable[..., Endpoint]) -> Endpoint:
    """Erasing is about a whole server, so this one is no other test's."""
    return start_endpoint()


@pytest.fixture(scope="module")
def client(endpoint: Endpoint) -> Iterator[QdrantClient]:
    made = QdrantClient(url=endpoint.url, timeout=60, check_compatibility=False)
    yield made
    made.close()


@pytest.fixture
def tenancy(endpoint: Endpoint, tmp_path: Path) -> Tenancy:
    return Tenancy(endpoint.url, tmp_path)


@pytest.fixture
def collections(client: QdrantClient) -> Iterator[tuple[str, str]]:
    """Two collections of memory, the old version and the new one of no declared type."""
    with memory(client, indexes=INDEXES) as first:
        name = f"cm_pic_4_v{uuid.uuid4().int % 10**8 + 1}"
        client.create_collection(name, {"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)})
        try:
            yield first.name, name
        finally:
            client.delete_collection(name)


def rows(report: JobReport) -> list[tuple[str, str, str, int]]:
    return [(row.collection, row.tenant, row.scope, row.count) for row in report.rows]


def events(tenancy: Tenancy) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tenancy.log.read_text().splitlines()]


def test_a_tenant_goes_from_every_collection_and_nobody_else_does(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, second = collections
    big = 2**64 - 1
    put(
        client,
        first,
        {1: payload("t_a"), 2: payload("t_a", scope="memory"), 3: payload("t_ab"), big: payload(["t_a"])},
    )
    put(client, second, {str(uuid.UUID(int=1)): payload("t_a"), 5: payload("T_A"), 6: {"tenant_id": "t_a"}, 7: {}})
    others = {name: everything(client, name) for name in collections}
    dry = tenancy.erase("t_a", dry_run=True)
    assert {name: everything(client, name) for name in collections} == others
    assert not tenancy.log.exists()
    report = tenancy.erase("t_a", batch=2)
    assert everything(client, first) == {3: others[first][3]}
    assert everything(client, second) == {key: others[second][key] for key in (5, 7)}
    assert (report.outcome, report.handled, report.skipped, report.problems) == ("success", 5, 0, [])
    assert dry.rows == report.rows
    assert sorted(rows(report)) == sorted(
        [
            (first, "t_a", "docs", 2),
            (first, "t_a", "memory", 1),
            (second, "t_a", "docs", 1),
            (second, "t_a", "", 1),
        ]
    )
    about = report.details[ABOUT]
    assert (about["proven"], about["left"], dry.details[ABOUT]["proven"]) == (True, 0, False)
    assert report.details[first]["before"] == [
        {"tenant": "t_a", "scope": "docs", "count": 2}, {"tenant": "t_a", "scope": "memory", "count": 1},
    ]  # fmt: skip
    assert (report.details[first]["after"], dry.details[first]["after"]) == ([], None)
    assert report.details[second]["others"] == {"before": 2, "after": 2}
    assert report.details[second]["looks_alike"] == dry.details[second]["looks_alike"] == {"T_A": 1}
    begun, ended = events(tenancy)
    assert (begun["event"], begun["tenant"], begun["owner"], begun["url"]) == ("begun", "t_a", None, tenancy.url)
    assert begun["found"] == {first: 3, second: 2} and begun["others"] == {first: 1, second: 2}
    assert (ended["event"], ended["run"], ended["erased"]) == ("ended", begun["run"], {first: 3, second: 2})
    assert (ended["left"], ended["proven"], ended["error"], ended["others"]) == (0, True, None, begun["others"])
    assert stat.S_IMODE(tenancy.log.stat().st_mode) == 0o600
    assert verify(tenancy.log).faults == []


def test_an_owner_goes_and_what_others_show_it_stays(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, _ = collections
    mine = {"owner_id": "agt_x", "agent_id": "agt_x"}
    put(
        client, first,
        {
            1: payload("t_a", **mine), 2: payload("t_b", **mine), 3: payload("t_a", owner_id="agt_xy"),
            4: payload("t_a", owner_id="agt_y", acl={"read_agent_ids": ["agt_z", "agt_x"]}),
            5: payload("t_a", owner_id=["agt_x", "agt_y"]), 6: payload("t_a", owner_id="agt_y", agent_id="agt_x"),
        },
    )  # fmt: skip
    before = everything(client, first)
    report = tenancy.erase("t_a", "agt_x")
    assert everything(client, first) == {key: before[key] for key in (2, 3, 4, 5, 6)}
    details = report.details[first]
    assert (report.outcome, report.handled, details["shared"], details["named"]) == ("partial", 1, 1, 2)
    assert details["others"] == {"before": 5, "after": 5}
    assert "such as 5: left alone" in report.problems[0].message
    assert events(tenancy)[0]["owner"] == "agt_x"


SPACE = "t_e5"
LOOKALIKES = [
    SPACE, "t_e5_b", "t_e", "T_E5", "t_e5 ", " t_e5", "t-e5", "t_e5*", "t_%", "*", "", "5", "t_e5/user_a",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}", "t_\N{CYRILLIC SMALL LETTER IE}5",
    "t_e5\N{ZERO WIDTH SPACE}", "t_e5\n", 'a"b\\c',
]  # fmt: skip
OWNERS = ["user_a", "user_a_b", "USER_A", "user_a ", "5"]


def odd(names: list[str]) -> st.SearchStrategy[Any]:
    """A name, mostly as it should stand there; else in a list, as a number, missing."""
    name = st.sampled_from(names)
    return st.one_of(
        name, name, name, name.map(lambda one: [one]), st.lists(name, min_size=2, max_size=3), st.just(5),
        st.none(), name.map(lambda one: [one, 5]), name.map(lambda one: {"is": one}), name.map(lambda one: [[one]]),
    )  # fmt: skip


def names(value: Any, wanted: str) -> bool:
    """The test's own reading: a text, or a list of this text alone."""
    return value in (wanted, [wanted])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_exactly_what_is_equal_goes(
    client: QdrantClient, tenancy: Tenancy, pair: tuple[str, str], data: st.DataObject
) -> None:
    stored: dict[str, dict[Any, tuple[Any, Any]]] = {}
    for name in pair:
        if old := list(everything(client, name)):
            client.delete(name, old, wait=True)
        points: dict[Any, dict[str, Any]] = {}
        for number in range(data.draw(st.integers(1, 25))):
            values = {"tenant_id": data.draw(odd(LOOKALIKES)), "owner_id": data.draw(odd(OWNERS))}
            values["scope"] = data.draw(st.sampled_from(["docs", "memory", "odd"]))
            points[number if data.draw(st.booleans()) else str(uuid.UUID(int=number))] = values
        put(client, name, points)
        stored[name] = everything(client, name)
    tenant = data.draw(st.sampled_from([one for one in LOOKALIKES if one.strip()]))
    owner = data.draw(st.none() | st.sampled_from(OWNERS))
    report = tenancy.erase(tenant, owner, batch=data.draw(st.integers(1, 5)))
    gone = 0
    for name, points in stored.items():
        stays = {
            key: value
            for key, value in points.items()
            if not (
                names(value[0].get("tenant_id"), tenant)
                and (owner is None or names(value[0].get("owner_id"), owner))
            )
        }
        assert everything(client, name) == stays
        gone += len(points) - len(stays)
        assert report.details[name]["others"] == {"before": len(stays), "after": len(stays)}
    assert (report.handled, report.found) == (gone, gone)
    assert report.details[ABOUT]["proven"]
    assert (report.outcome == "partial") == (report.skipped > 0)


@pytest.fixture(scope="module")
def pair(client: QdrantClient) -> Iterator[tuple[str, str]]:
    with memory(client, indexes=INDEXES) as first, memory(client, indexes=(), strict=None) as second:
        yield first.name, second.name


def test_an_alias_is_no_second_collection_and_others_are_named(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, _ = collections
    foreign, plain = unique("webui"), unique("helion_docs")
    dense = {"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)}
    for name in (foreign, plain):
        client.create_collection(name, dense)
        put(client, name, {1: payload("t_a")})
    client.create_payload_index(foreign, "tenant_id", models.PayloadSchemaType.KEYWORD, wait=True)
    alias = models.CreateAlias(collection_name=first, alias_name="cm_text_4")
    client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    put(client, first, {1: payload("t_a")})
    try:
        report = tenancy.erase("t_a")
        assert report.handled == 1
        assert {foreign, plain} <= set(report.details[ABOUT]["not_searched"])
        (problem,) = report.problems
        assert problem.collection == foreign and "1 of its points name t_a" in problem.message
        assert client.count(foreign).count == client.count(plain).count == 1
        again = tenancy.erase("t_a", include=[foreign, "cm_text_4"])
        assert (again.handled, again.outcome, client.count(foreign).count) == (1, "success", 0)
    finally:
        client.delete_collection(foreign)
        client.delete_collection(plain)


def test_without_an_index_in_strict_mode_nothing_is_erased_anywhere(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    put(client, collections[0], {1: payload("t_a")})
    put(client, collections[1], {1: payload("t_a")})
    with memory(client, indexes=()) as bare:
        bare.put([payload("t_b")])
        report = tenancy.erase("t_a")
        assert (report.outcome, report.handled) == ("failed", 0)
        assert f"'{bare.name}' has no fitting payload index on 'tenant_id'" in report.problems[0].message
        assert "`pulumi up`" in report.problems[0].message
    assert client.count(collections[0]).count == client.count(collections[1]).count == 1
    assert not tenancy.log.exists() or events(tenancy) == []


def test_where_points_are_hidden_from_readers_nothing_is_erased(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    put(client, collections[0], {1: payload("t_a")})
    setting: Any = {"optimizers_config": {"prevent_unoptimized": True}}
    with tenancy.session() as session:
        session.request("PATCH", f"/collections/{collections[1]}", setting)
    report = tenancy.erase("t_a")
    assert (report.outcome, report.handled, client.count(collections[0]).count) == ("failed", 0, 1)
    assert f"'{collections[1]}' hides points from every reader" in report.problems[0].message


def test_where_only_deleting_asks_for_an_index_nothing_is_erased_either(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    put(client, collections[0], {1: payload("t_a")})
    strict = models.StrictModeConfig(enabled=True, unindexed_filtering_update=False)
    with memory(client, indexes=(), strict=strict) as bare:
        bare.put([payload("t_a")])
        report = tenancy.erase("t_a")
        assert (report.outcome, report.handled) == ("failed", 0)
        assert "payload index on 'tenant_id'" in report.problems[0].message
        assert client.count(bare.name).count == 1
    assert client.count(collections[0]).count == 1
    assert "payload index" in events(tenancy)[1]["error"]


def test_what_is_written_meanwhile_goes_too(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, second = collections
    put(client, first, {1: payload("t_a"), 2: payload("t_b")})
    late = f"cm_text_4_v{uuid.uuid4().int % 10**8 + 1}"

    def write() -> None:
        put(client, second, {9: payload("t_a")})
        client.create_collection(late, {"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)})
        put(client, late, {1: payload("t_a"), 2: payload("t_b")})

    with FaultProxy(tenancy.url) as proxy:
        # After both were looked at, and the second was erased: the last question of the first round.
        proxy.script(Call(write), method="GET", path="^/collections$", after=2)
        try:
            report = Tenancy(proxy.url, tenancy.folder).erase("t_a")
            assert (report.handled, report.details[ABOUT]["proven"], report.outcome) == (3, True, "success")
            assert client.count(late).count == client.count(first).count == 1
            assert client.count(second).count == 0
        finally:
            client.delete_collection(late)


def test_who_never_stops_writing_is_an_error(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, second = collections
    put(client, first, {1: payload("t_a")})
    with FaultProxy(tenancy.url) as proxy:
        proxy.always(Call(lambda: put(client, second, {9: payload("t_a")})), method="GET", path="^/collections$")
        report = Tenancy(proxy.url, tenancy.folder).erase("t_a")
    assert report.details[ABOUT]["left"] == 1
    assert not report.details[ABOUT]["proven"]
    assert "somebody goes on writing them" in report.problems[0].message
    assert events(tenancy)[1]["left"] == 1


def test_a_point_given_to_another_meanwhile_stays(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, _ = collections
    put(client, first, {1: payload("t_a"), 2: payload("t_a")})
    with FaultProxy(tenancy.url) as proxy:
        # The first deletion is of nothing: it asks whether the key may.
        renewed = Call(lambda: put(client, first, {1: payload("t_b")}))
        proxy.script(renewed, path=f"{first}/points/delete", after=1)
        report = Tenancy(proxy.url, tenancy.folder).erase("t_a")
    assert set(everything(client, first)) == {1}
    assert (report.handled, report.details[first]["changed"]) == (1, 1)
    assert report.details[first]["others"] == {"before": 0, "after": 1}


def test_a_collection_that_goes_away_meanwhile_is_told_of(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, second = collections
    put(client, first, {1: payload("t_a")})
    put(client, second, {1: payload("t_a")})
    with FaultProxy(tenancy.url) as proxy:
        proxy.script(Call(lambda: client.delete_collection(second)), path=f"{second}/points/delete", after=1)
        report = Tenancy(proxy.url, tenancy.folder).erase("t_a")
    assert report.outcome == "partial"
    assert [problem.collection for problem in report.problems] == [second]
    assert client.count(first).count == 0
    assert report.details[second]["after"] is None
    assert report.details[ABOUT]["proven"]


def test_a_collection_that_only_seems_to_be_gone_is_not_proven_empty(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, second = collections
    put(client, first, {1: payload("t_a")})
    put(client, second, {number: payload("t_a") for number in range(10)})
    with FaultProxy(tenancy.url) as proxy:
        # Deleting is asked for once before, to see whether the key may.
        proxy.script(Call(lambda: proxy.always(Status(404), path=f"{second}/")), path=f"{second}/points/delete")
        report = Tenancy(proxy.url, tenancy.folder).erase("t_a")
    about = report.details[ABOUT]
    assert client.count(second).count == 10
    assert (report.outcome, about["proven"], about["left"]) == ("partial", False, None)
    assert any("is on the server" in problem.message for problem in report.problems)
    assert "is on the server" in events(tenancy)[1]["error"]


def test_an_endpoint_that_dies_midway_and_the_second_run(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, _ = collections
    put(client, first, {number: payload("t_a") for number in range(10)})
    put(client, first, {10: payload("t_b")})
    with FaultProxy(tenancy.url) as proxy:
        proxy.always(Status(503), path=f"{first}/points/delete", after=3)
        report = Tenancy(proxy.url, tenancy.folder).erase("t_a", batch=4, retry_for=0.1)
        assert (report.outcome, report.handled) == ("partial", 8)
        about = report.details[ABOUT]
        assert (about["proven"], about["left"], about["log"]) == (False, None, str(tenancy.log))
        assert "gave no answer" in events(tenancy)[1]["error"]
        proxy.heal()
        again = Tenancy(proxy.url, tenancy.folder).erase("t_a", batch=4)
    assert (again.outcome, again.handled, set(everything(client, first))) == ("success", 2, {10})
    assert [event["event"] for event in events(tenancy)] == ["begun", "ended"] * 2


def test_two_at_once_do_no_harm(client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]) -> None:
    first, second = collections
    put(client, first, {number: payload(("t_a", "t_b", "t_c")[number % 3]) for number in range(30)})
    put(client, second, {number: payload("t_a") for number in range(5)})
    reports: list[JobReport] = []
    runs = [
        threading.Thread(target=lambda who=who: reports.append(tenancy.erase(who, batch=3)))
        for who in ("t_a", "t_a", "t_b")
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert all(report.details[ABOUT]["proven"] and not report.problems for report in reports)
    assert {key % 3 for key in everything(client, first)} == {2} and not everything(client, second)
    assert sum(report.handled for report in reports) >= 25
    found = verify(tenancy.log)
    assert (found.entries, found.faults, found.unended) == (6, [], [])


def test_ctrl_c_ends_between_two_batches(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, _ = collections
    put(client, first, {number: payload("t_a") for number in range(10)})
    stop = threading.Event()
    with FaultProxy(tenancy.url) as proxy:
        proxy.script(Call(stop.set), path=f"{first}/points/delete", after=1)
        report = Tenancy(proxy.url, tenancy.folder).erase("t_a", batch=4, budget=Budget(stop=stop))
    assert (report.stopped, report.outcome, report.handled) == ("asked to stop", "partial", 4)
    assert client.count(first).count == 6
    assert events(tenancy)[1]["error"] == "asked to stop"


def test_without_a_record_nothing_is_erased(
    client: QdrantClient, tenancy: Tenancy, collections: tuple[str, str]
) -> None:
    first, _ = collections
    put(client, first, {1: payload("t_a")})
    tenancy.log.mkdir(parents=True)
    with pytest.raises(
        SettingsError, match=r"tenant\.log_file: cannot write .*: Is a directory\. Nothing is erased"
    ):
        tenancy.erase("t_a")
    assert client.count(first).count == 1
    tenancy.log.rmdir()
    log = ErasureLog(tenancy.log)
    tenancy.log.unlink()
    tenancy.log.mkdir()
    with tenancy.session() as session:
        report = erase(tenancy.context(session), Subject("t_a"), log)
    assert (report.handled, client.count(first).count) == (0, 1)
    assert "tenant.log_file" in report.problems[0].message
