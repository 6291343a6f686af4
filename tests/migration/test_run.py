"""Migrations between real collections: who reads the points, what a second run, a kill and a check do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient

from comemory import Principal, can_read, fingerprint, read_filter
from comemory.identifiers import Kind
from comemory.migration.identity import PointIds, derived_slug
from comemory.migration.rules import RuleSet
from ops.errors import OpsError
from ops.migrate.copy import after_id
from ops.migrate.sides import same_server
from ops.migrate.source import SourceIsReadOnly, SourceSession
from ops.session import Session
from ops.transport import Json
from tests.conftest import ROOT, SERVER_KEY
from tests.migration.fixtures import NAMES, fixture
from tests.migration.sides import (
    DENSE,
    Migration,
    clear,
    collection,
    everything,
    put,
    source_of,
    target_collection,
    unique,
)
from tests.support.fault_proxy import FaultProxy, Status

TENANT = "t_daarion"


def target_id(collection: str, point_id: int | str) -> str:
    return PointIds("legacy", collection).of(point_id)[0]


@pytest.fixture(scope="module")
def session(qdrant_url: str) -> Iterator[Session]:
    with Session(qdrant_url, retry_for=30) as made:
        yield made


@pytest.fixture(scope="module")
def target(session: Session) -> Iterator[str]:
    with target_collection(session) as name:
        yield name


@pytest.fixture
def empty(qdrant: QdrantClient, target: str) -> str:
    clear(qdrant, target)
    return target


def simple(target: str, sources: str, **values: Any) -> RuleSet:
    rule = {"name": "all", "collections": sources, "scope": "docs", "agent": "agt_helion", **values}
    return RuleSet(tenant=TENANT, target=target, zone="UTC", created_at="2024-01-01T00:00:00Z", rules=[rule])


# --- who reads -----------------------------------------------------------------------------------------------


def of_all_shapes(target: str, run: str) -> RuleSet:
    """A rule or two per framework, with readers of every kind."""

    def rule(shape: str, **values: Any) -> dict[str, Any]:
        return {"name": shape, "collections": f"{shape}_{run}", "scope": "docs", **values}

    return RuleSet(
        tenant=TENANT, target=target, zone="Europe/Kyiv", created_at="2024-01-01T00:00:00Z",
        rules=[
            rule("langchain", agent="agt_lc", visibility="confidential", acl={"read_team_ids": ["team_core"]}),
            rule("langchain_js", agent="agt_js", visibility="confidential", acl={"read_role_ids": ["role_lead"]}),
            rule("llamaindex", agent="agt_llama", team="team_docs", visibility="public"),
            {"name": "mem0", "collections": f"mem0_{run}", "vectors": {"bm25": None},
             "users": {"42": "user_marta", "marta": "user_marta"}},
            {"name": "open_webui", "collections": f"open_webui_{run}"},
            rule("haystack", owner="team_core", vectors={"text-sparse": "sparse"}),
            rule("dify", partitions="(?P<set>[0-9]+)-.*", tenant="t_set{set}", agent="agt_dify"),
            rule("mcp_server_qdrant", agent="agt_mcp", visibility="public"),
            rule("lightrag", agent="agt_light", partitions="space1", project="proj_space1"),
            rule("roo_code", agent="agt_coder"),
        ],
    )  # fmt: skip


def owner_of(shape: str, payload: dict[str, Any]) -> str | None:
    """Who owns the point by the rules above, worked out from the framework's payload alone; None: nobody known."""
    if shape == "mem0":
        if "user_id" in payload:
            return "user_marta" if payload["user_id"] == "42" else derived_slug(Kind.USER, payload["user_id"])
        return "agt_nutra" if payload.get("agent_id") == "nutra" else None
    if shape == "open_webui":
        place = payload["tenant_id"]
        user = place[12:] if place.startswith("user-memory-") else payload["metadata"].get("created_by")
        return None if user is None else f"user_{user}"
    return {
        "langchain": "agt_lc", "langchain_js": "agt_js", "llamaindex": "agt_llama", "haystack": "team_core",
        "dify": "agt_dify", "mcp_server_qdrant": "agt_mcp", "lightrag": "agt_light", "roo_code": "agt_coder",
    }[shape]  # fmt: skip


