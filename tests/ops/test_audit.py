"""The audit on a real engine: counted and deep, what is skipped is said, and nothing is changed."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from comemory.indexes import PAYLOAD_INDEXES, IndexSpec
from ops.jobs import audit_deep
from ops.jobs.audit import AuditJob
from ops.jobs.base import Context, Progress, Selection
from ops.report import JobReport
from tests.comemory.payloads import good_payload
from tests.support.fault_proxy import Call, FaultProxy, Status
from tests.support.memory import Memory, context_for, memory

SECRET = "the secret content of a point"


@pytest.fixture(scope="module")
def shared(qdrant: QdrantClient) -> Iterator[Memory]:
    with memory(qdrant, metadata={"embedding_model": "model-a"}) as made:
        yield made


@pytest.fixture
def filled(shared: Memory) -> Memory:
    """A collection with one point for each of some faults, and two without any."""
    shared.clear()
    shared.put([good_payload(text=SECRET), good_payload(), *WRONG])
    return shared


def test_a_point_without_a_tenant_is_counted_beside_one_with_two(shared: Memory, qdrant_url: str) -> None:
    shared.clear()
    shared.put([good_payload(tenant_id=["t_a", "t_b"], importance=5), good_payload(tenant_id=None, importance=5)])
    with context_for(qdrant_url, shared.name) as context:
        report = AuditJob().run(context)
    assert {row.tenant: row.count for row in report.rows if row.reason == "importance.out_of_range"} == {
        "t_a": 1, "t_b": 1, "": 1,
    }  # fmt: skip


def test_examples_of_wrong_tenants_are_of_the_scope_that_is_asked_for(shared: Memory, qdrant_url: str) -> None:
    shared.clear()
    shared.put([good_payload(tenant_id="acme", scope="memory"), good_payload(tenant_id="acme", scope="docs")])
    with context_for(qdrant_url, shared.name) as context:
        report = AuditJob().run(replace(context, selection=Selection(scope="memory")))
    (row,) = [row for row in report.rows if row.reason == "tenant_id.malformed"]
    assert (row.count, len(row.examples)) == (1, 1)


WRONG: list[dict[str, Any]] = [
    good_payload(tenant_id=None),
    good_payload(tenant_id="acme"),
    good_payload(tenant_id=["t_a", "t_b"]),
    good_payload(scope="secret"),
    good_payload(scope="secret", tenant_id="t_b", visibility="open"),
    good_payload(owner_kind="robot"),
    good_payload(source_kind=7),
    good_payload(ttl_days="7"),
    good_payload(ttl_days=0),
    good_payload(created_at="yesterday"),
    good_payload(schema_version="cm_payload_v2"),
    good_payload(importance=1.5),
    good_payload(owner_id=None),
    good_payload(embedding={"model": "model-b", "dim": 4, "metric": "cosine"}),
    good_payload(embedding={"model": "model-a", "dim": 768, "metric": "dot"}),
    good_payload(lang="Klingon", text=SECRET),
]
COUNTED = {
    ("", "tenant_id.null"): 1,
    ("acme", "tenant_id.malformed"): 1,
    ("t_a", "tenant_id.list"): 1,
    ("t_b", "tenant_id.list"): 1,
    ("t_a", "scope.unknown"): 1,
    ("t_b", "scope.unknown"): 1,
    ("t_b", "visibility.unknown"): 1,
    ("t_a", "owner_kind.unknown"): 1,
    ("t_a", "confidential.no_owner"): 2,
    ("t_a", "source_kind.wrong_type"): 1,
    ("t_a", "ttl_days.wrong_type"): 1,
    ("t_a", "ttl_days.out_of_range"): 1,
    ("t_a", "created_at.malformed"): 1,
    ("t_a", "schema_version.unknown"): 1,
    ("t_a", "importance.out_of_range"): 1,
    ("t_a", "owner_id.null"): 1,
    ("t_a", "embedding.model.mismatch"): 1,
}
ONLY_DEEP = {
    ("t_a", "embedding.dim.mismatch"): 1,
    ("t_a", "embedding.metric.mismatch"): 1,
    ("t_a", "lang.malformed"): 1,
}


def counts(report: JobReport) -> dict[tuple[str, str], int]:
    assert len({(r.collection, r.tenant, r.reason) for r in report.rows}) == len(report.rows)
    return {(r.tenant, r.reason): r.count for r in report.rows}


def test_every_fault_is_counted_by_reason_and_tenant(filled: Memory, qdrant_url: str) -> None:
    with context_for(qdrant_url, filled.name) as context:
        report = AuditJob().run(context)
    assert report.outcome == "success", report.problems
    assert counts(report) == COUNTED
    examples = {(r.tenant, r.reason): r.examples for r in report.rows}
    assert examples["t_b", "scope.unknown"] == ("6",)
    assert examples["", "tenant_id.null"] == ("2",)
    assert examples["acme", "tenant_id.malformed"] == ("3",)
    left = {entry["reason"] for entry in report.details["not_checked"]}
    assert left == {"embedding.dim.mismatch", "embedding.metric.mismatch"}
    assert report.details["drift"] == []


def test_the_deep_audit_finds_more_and_lists_ids_without_content(
    filled: Memory, qdrant_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_deep, "PAGE", 5)
    path = tmp_path / "new" / "quarantine.jsonl"
    steps: list[Progress] = []
    with context_for(qdrant_url, filled.name, audit={"samples": 1}) as context:
        report = AuditJob(deep=True, quarantine=path).run(replace(context, progress=steps.append))
    expected = COUNTED | ONLY_DEEP
    # The model sees one point whose tenant is a list, and knows no tenant to count it under.
    for tenant in ("t_a", "t_b"):
        del expected[tenant, "tenant_id.list"]
    found = counts(report)
    assert found.pop(("", "tenant_id.list")) == 1
    assert found == expected
    assert (report.details["points_checked"], report.details["points_invalid"]) == (18, 16)
    assert all(len(row.examples) == 1 for row in report.rows)
    assert [(s.done, s.total) for s in steps] == [(5, 18), (10, 18), (15, 18), (18, 18)]
    assert report.details["quarantine"] == str(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["id"] for line in lines] == list(range(2, 18))
    assert all(set(line) == {"collection", "id", "reasons"} for line in lines)
    assert lines[4]["reasons"] == ["scope.unknown", "visibility.unknown"]
    assert SECRET not in path.read_text() + json.dumps(report.to_json())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_lenient_passes_what_readers_accept(qdrant: QdrantClient, filled: Memory, qdrant_url: str) -> None:
    filled.clear()
    filled.put([good_payload(source_id="doc_01HQ", created_at="2026-01-01", fingerprint="sha256:a1b2")])
    with context_for(qdrant_url, filled.name) as context:
        assert len(AuditJob(deep=True).run(context).rows) == 3
    with context_for(qdrant_url, filled.name, audit={"lenient": True}) as context:
        assert AuditJob(deep=True).run(context).rows == []


@pytest.mark.parametrize("deep", [False, True])
def test_a_selection_narrows_it(filled: Memory, qdrant_url: str, deep: bool) -> None:
    with context_for(qdrant_url, filled.name) as context:
        chosen = replace(context, selection=Selection(tenant="t_b", scope="secret"))
        report = AuditJob(deep=deep).run(chosen)
    assert counts(report) == {("t_b", "scope.unknown"): 1, ("t_b", "visibility.unknown"): 1}


@pytest.mark.parametrize("deep", [False, True])
def test_nothing_is_changed(filled: Memory, qdrant_url: str, deep: bool) -> None:
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name) as context:
        AuditJob(deep=deep).run(context)
        reading = r"/(count|facet|scroll)$"
        assert {m for m, p in proxy.log} <= {"GET", "POST"}
        assert proxy.seen("POST") == proxy.seen("POST", reading) > 0


def test_missing_indexes_are_named_once_and_the_rest_is_counted(qdrant: QdrantClient, qdrant_url: str) -> None:
    """A wrong one is as good as none: what the server would count with it is something else."""
    indexes = [index for index in PAYLOAD_INDEXES if index.field not in ("scope", "ttl_days")]
    indexes += [IndexSpec(field="ttl_days", type="keyword"), IndexSpec(field="embedding.dim", type="integer")]
    with memory(qdrant, indexes=indexes) as poor:
        poor.put([good_payload(scope="secret", ttl_days=0, visibility="open", embedding={"dim": 5})])
        with context_for(qdrant_url, poor.name) as context:
            report = AuditJob().run(context)
    assert counts(report) == {("t_a", "visibility.unknown"): 1, ("t_a", "embedding.dim.mismatch"): 1}
    assert report.outcome == "partial"
    assert sorted(problem.message.split("'")[3] for problem in report.problems) == ["scope", "ttl_days"]
    left = {entry["reason"] for entry in report.details["not_checked"]}
    assert {"scope.unknown", "scope.missing", "ttl_days.out_of_range", "embedding.metric.mismatch"} <= left
    assert "visibility.unknown" not in left
    kinds = {drift["kind"] for drift in report.details["drift"]}
    assert kinds == {"index_missing", "index_rebuild"}


def test_an_index_dropped_during_the_run(qdrant: QdrantClient, filled: Memory, qdrant_url: str) -> None:
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name) as context:
        proxy.script(Call(lambda: qdrant.delete_payload_index(filled.name, "tags", wait=True)), path="/count")
        refusal = b'{"status":{"error":"Bad request: Index required but not found for \\"scope\\" of one of"}}'
        proxy.script(Status(400, body=refusal), path="/count", after=4)
        report = AuditJob().run(context)
    qdrant.create_payload_index(filled.name, "tags", "keyword", wait=True)
    assert report.outcome == "partial"
    assert [problem.message.split("'")[3] for problem in report.problems] == ["scope"]
    assert counts(report)["t_b", "visibility.unknown"] == 1


def test_drift_is_reported(qdrant: QdrantClient, qdrant_url: str) -> None:
    with (
        memory(qdrant, strict=None, indexes=[], size=8) as wrong,
        context_for(qdrant_url, wrong.name, "cm_code_4_v1") as context,
    ):
        report = AuditJob(deep=True).run(context)
    drifts = {(d["collection"], d["kind"]) for d in report.details["drift"]}
    assert drifts == {
        (wrong.name, "index_missing"),
        (wrong.name, "strict_mode_off"),
        (wrong.name, "size_mismatch"),
        ("cm_code_4_v1", "collection_missing"),
    }


@pytest.mark.parametrize("deep", [False, True])
def test_a_collection_deleted_meanwhile(qdrant: QdrantClient, filled: Memory, qdrant_url: str, deep: bool) -> None:
    with memory(qdrant, indexes=[PAYLOAD_INDEXES[0]]) as going:
        going.put([good_payload()])
        with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name, going.name) as context:
            proxy.script(Call(going.delete), path=f"{going.name}/points")
            report = AuditJob(deep=deep).run(context)
    gone = [problem for problem in report.problems if "does not exist" in problem.message]
    assert [problem.collection for problem in gone] == [going.name]
    assert {row.collection for row in report.rows} == {filled.name}


def test_a_collection_that_is_not_ours_is_not_read(filled: Memory, qdrant: QdrantClient, qdrant_url: str) -> None:
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, "cm_text_4_v1") as context:
        AuditJob().run(context)
        assert proxy.seen(path=filled.name) == 0


def test_a_run_cut_short_says_so_and_lists_what_it_saw(
    filled: Memory, qdrant_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_deep, "PAGE", 4)
    path = tmp_path / "list.jsonl"
    with context_for(qdrant_url, filled.name) as context:
        budget = _After(2)
        report = AuditJob(deep=True, quarantine=path).run(replace(context, budget=budget))  # type: ignore[arg-type]
    assert report.stopped == "asked to stop"
    assert report.outcome == "partial"
    assert report.details["points_checked"] == 8
    assert len(path.read_text().splitlines()) == 6


class _After:
    """A budget that is used up after so many questions past the first."""

    spent = 0

    def __init__(self, questions: int) -> None:
        self.left = questions

    def exhausted(self) -> str | None:
        self.left -= 1
        return None if self.left >= 0 else "asked to stop"


def test_a_counting_run_is_cut_short_between_two_checks(filled: Memory, qdrant_url: str) -> None:
    with context_for(qdrant_url, filled.name) as context:
        report = AuditJob().run(replace(context, budget=_After(10)))  # type: ignore[arg-type]
    assert report.stopped == "asked to stop"
    assert 0 < len(report.rows) < len(COUNTED)


def test_a_list_that_cannot_be_written_is_said_at_once(qdrant_url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, "cm_text_4_v1") as context:
        report = AuditJob(deep=True, quarantine=tmp_path / "file" / "list.jsonl").run(context)
        assert proxy.log == []
    assert report.outcome == "failed"
    assert "Cannot write the quarantine list" in report.problems[0].message


def test_a_broken_run_leaves_the_older_list_whole(filled: Memory, qdrant_url: str, tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text("older\n")

    def killed(_: Progress) -> None:
        raise KeyboardInterrupt

    with context_for(qdrant_url, filled.name) as context, pytest.raises(KeyboardInterrupt):
        AuditJob(deep=True, quarantine=path).run(replace(context, progress=killed))
    assert path.read_text() == "older\n"
    assert list(tmp_path.iterdir()) == [path]


def test_ids_are_numbers_and_uuids(qdrant: QdrantClient, filled: Memory, qdrant_url: str, tmp_path: Path) -> None:
    unique = "5b1f2c9e-7d0a-5c44-9a55-0c6d3e8f1a27"
    filled.clear()
    for point in (unique, 2**63):
        stored = models.PointStruct(id=point, vector={}, payload=good_payload(scope=None))
        qdrant.upsert(filled.name, [stored], wait=True)
    path = tmp_path / "list.jsonl"
    with context_for(qdrant_url, filled.name) as context:
        assert set(AuditJob().run(context).rows[0].examples) == {unique, str(2**63)}
        AuditJob(deep=True, quarantine=path).run(context)
    assert {json.loads(line)["id"] for line in path.read_text().splitlines()} == {unique, 2**63}


def test_a_payload_with_ten_thousand_grants(filled: Memory, qdrant_url: str) -> None:
    filled.clear()
    grants = [f"agt_{i}" for i in range(10_000)]
    filled.put([good_payload(acl={"read_agent_ids": grants}), good_payload(acl={"read_agent_ids": [*grants, "x"]})])
    with context_for(qdrant_url, filled.name) as context:
        assert AuditJob().run(context).rows == []
        rows = AuditJob(deep=True).run(context).rows
    assert [(r.reason, r.examples) for r in rows] == [("acl.read_agent_ids.malformed", ("1",))]


def test_busy_for_a_moment_is_no_failure(filled: Memory, qdrant_url: str) -> None:
    with FaultProxy(qdrant_url) as proxy:

        def run(context: Context) -> JobReport:
            proxy.script(Status(429), Status(503), path="/points/count")
            return AuditJob().run(context)

        with context_for(proxy.url, filled.name, retry_for=20) as context:
            report = run(context)
    assert counts(report) == COUNTED
    assert report.retries == 2
