"""The dedup job: of each group of copies exactly the survivor stays, and nothing else goes."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from comemory.duplicates import Candidate, duplicate_key, survivor
from ops.budget import Budget
from ops.jobs.dedup import DedupJob
from ops.jobs.dedup_state import DedupState
from ops.report import JobReport
from tests.comemory.payloads import malformed
from tests.conftest import Endpoint
from tests.ops.copies import copy, full, hashed
from tests.ops.memory import NOW, Memory, days_ago, memory, payload
from tests.ops.test_ttl import kill_mid_job
from tests.support.fault_proxy import Call, Delay, FaultProxy, Reset, Status


@pytest.fixture(scope="module")
def shared(qdrant: QdrantClient, qdrant_url: str) -> Iterator[Memory]:
    with memory(qdrant, qdrant_url) as made:
        yield made


@pytest.fixture
def points(shared: Memory) -> Memory:
    shared.clear()
    return shared


def rows(report: JobReport) -> dict[tuple[str, str, str], int]:
    return {(row.tenant, row.scope, row.reason): row.count for row in report.rows}


def test_copies_go_and_the_one_that_lives_longest_stays(points: Memory) -> None:
    digits = "ab" * 32
    points.put(
        {
            1: copy(ttl_days=30, importance=1.0),
            2: copy(ttl_days=300),
            3: copy(created_at=days_ago(1), ttl_days=7),
            # one content, written in three ways
            "5c56c793-69f3-4fbf-87e6-c4bf54c28c26": copy(fingerprint=digits),
            10: copy(fingerprint=f"SHA256:{digits.upper()}"),
            11: copy(fingerprint=f"sha256:{digits}"),
            # another access domain each
            20: copy(tenant_id="t_b"),
            21: copy(visibility="private"),
            22: copy(acl={"read_team_ids": ["team_x"]}),
            23: copy(indexed=False),
            24: copy(team_id=["team_a"]),
            25: copy(schema_version="cm_payload_v2"),
            26: copy(fingerprint=hashed(1 << 192)[:40]),
        }
    )
    dry = points.run(full(), dry_run=True)
    assert len(points.ids()) == 13
    report = points.run(full())
    assert points.ids() == {2, 10, 20, 21, 22, 23, 24, 25, 26}
    assert dry.rows == report.rows
    assert rows(report) == {("t_a", "memory", "content"): 4}
    assert (report.handled, report.skipped, report.outcome) == (4, 0, "success")
    assert points.run(full()).found == 0


def test_a_policy_per_scope_and_what_content_would_have_removed(points: Memory) -> None:
    points.put(
        {
            1: copy(scope="docs"),
            2: copy(scope="docs"),
            3: copy(scope="docs", source_id="doc_other"),
            4: copy(scope="docs", chunk={"chunk_id": "chk", "chunk_idx": 1}),
            5: copy(scope="docs", source_id=None),
            6: copy(source_id="msg_1"),
            7: copy(source_id="msg_2"),
        }
    )
    dry = points.run(full(), dry_run=True)
    assert rows(dry) == {("t_a", "docs", "source"): 1, ("t_a", "memory", "content"): 1}
    assert dry.details[points.name]["content_would_remove"] == [
        {"tenant": "t_a", "scope": "docs", "count": 4}, {"tenant": "t_a", "scope": "memory", "count": 1},
    ]  # fmt: skip
    points.run(full())
    assert points.ids() == {1, 3, 4, 5, 6}
    points.run(full(), dedup={"policies": {"docs": "content"}})
    assert points.ids() == {1, 6}


def test_a_tag_pins_a_copy(points: Memory) -> None:
    points.put({1: copy(), 2: copy(tags=["legal_hold"]), 3: copy(tags="legal_hold"), 4: copy()})
    report = points.run(full())
    assert points.ids() == {1, 2, 3}
    assert (report.handled, report.details[points.name]["skipped"]) == (1, {"exempt": 2})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_survivor_per_domain_and_key_and_nothing_else_gone(points: Memory, data: st.DataObject) -> None:
    points.clear()
    made: dict[Any, dict[str, Any]] = {}
    draw = data.draw
    for number in range(draw(st.integers(2, 40))):
        values = {
            "fingerprint": draw(
                st.sampled_from([hashed(1 << 192), f"{1 << 192:064x}", hashed(2 << 192), hashed(1)])
            ),
            "scope": draw(st.sampled_from(["docs", "memory"])),
            "tenant_id": draw(st.sampled_from(["t_a", "t_a", "t_b"])),
            "team_id": draw(st.sampled_from(["team_a", "team_a", "team_b", None])),
            "acl": draw(
                st.sampled_from(
                    [
                        None,
                        {},
                        {"read_team_ids": ["a", "b"]},
                        {"read_team_ids": ["b", "a", "a"]},
                        {"read_role_ids": []},
                    ]
                )
            ),
            "chunk": {"chunk_id": "c", "chunk_idx": draw(st.sampled_from([0, 0, 1]))},
            "ttl_days": draw(st.sampled_from([None, 7, 7.0, [7], 30])),
            "created_at": draw(st.sampled_from([days_ago(1), days_ago(2), "2026-05-31T00:00:00+02:00"])),
            "importance": draw(st.sampled_from([None, 0.1, 0.9])),
            "tags": draw(st.sampled_from([None, None, ["legal_hold"]])),
        }
        if draw(st.integers(0, 4)) == 0:
            field = draw(
                st.sampled_from(["tenant_id", "scope", "fingerprint", "visibility", "acl", "chunk", "indexed"])
            )
            values[field] = draw(malformed(values.get(field, True)))
        made[number if draw(st.booleans()) else str(uuid.UUID(int=number << 100))] = payload(**values)
    points.put(made)
    groups: defaultdict[Any, list[Candidate]] = defaultdict(list)
    for key, value in made.items():
        groups[duplicate_key(value) or key].append(Candidate.of(key, value))
    gone = {one.id for group in groups.values() for one in group if one != survivor(group) and not one.exempt}
    dry = points.run(full(), dry_run=True)
    report = points.run(full(), dedup={"batch": draw(st.integers(1, 7))})
    assert points.ids() == made.keys() - gone
    assert (report.handled, report.problems) == (len(gone), [])
    assert rows(dry) == rows(report)
    assert points.run(full()).handled == 0


def test_a_fingerprint_of_very_many_points(points: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.jobs.removal.CHUNK", 20)
    made = {number: copy(importance=number / 1000) for number in range(90)}
    made |= {1000 + number: copy(tenant_id=f"t_{number % 40}") for number in range(60)}
    made |= {2000: copy(tags=["legal_hold"]), 2001: copy(scope="docs"), 2002: copy(scope="docs", source_id="s")}
    points.put(made)
    dry = points.run(full(), dry_run=True)
    assert {"tenant": "t_a", "scope": "docs", "count": 1} in dry.details[points.name]["content_would_remove"]
    report = points.run(full())
    assert points.ids() == {89, 2000, 2001, 2002} | {1000 + number for number in range(40)}
    assert rows(dry) == rows(report)
    assert report.handled == 89 + 20


def test_vector_names_are_a_part_of_what_makes_a_copy(qdrant: QdrantClient, qdrant_url: str) -> None:
    with memory(qdrant, qdrant_url, vectors=("dense", "other")) as two:
        two.put({1: copy(), 2: copy()}, vectors=("dense", "other"))
        two.put({3: copy(), 4: copy()}, vectors=("dense",))
        two.put({5: copy()}, vectors=("other",))
        two.run(full())
        assert two.ids() == {1, 3, 5}


def test_ten_thousand_readers_and_answers_of_a_bounded_size(
    points: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = [f"agt_{number}" for number in range(10_000)]
    points.put({n: copy(acl={"read_agent_ids": readers if n % 2 else readers[::-1]}) for n in range(6)})
    points.put({7: copy(acl={"read_agent_ids": readers[1:]})})
    monkeypatch.setattr("ops.jobs.members.BYTES_PER_READ", 300_000)
    points.run(full(), dedup={"batch": 2})
    assert points.ids() == {0, 7}


def test_the_number_of_points_is_exact_and_the_next_run_goes_on(points: Memory) -> None:
    points.put({number: copy() for number in range(30)})
    dry = points.run(full(), dry_run=True, budget=Budget(max_points=12), dedup={"batch": 5})
    report = points.run(full(), budget=Budget(max_points=12), dedup={"batch": 5})
    assert (dry.found, report.handled, report.outcome, len(points.ids())) == (12, 12, "partial", 18)
    assert points.run(full()).handled == 17
    assert points.ids() == {0}


def test_selection(points: Memory) -> None:
    points.put({1: copy(), 2: copy(), 3: copy(tenant_id="t_b"), 4: copy(tenant_id="t_b")})
    points.put({5: copy(scope="docs"), 6: copy(scope="docs")})
    points.run(full(), tenant="t_b")
    assert points.ids() == {1, 2, 3, 5, 6}
    points.run(full(), scope="docs")
    assert points.ids() == {1, 2, 3, 5}


# --- the report that a person reviews -------------------------------------------------------------------------


def test_a_dry_run_writes_a_report_that_a_later_run_is_given(points: Memory, tmp_path: Path) -> None:
    points.put({number: copy(number // 3, importance=1 - number / 100) for number in range(12)})
    file = tmp_path / "reviewed" / "copies.jsonl"
    points.run(DedupJob("full", write_report=file), dry_run=True)
    header, *lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    assert (header["format"], header["kind"]) == (1, "comemory-dedup")
    assert {line["survivor"]: sorted(line["copies"]) for line in lines} == {
        0: [1, 2], 3: [4, 5], 6: [7, 8], 9: [10, 11],
    }  # fmt: skip
    assert set(lines[0]) == {"collection", "tenant", "scope", "policy", "survivor", "copies"}
    assert file.stat().st_mode & 0o777 == 0o600

    # The reviewer strikes one line and one copy; then things change: a survivor goes, a copy is renewed.
    kept = [line for line in lines if line["survivor"] != 0]
    kept = [line | {"copies": [4]} if line["survivor"] == 3 else line for line in kept]
    file.write_bytes(b"\n".join(orjson.dumps(line) for line in [header, *kept]))
    points.client.delete(points.name, [6], wait=True)
    points.client.set_payload(points.name, {"fingerprint": hashed(77)}, points=[10], wait=True)
    report = points.run(DedupJob(from_report=file))
    assert points.ids() == {0, 1, 2, 3, 5, 7, 8, 9, 10}
    assert report.handled == 2
    assert report.details[points.name]["skipped"] == {"changed": 1, "survivor_changed": 2}
    assert points.run(DedupJob(from_report=file), dry_run=True).found == 0


def test_a_report_never_deletes_what_outlives_the_survivor_it_names(points: Memory, tmp_path: Path) -> None:
    points.put({1: copy(ttl_days=30), 2: copy(), 3: copy(ttl_days=20), 4: copy(tags=["legal_hold"], ttl_days=9)})
    file = tmp_path / "copies.jsonl"
    entry = {"collection": points.name, "survivor": 1, "copies": [1, 2, 3, 3, 4, 99]}
    other = entry | {"collection": "cm_text_9_v9"}
    file.write_bytes(
        b'{"format":1,"kind":"comemory-dedup"}\n' + orjson.dumps(entry) + b"\n" + orjson.dumps(other) + b"\n"
    )
    report = points.run(DedupJob(from_report=file))
    assert points.ids() == {1, 2, 4}
    assert [problem.collection for problem in report.problems] == ["cm_text_9_v9"]


@pytest.mark.parametrize(
    ("selection", "left"), [({"tenant": "t_b"}, {1, 2, 11}), ({"scope": "docs"}, {1, 2, 11, 12})]
)
def test_a_report_deletes_only_what_the_run_is_about(
    points: Memory, tmp_path: Path, selection: dict[str, str], left: set[int]
) -> None:
    points.put({1: copy(), 2: copy(), 11: copy(tenant_id="t_b"), 12: copy(tenant_id="t_b")})
    file = tmp_path / "copies.jsonl"
    points.run(DedupJob("full", write_report=file), dry_run=True)
    report = points.run(DedupJob(from_report=file), **selection)
    assert points.ids() == left
    assert report.details[points.name]["skipped"]["not_selected"] == len(left) - 2


def test_a_report_may_write_a_uuid_in_any_of_its_spellings(points: Memory, tmp_path: Path) -> None:
    first, second = (f"{number:08x}-aaaa-4bbb-8ccc-1234567890ab" for number in (1, 2))
    points.put({first: copy(importance=1), second: copy(importance=0)})
    file = tmp_path / "copies.jsonl"
    entry = {"collection": points.name, "survivor": first.upper(), "copies": [second.replace("-", "")]}
    file.write_bytes(b'{"format":1,"kind":"comemory-dedup"}\n' + orjson.dumps(entry))
    assert points.run(DedupJob(from_report=file)).handled == 1
    assert points.ids() == {first}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "Cannot read"),
        (b'{"kind":"comemory-dedup","format":true}', "format True"),
        (b'{"kind":"comemory-dedup","format":1}\n{"collection":"x","survivor":1,"copies":["abc"]}', "line 2"),
        (b'{"kind":"comemory-dedup","format":1}\n{"collection":"x","survivor":-5,"copies":[]}', "line 2"),
        (b"", "not a report"),
        (b'{"kind":"comemory-dedup","format":2}', "format 2"),
        (b'{"kind":"comemory-dedup","format":1}\n{"collection":"x","survivor":1}', "line 2"),
        (b'{"kind":"comemory-dedup","format":1}\n{"collection":"x","survivor":true,"copies":[]}', "line 2"),
    ],
)
def test_a_file_that_is_no_report_deletes_nothing(
    points: Memory, tmp_path: Path, content: bytes | None, says: str
) -> None:
    file = tmp_path / "copies.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Exception, match=says):
        points.run(DedupJob(from_report=file))


# --- incremental ----------------------------------------------------------------------------------------------


def test_an_incremental_run_looks_only_where_something_changed(points: Memory) -> None:
    state = DedupState()
    full_job, job = DedupJob("full", state=state), DedupJob("incremental", state=state)
    points.put({number: copy(number, created_at=days_ago(5)) for number in range(200)})
    points.put({300: copy(250, tenant_id="t_b"), 301: copy(251, tenant_id="t_b"), 302: copy(252, tenant_id="t_c")})
    assert points.run(job).details[points.name]["mode"] == "full", "nothing is known yet"
    assert points.run(full_job, dry_run=True).found == 0

    points.put({400: copy(0, created_at=days_ago(-0.1)), 401: copy(500, created_at=days_ago(-0.1))})
    points.put({402: copy(252, tenant_id="t_c", created_at=days_ago(4), updated_at=days_ago(-0.1))})
    points.put({403: copy(250, tenant_id="t_b", created_at=days_ago(3))})  # shows in the tenant's number only
    points.put({404: copy(2, created_at=days_ago(-0.1), fingerprint=f"{2 << 192:064x}")})
    later = NOW + timedelta(days=1)
    dry = points.run(job, dry_run=True, now=later)
    report = points.run(job, now=later)
    details = report.details[points.name]
    assert (details["mode"], report.handled) == ("incremental", 4)
    assert dry.rows == report.rows
    assert points.ids() & {0, 2, 300, 302, *range(400, 405)} == {0, 2, 300, 302, 401}
    assert details["points_read"] < 30
    again = points.run(job, now=later + timedelta(days=1))
    assert (again.handled, again.details[points.name]["mode"]) == (0, "incremental")
    assert again.details[points.name]["points_read"] == 0


def test_a_clock_set_back_does_not_hide_what_is_new(points: Memory) -> None:
    job = DedupJob()
    points.put({number: copy(number, created_at=days_ago(50)) for number in range(20)})
    points.run(job)
    points.put({100: copy(1, created_at=days_ago(10))})
    report = points.run(job, now=NOW - timedelta(days=10))
    assert (report.details[points.name]["mode"], report.handled) == ("incremental", 1)


def test_other_policies_or_much_that_is_new_make_a_full_run(points: Memory) -> None:
    job = DedupJob()
    points.put({number: copy(number, scope="docs", created_at=days_ago(50)) for number in range(8)})
    points.run(job)
    changed = points.run(job, dedup={"policies": {"docs": "content"}})
    assert changed.details[points.name]["mode"] == "full"
    points.put({100 + number: copy(number, scope="docs", created_at=days_ago(0)) for number in range(8)})
    many = points.run(job, dedup={"policies": {"docs": "content"}})
    assert (many.details[points.name]["mode"], many.handled) == ("full", 8)


def test_state_is_kept_in_a_file_and_a_broken_one_is_as_good_as_none(points: Memory, tmp_path: Path) -> None:
    points.put({number: copy(number, created_at=days_ago(50)) for number in range(8)})
    file = tmp_path / "state" / "dedup.json"

    def mode() -> str:
        report = points.run(DedupJob(), dedup={"state_file": file})
        assert report.problems == []
        return str(report.details[points.name]["mode"])

    assert [mode(), mode()] == ["full", "incremental"]
    file.write_bytes(file.read_bytes()[:20])
    assert [mode(), mode()] == ["full", "incremental"]
    file.write_bytes(b'{"format":99,"collections":{}}')
    assert mode() == "full"
    blocked = points.run(DedupJob("full"), dedup={"state_file": tmp_path / "state" / "dedup.json" / "x"})
    assert "dedup.state_file: cannot write" in blocked.problems[0].message


def test_a_run_that_was_cut_short_is_no_run_to_go_by(points: Memory) -> None:
    job = DedupJob()
    points.put({number: copy(created_at=days_ago(50)) for number in range(8)})
    assert points.run(job, budget=Budget(max_points=3), dedup={"batch": 2}).outcome == "partial"
    assert points.run(job, tenant="t_a", dry_run=True).details[points.name]["mode"] == "full"
    assert points.run(job).handled == 4


# --- bad days -------------------------------------------------------------------------------------------------


def test_a_server_that_answers_with_errors_or_goes_away(points: Memory) -> None:
    points.put({number: copy(number // 2) for number in range(12)})
    faults = (Status(503), Status(500), Status(429, retry_after=0), Reset(), Reset(forwarded=True))
    with FaultProxy(points.url) as proxy:
        proxy.script(*faults, path="/points/delete", after=1)
        report = points.run(full(), url=proxy.url, dedup={"batch": 2})
    assert (report.handled, report.outcome, report.retries) == (6, "success", len(faults))
    assert points.ids() == {0, 2, 4, 6, 8, 10}


def test_a_server_that_stays_away_is_a_problem(points: Memory) -> None:
    points.put({number: copy(number // 2) for number in range(12)})
    with FaultProxy(points.url) as proxy:
        proxy.always(Status(503), path="/points/scroll")
        report = points.run(full(), url=proxy.url, retry_for=0.2)
    assert (report.outcome, report.found, len(points.ids())) == ("failed", 0, 12)
    assert "it answered 503" in report.problems[0].message


@pytest.mark.parametrize("included", [False, True])
def test_an_alias_switched_during_a_run_changes_nothing(
    qdrant: QdrantClient, points: Memory, included: bool
) -> None:
    points.put({1: copy(), 2: copy()})
    with memory(qdrant, points.url) as other:
        other.put({1: copy(), 2: copy()})
        alias = f"alias_{points.name}"

        def switch(name: str) -> Callable[[], object]:
            create = models.CreateAlias(collection_name=name, alias_name=alias)
            return lambda: qdrant.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])

        switch(points.name)()
        chosen: dict[str, Any] = {"include": [alias]} if included else {"collection": alias}
        with FaultProxy(points.url) as proxy:
            proxy.script(Call(switch(other.name)), path="/points/delete")
            report = points.run(full(), url=proxy.url, **chosen)
        assert [(row.collection, row.count) for row in report.rows] == [(points.name, 1)]
        assert (points.ids(), other.ids()) == ({1}, {1, 2})


def test_a_server_that_answers_too_late(points: Memory) -> None:
    # Ids of their own: the late request still arrives, perhaps when the next test is under way.
    points.put({number: copy(number // 2) for number in range(9_000, 9_006)})
    with FaultProxy(points.url) as proxy:
        proxy.script(Delay(1.5), path="/points/delete")
        report = points.run(full(), url=proxy.url, timeout=0.75)
    assert (report.handled, report.outcome, report.problems) == (3, "success", [])
    assert report.retries >= 1
    assert points.ids() == {9_000, 9_002, 9_004}


def test_a_collection_that_is_not_ours_is_not_touched(qdrant: QdrantClient, points: Memory) -> None:
    points.put({1: copy(), 2: copy()})
    with memory(qdrant, points.url) as other:
        other.put({1: copy(), 2: copy()})
        with FaultProxy(points.url) as proxy:
            chosen = points.run(full(), url=proxy.url, collection=other.name)
            points.run(full(), url=proxy.url)
            assert proxy.seen(path=other.name) == 0
        assert f"'{other.name}' is not one the settings look after" in chosen.problems[0].message
        assert (points.ids(), other.ids()) == ({1}, {1, 2})


def test_a_collection_deleted_and_an_index_missing(qdrant: QdrantClient, points: Memory) -> None:
    points.put({1: copy(), 2: copy()})
    with memory(qdrant, points.url) as gone, memory(qdrant, points.url, without=["fingerprint"]) as bare:
        gone.put({1: copy(), 2: copy()})
        bare.put({1: copy(), 2: copy()})
        with FaultProxy(points.url) as proxy:
            proxy.script(Call(lambda: qdrant.delete_collection(gone.name)), path=f"{gone.name}/points/delete")
            report = points.run(full(), url=proxy.url, include=[points.name, gone.name, bare.name])
        said = {problem.collection: problem.message for problem in report.problems}
        assert "deleted during the run" in said[gone.name]
        assert "'fingerprint'" in said[bare.name]
        assert bare.ids() == {1, 2}
    assert points.ids() == {1}


def test_limits_of_strict_mode_are_kept_to(qdrant: QdrantClient, qdrant_url: str) -> None:
    with memory(qdrant, qdrant_url) as small:
        job = DedupJob()
        small.put({number: copy(number // 2, created_at=days_ago(50)) for number in range(40)})
        limits = models.StrictModeConfig(max_query_limit=7, condition_max_size=6, filter_max_conditions=70)
        qdrant.update_collection(small.name, strict_mode_config=limits)
        assert (small.run(job).problems, qdrant.count(small.name).count) == ([], 20)
        small.put({100 + number: copy(number, created_at=days_ago(-1)) for number in range(4)})
        report = small.run(job, now=NOW + timedelta(days=1))
        assert (report.problems, report.handled, report.details[small.name]["mode"]) == ([], 4, "incremental")


@pytest.mark.embedded_only("starts an endpoint with keys, and kills it")
def test_a_key_without_the_right_to_write_and_an_endpoint_that_dies(
    start_endpoint: Callable[..., Endpoint],
) -> None:
    endpoint = start_endpoint(api_key="writer", read_only_api_key="reader")
    client = QdrantClient(url=endpoint.url, api_key="writer", check_compatibility=False, timeout=60)
    with memory(client, endpoint.url) as guarded:
        guarded.put({number: copy(number // 2) for number in range(20)})
        assert guarded.run(full(), api_key="reader", dry_run=True).found == 10
        report = guarded.run(full(), api_key="reader")
        assert (report.outcome, len(guarded.ids())) == ("failed", 20)
        assert "no right to POST" in report.problems[0].message
        with FaultProxy(endpoint.url) as proxy:
            proxy.script(Call(endpoint.kill), path="/points/delete", after=2)
            partial = guarded.run(full(), url=proxy.url, api_key="writer", dedup={"batch": 2}, retry_for=0.3)
        assert (partial.outcome, partial.handled) == ("partial", 4)
        endpoint.restart()
        assert guarded.run(full(), api_key="writer").handled == 6
        assert guarded.ids() == set(range(0, 20, 2))
    client.close()


def test_the_job_killed_in_the_middle_then_a_clean_run(points: Memory) -> None:
    points.put({number: copy(number // 2) for number in range(20)})
    with FaultProxy(points.url) as proxy:
        kill_mid_job(proxy, points.name, "dedup", "DedupJob", "dedup", '"full"')
        time.sleep(0.6)
    assert points.ids() >= set(range(0, 20, 2))
    assert len(points.ids()) > 10
    points.run(full())
    assert points.ids() == set(range(0, 20, 2))