def reads(shape: str, payload: dict[str, Any], who: Principal) -> bool:
    """Whether the rules above let somebody read a point."""
    tenant = f"t_set{payload['group_id'].split('-')[0]}" if shape == "dify" else TENANT
    owner = owner_of(shape, payload)
    placed = {"haystack": "content", "roo_code": "codeChunk"}.get(shape)
    if tenant != who.tenant_id or owner is None or (placed and payload.get(placed) is None):
        return False
    if shape == "lightrag" and payload["workspace_id"] != "space1":
        return False
    if shape == "llamaindex":
        return "team_docs" in who.team_ids
    if shape == "mcp_server_qdrant":
        return True
    granted = (shape == "langchain" and "team_core" in who.team_ids) or (
        shape == "langchain_js" and "role_lead" in who.role_ids
    )
    return who.owner_id == owner or granted


WHO = [
    *(Principal.agent(TENANT, agent) for agent in (
        "agt_lc", "agt_js", "agt_llama", "agt_nutra", "agt_mcp", "agt_light", "agt_coder", "agt_dify", "agt_nobody",
    )),
    Principal.agent(TENANT, "agt_nobody", team_ids=["team_core"]),
    Principal.agent(TENANT, "agt_nobody", team_ids=["team_docs"], role_ids=["role_lead"]),
    Principal(TENANT, "team", "team_core"),
    *(Principal.user(TENANT, user) for user in ("user_marta", "user_2f1a5c1e-98f7-4a3c-9b59-7a5f3f1c0001")),
    *(
        Principal.user(TENANT, derived_slug(Kind.USER, user))
        for user in ("Marta", "ivan.petrenko@example.org", "用户7")
    ),
    Principal.user(TENANT, "user_ivan-petrenko-example-org"),
    *(Principal.agent(f"t_set{number:08d}", "agt_dify") for number in (0, 1)),
    Principal.agent("t_other", "agt_lc", team_ids=["team_core", "team_docs"]),
]  # fmt: skip


def test_points_of_every_framework_are_readable_by_exactly_whom_the_rules_say(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    run = unique("x")
    migration = Migration(qdrant_url, tmp_path, of_all_shapes(empty, run))
    with ExitStack() as stack:
        sources = {shape: stack.enter_context(source_of(session, shape, f"{shape}_{run}")) for shape in NAMES}
        before = {name: everything(session, name) for name in sources.values()}
        plan = migration.plan()
        assert {one["collection"]: one["read_as"] for one in plan["collections"]} == {
            f"{shape}_{run}": [shape] for shape in NAMES
        }
        report = migration.run(plan)
        placed = sum(one["mapped"] for one in plan["collections"])
        assert (report.handled, session.count(empty)) == (placed, placed)
        assert report.skipped == sum(sum(one["refused"].values()) for one in plan["collections"]) > 0
        assert placed + report.skipped + 1 == sum(len(fixture(shape).points) for shape in NAMES)

        stored = everything(session, empty)
        served = 0
        for who in WHO:
            should = {
                target_id(name, point["id"])
                for shape, name in sources.items() for point in before[name] if reads(shape, point["payload"], who)
            }  # fmt: skip
            found = {point["id"] for page in session.scroll(empty, read_filter(who)) for point in page}
            assert found == should == {point["id"] for point in stored if can_read(point["payload"], who)}, who
            served += bool(found)
        assert served > 15

        checked = migration.verify(plan)
        assert (checked.rows, checked.outcome) == ([], "success")
        for one in plan["collections"]:
            details = checked.details[one["collection"]]
            assert details["digests"]["source"] == details["digests"]["target"]
            assert all(count["source"] == count["target"] for count in details.get("rules", {}).values())

        again = migration.run(plan)
        assert (again.handled, everything(session, empty)) == (0, stored)
        assert {name: everything(session, name) for name in before} == before


def test_sparse_and_named_vectors_go_where_the_target_has_them(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "haystack") as name:
        Migration(qdrant_url, tmp_path, simple(empty, name, vectors={"text-sparse": "sparse"})).run()
        old = {target_id(name, point["id"]): point for point in everything(session, name)}
        new = everything(session, empty)
    assert len(new) == 56
    for point in new:
        was = old[point["id"]]
        assert point["vector"]["sparse"] == was["vector"]["text-sparse"]
        assert point["vector"]["dense"] == pytest.approx(was["vector"]["text-dense"], abs=1e-6)
        assert point["payload"]["embedding"] == {"dim": 8, "metric": "cosine"}
        assert point["payload"]["fingerprint"] == fingerprint(was["payload"]["content"])


# --- the source ----------------------------------------------------------------------------------------------


def test_the_source_gets_reading_requests_only_also_with_a_key_that_may_write(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "langchain") as name, FaultProxy(qdrant_url) as proxy:
        before = everything(session, name)
        migration = Migration(qdrant_url, tmp_path, simple(empty, name), source_url=proxy.url)
        plan = migration.plan()
        migration.run(plan)
        assert migration.verify(plan).rows == []
        assert everything(session, name) == before
        sent = set(proxy.log)
        reading = {("POST", f"/collections/{name}/points/scroll"), ("POST", f"/collections/{name}/points/count")}
        assert reading <= sent
        assert {method for method, _ in sent - reading} == {"GET"}


def test_a_session_of_the_source_sends_nothing_that_writes(qdrant_url: str) -> None:
    with FaultProxy(qdrant_url) as proxy, SourceSession(proxy.url) as source:
        for method, path in (
            ("PUT", "/collections/a"), ("DELETE", "/collections/a"), ("POST", "/collections/a/points/delete"),
            ("POST", "/collections/a/points/scroll/../delete"), ("POST", "/collections/aliases"),
            ("POST", "/collections/a/points/delete?x=/collections/a/points/scroll"),
            ("PUT", "/collections/a/points"), ("PATCH", "/collections/a"),
        ):  # fmt: skip
            with pytest.raises(SourceIsReadOnly, match="was not sent"):
                source.request(method, path, {})
        with pytest.raises(SourceIsReadOnly):
            source.delete("a", read_filter(WHO[0]))
        assert proxy.log == []


# --- kills ---------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """What a kill at this moment would leave behind, without ending this process."""


def dying(after: int, *, stored: bool) -> type[Session]:
    """A session that is gone at the so-manieth upsert, before or after the server has it."""
    left = iter(range(after))

    class Dying(Session):
        def send(self, method: str, path: str, content: bytes | None, collection: str) -> Json:
            gone = method == "PUT" and next(left, None) is None
            if gone and not stored:
                raise Killed
            answer = super().send(method, path, content, collection)
            if gone:
                raise Killed
            return answer

    return Dying


@pytest.fixture(scope="module")
def mixed(session: Session) -> Iterator[str]:
    with collection(session, unique("old_mixed"), {"vectors": DENSE}) as name:
        yield name


POOL = [
    point["payload"]
    for shape in NAMES
    if shape not in ("haystack", "mcp_server_qdrant")
    for point in fixture(shape).points[:9]
] + [point["payload"] for shape in ("haystack", "mcp_server_qdrant") for point in fixture(shape).points[-9:]]
ODD: list[dict[str, Any]] = [{}, {"text": "flat"}, {"page_content": " ", "metadata": None}, {"type": "metadata"}]


@pytest.fixture(scope="module")
def second(session: Session) -> Iterator[str]:
    with collection(session, unique("cm_text"), {"vectors": {"dense": DENSE}}) as name:
        yield name


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_mix_of_shapes_killed_anywhere_and_resumed_gives_the_same_target(
    session: Session, qdrant: QdrantClient, qdrant_url: str, target: str, second: str, mixed: str,
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject,
) -> None:  # fmt: skip
    for name in (target, second, mixed):
        clear(qdrant, name)
    payloads = data.draw(st.lists(st.sampled_from(POOL + ODD), min_size=1, max_size=24))
    ids = data.draw(
        st.lists(
            st.integers(0, 2**64 - 1) | st.uuids().map(str),
            unique=True,
            min_size=len(payloads),
            max_size=len(payloads),
        )
    )
    put(session, mixed, [
        {"id": key, "vector": [1.0, 0.5, 0.25, 0.1, 0.0, 0.3, 0.2, float(number % 7)], "payload": payload}
        for number, (key, payload) in enumerate(zip(ids, payloads, strict=True))
    ])  # fmt: skip
    whole, broken = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("broken")
    batch = data.draw(st.integers(1, 6))
    straight = Migration(qdrant_url, whole, simple(second, mixed), batch=7)
    straight.run()
    killed = Migration(qdrant_url, broken, simple(target, mixed), batch=batch)
    plan = killed.plan()
    for _ in range(data.draw(st.integers(1, 3))):
        after, stored = data.draw(st.integers(0, 5)), data.draw(st.booleans())
        try:
            killed.run(plan, target=dying(after, stored=stored), save=data.draw(st.sampled_from([0.0, 60.0])))
        except Killed:
            continue
        break
    killed.run(plan)
    assert orjson.dumps(everything(session, target)) == orjson.dumps(everything(session, second))
    assert (broken / "quarantine.jsonl").read_bytes() == (whole / "quarantine.jsonl").read_bytes()
    checked = killed.verify(plan)
    assert checked.rows == []
    assert killed.run(plan).handled == 0


def test_a_killed_process_is_run_again_and_ends_as_if_nothing_had_been(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with collection(session, unique("old_long"), {"vectors": DENSE}) as name:
        put(session, name, [
            {
                "id": n, "vector": [1.0] * 7 + [n / 200],
                "payload": {"page_content": f"text {n}" if n % 50 else "", "metadata": None},
            }
            for n in range(200)
        ])  # fmt: skip
        rules = tmp_path / "rules.yaml"
        rules.write_bytes(orjson.dumps(simple(empty, name).model_dump(mode="json")))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("COMEMORY_")}
        environment |= {"COMEMORY_QDRANT__URL": qdrant_url}
        if SERVER_KEY:
            environment["COMEMORY_QDRANT__API_KEY"] = SERVER_KEY
        command = [sys.executable, "-m", "ops", "migrate", "run", "--rules", rules, "--state", tmp_path / "state",
                   "--batch", "1", "--yes"]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + 120
        while session.count(empty) < 20 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        assert 0 < session.count(empty) < 196, process.stdout.read().decode()
        command[command.index("1")] = "200"
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 3, ended.stderr
        assert session.count(empty) == 196
        lines = (tmp_path / "state" / "quarantine.jsonl").read_bytes().splitlines()
        assert [orjson.loads(line)["id"] for line in lines] == list(range(0, 200, 50))
        checked = Migration(qdrant_url, tmp_path / "other", simple(empty, name)).verify()
        assert (checked.rows, checked.skipped) == ([], 4)


def test_asked_to_stop_it_ends_at_a_batch_and_the_next_run_goes_on(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "langchain") as name:
        migration = Migration(qdrant_url, tmp_path, simple(empty, name), batch=10)
        plan = migration.plan()
        migration.stop.set()
        report = migration.run(plan)
        assert (report.stopped, report.outcome, session.count(empty)) == ("asked to stop", "partial", 10)
        migration.stop.clear()
        migration.told.clear()
        assert migration.run(plan).handled == 51
        assert [step.done for step in migration.told] == [20, 30, 40, 50, 60, 61]
        assert {step.total for step in migration.told} == {61}


@pytest.mark.parametrize(
    ("point", "following"),
    [(0, 1), (2**64 - 1, "00000000-0000-0000-0000-000000000000"),
     ("00000000-0000-0000-0000-0000000000ff", "00000000-0000-0000-0000-000000000100"),
     ("ffffffff-ffff-ffff-ffff-ffffffffffff", None)],
)  # fmt: skip
def test_the_id_after_an_id(point: int | str, following: int | str | None) -> None:
    assert after_id(point) == following


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"vectors": {"dense": {"size": 4, "distance": "Cosine"}}}, "has size 8, vector 'dense'"),
        ({"vectors": {"dense": {"size": 8, "distance": "Dot"}}}, "has distance Cosine, vector 'dense'"),
        ({"vectors": {"dense": DENSE}, "metadata": {"embedding_model": "bge-m3"}}, "were made by e5"),
        (None, "there is no collection"),
    ],
)
def test_a_collection_whose_vectors_do_not_fit_is_refused_whole(
    session: Session, qdrant_url: str, tmp_path: Path, params: dict[str, Any] | None, said: str
) -> None:
    with ExitStack() as stack:
        name = stack.enter_context(source_of(session, "langchain"))
        target = (
            unique("cm_none") if params is None else stack.enter_context(collection(session, unique("cm"), params))
        )
        migration = Migration(qdrant_url, tmp_path, simple(target, name, embedding_model="e5"))
        plan = migration.plan()
        assert said in plan["collections"][0]["blocked"]
        report = migration.run(plan)
        assert (report.outcome, report.handled, report.skipped) == ("failed", 0, 0)
        assert said in report.problems[0].message
        if params is not None:
            assert session.count(target) == 0


def test_a_points_own_model_counts_too(session: Session, qdrant_url: str, tmp_path: Path) -> None:
    params = {"vectors": {"dense": DENSE}, "metadata": {"embedding_model": "bge-m3"}}
    with source_of(session, "open_webui") as name, collection(session, unique("cm"), params) as target:
        (found,) = Migration(qdrant_url, tmp_path, simple(target, name)).plan()["collections"]
        said = sum("embedding_config" in point["payload"]["metadata"] for point in fixture("open_webui").points)
        assert found["refused"] == {"embedding.other": said}
        assert found["mapped"] == 56 - said > 0


def test_a_point_without_a_vector_goes_to_quarantine(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with collection(session, unique("old"), {"vectors": {"v": DENSE}}) as name:
        payload = {"page_content": "x", "metadata": None}
        put(
            session,
            name,
            [
                {"id": 1, "vector": {}, "payload": payload},
                {"id": 2, "vector": {"v": [1.0] * 8}, "payload": payload},
            ],
        )
        report = Migration(qdrant_url, tmp_path, simple(empty, name)).run()
        assert (report.handled, report.skipped) == (1, 1)
        (line,) = map(orjson.loads, (tmp_path / "quarantine.jsonl").read_bytes().splitlines())
        assert (line["id"], line["reason"], line["payload"], line["collection"]) == (
            1,
            "vector.missing",
            payload,
            name,
        )


def test_a_server_that_would_write_over_points_gets_none(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "langchain") as name, FaultProxy(qdrant_url) as proxy:
        proxy.always(Status(200, body=b'{"title":"qdrant","version":"1.16.3"}'), path="^/$")
        report = Migration(proxy.url, tmp_path, simple(empty, name), source_url=qdrant_url).run()
        assert (report.outcome, proxy.seen("PUT"), session.count(empty)) == ("failed", 0, 0)
        assert "is version 1.16.3; a migration needs 1.17" in report.problems[0].message


# --- the check -----------------------------------------------------------------------------------------------


def test_the_check_sees_a_missing_point_another_payload_another_vector_and_one_too_many(
    session: Session, qdrant: QdrantClient, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "langchain") as name:
        migration = Migration(qdrant_url, tmp_path, simple(empty, name))
        plan = migration.plan()
        migration.run(plan)
        ids = [point["id"] for point in everything(session, empty)]
        qdrant.delete(empty, [ids[0]], wait=True)
        qdrant.set_payload(empty, {"visibility": "public"}, [ids[1]], wait=True)
        session.request("PUT", f"/collections/{empty}/points/vectors?wait=true",
                        {"points": [{"id": ids[2], "vector": {"dense": [1.0, 0, 0, 0, 0, 0, 0, 0]}}]})  # fmt: skip
        gone = next(point["id"] for point in everything(session, name) if target_id(name, point["id"]) == ids[3])
        qdrant.delete(name, [gone], wait=True)
        found = {row.reason.partition(" (")[0]: (row.count, row.examples) for row in migration.verify(plan).rows}
        assert found == {
            "missing": (1, (ids[0],)), "payload differs": (1, (ids[1],)), "vectors differ": (1, (ids[2],)),
            "too many": (1, ()),
        }  # fmt: skip


def test_the_check_takes_values_as_qdrant_does_and_passes_over_fields_of_others(
    session: Session, qdrant: QdrantClient, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "langchain") as name:
        migration = Migration(qdrant_url, tmp_path, simple(empty, name))
        plan = migration.plan()
        migration.run(plan)
        changed = everything(session, empty)[0]["id"]
        qdrant.set_payload(empty, {"indexed": 1}, [changed], wait=True)  # no longer found by agents
        mine = {"vector": {"dense": [1.0] * 8}}
        odd = ["x", 7, [], [{"origin": "legacy"}], {"origin": "legacy", "collection": [name]}, None]
        put(session, empty, [{"id": n, **mine, "payload": {"legacy": value}} for n, value in enumerate(odd)])
        put(session, empty, [{"id": 99, **mine}])
        (row,) = migration.verify(plan).rows
        assert (row.reason, row.count, row.examples) == ("payload differs (rule all)", 1, (changed,))


def test_two_origins_of_equal_names_and_ids_stay_apart(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "dify") as name:
        for origin in ("one", "two"):
            rules = simple(empty, name).model_copy(update={"origin": origin})
            assert Migration(qdrant_url, tmp_path / origin, rules).run().handled == 54
        assert session.count(empty) == 108


@contextmanager
def alias_of(session: Session, name: str) -> Iterator[str]:
    """Another name of a collection, for a while."""
    alias = unique("alias")
    session.request("POST", "/collections/aliases", {
        "actions": [{"create_alias": {"alias_name": alias, "collection_name": name}}]
    })  # fmt: skip
    try:
        yield alias
    finally:
        session.request("POST", "/collections/aliases", {"actions": [{"delete_alias": {"alias_name": alias}}]})


def test_a_target_is_never_a_source_of_its_own_server(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    def to(target: str, sources: str, **values: Any) -> RuleSet:
        rule = {"name": "all", "collections": sources, "scope": "docs", "target": target, **values}
        return RuleSet(tenant=TENANT, rules=[rule])

    with alias_of(session, empty) as alias, source_of(session, "langchain") as name:
        for rules in (
            simple(empty, ".*"), simple(alias, ".*"), to("{all}", f"(?P<all>{empty})|old_.*"),
            to(f"{empty[:-1]}{{what}}", ".*", partitions="(?P<what>.*)"),
        ):  # fmt: skip
            for url in {qdrant_url, qdrant_url.replace("127.0.0.1", "localhost")}:
                with Migration(qdrant_url, tmp_path, rules, source_url=url).sides() as sides:
                    mine, others = sides.collections()
                assert empty not in mine and empty in others
                assert name in mine


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a:6333", "http://A:6333/", True), ("http://a:6333", "https://a:6333", True),
        ("https://a", "https://a.:443", True), ("http://[::1]:1", "http://127.0.0.1:1", True),
        ("http://a:6333", "http://a:6334", False), ("http://a", "http://b", False),
    ],
)  # fmt: skip
def test_when_two_addresses_are_one(one: str, other: str, same: bool) -> None:
    assert same_server(one, other) is same


def test_what_is_under_the_schema_already_is_never_written_again(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    """Also where two addresses hide that source and target are one: here, behind a proxy."""
    with source_of(session, "langchain") as name, FaultProxy(qdrant_url) as proxy:
        Migration(qdrant_url, tmp_path / "first", simple(empty, name)).run()
        before = everything(session, empty)
        rules = RuleSet.model_validate({**simple(empty, empty).model_dump(), "origin": "other"})
        with collection(session, unique("cm"), {"vectors": {"dense": DENSE}}) as second:
            moved = rules.model_copy(update={"target": second})
            report = Migration(qdrant_url, tmp_path / "second", moved, source_url=proxy.url).run()
            assert (report.handled, report.skipped, session.count(second)) == (0, 61, 0)
        assert everything(session, empty) == before


def test_an_alias_is_named_with_what_it_stands_for(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "langchain") as name, alias_of(session, name) as alias:
        with pytest.raises(OpsError, match=f"{alias} is an alias of {name}: name that"):
            Migration(qdrant_url, tmp_path, simple(empty, alias).model_copy(update={"builtin": False})).plan()
        both = simple(empty, f"{alias}|old_x").model_copy(update={"builtin": False})
        with source_of(session, "dify", "old_x"):
            assert Migration(qdrant_url, tmp_path, both).plan()["aliases"] == {alias: name}


# --- the source changes, or the rules --------------------------------------------------------------------------


def test_a_stop_never_ends_a_collection_that_grew_since_the_plan(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    point = {"vector": [1.0] * 8, "payload": {"page_content": "x", "metadata": None}}
    with collection(session, unique("old"), {"vectors": DENSE}) as name:
        put(session, name, [{"id": number, **point} for number in range(4)])
        migration = Migration(qdrant_url, tmp_path, simple(empty, name), batch=4)
        plan = migration.plan()
        put(session, name, [{"id": number, **point} for number in range(4, 12)])
        migration.stop.set()
        report = migration.run(plan)
        assert (report.stopped, session.count(empty)) == ("asked to stop", 4)
        migration.stop.clear()
        assert migration.run(plan).stopped is None
        assert session.count(empty) == 12


def test_what_the_plan_has_not_seen_is_said_and_nothing_of_it_is_lost(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    prefix = unique("old")
    with source_of(session, "langchain", f"{prefix}_a") as name, ExitStack() as later:
        migration = Migration(qdrant_url, tmp_path, simple(empty, f"{prefix}_.*"), batch=100)
        plan = migration.plan()
        later.enter_context(source_of(session, "dify", f"{prefix}_b"))
        vector = everything(session, name)[0]["vector"]
        put(session, name, [{"id": 0, "vector": vector, "payload": {"data": "x", "hash": "y", "user_id": "u"}}])
        for report in (migration.run(plan), migration.verify(plan)):
            said = {problem.collection: problem.message for problem in report.problems}
            assert "is on the source and not in the plan" in said[f"{prefix}_b"]
            assert "shape mem0, of which there was none before; make the plan anew" in said[name]
            assert report.skipped == 0
        new = migration.plan()
        assert migration.run(new).problems == []
        assert session.count(empty) == 61 + 54 + 1
        assert migration.verify(new).rows == []


def test_rules_that_were_mended_reach_points_that_are_there_only_when_asked(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path
) -> None:
    with source_of(session, "langchain") as name:
        Migration(qdrant_url, tmp_path / "a", simple(empty, name, visibility="public")).run()
        mended = Migration(qdrant_url, tmp_path / "b", simple(empty, name))
        report = mended.run()
        assert (report.handled, report.details["already_there"]) == (0, 61)
        assert {row.reason: row.count for row in mended.verify().rows} == {"payload differs (rule all)": 61}
        assert {point["payload"]["visibility"] for point in everything(session, empty)} == {"public"}
        report = mended.run(replacing=True)
        assert (report.handled, report.details["already_there"]) == (0, 61)
        assert mended.verify().rows == []
        assert {point["payload"]["visibility"] for point in everything(session, empty)} == {"private"}


def test_a_large_batch_is_written_in_parts(
    session: Session, qdrant_url: str, empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.writing.MOST_BYTES", 4000)
    sizes: list[int] = []

    class Weighing(Session):
        def send(self, method: str, path: str, content: bytes | None, collection: str) -> Json:
            if method == "PUT":
                sizes.append(len(content or b""))
            return super().send(method, path, content, collection)

    with collection(session, unique("old"), {"vectors": DENSE}) as name:
        # The first is the smallest: nothing can be told from one about the others.
        put(session, name, [
            {
                "id": number, "vector": [1.0] * 8,
                "payload": {"page_content": "x" * 100 * number or "x", "metadata": None},
            }
            for number in range(40)
        ])  # fmt: skip
        migration = Migration(qdrant_url, tmp_path, simple(empty, name), batch=100)
        assert migration.run(target=Weighing).handled == 40
    alone = [size for size in sizes if size > 4000]
    assert len(sizes) > 10
    assert len(alone) <= sum(100 * number > 2000 for number in range(40))
