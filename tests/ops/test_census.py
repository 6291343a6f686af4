"""The census on a real engine: exact counts, a fixed number of requests, failures that stay visible and alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

import ops.session
from comemory.indexes import PAYLOAD_INDEXES
from comemory.payload import SCOPES
from comemory.retention import expires_at, is_expired
from ops import metrics
from ops.collectors import retention
from ops.collectors.tenants import TenantsCollector
from ops.exposition import Exposition
from ops.jobs.base import Context, Selection
from ops.jobs.census import COLLECTORS, CensusJob
from ops.metrics import NO_TENANT, OTHER_SCOPES, Metric
from ops.results import Results
from ops.snapshot import Snapshot
from tests.comemory.payloads import good_payload
from tests.support.fault_proxy import Call, FaultProxy, Status
from tests.support.memory import Memory, context_for, memory

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def shared(qdrant: QdrantClient) -> Iterator[Memory]:
    with memory(qdrant) as made:
        yield made


@pytest.fixture
def filled(shared: Memory) -> Memory:
    """A collection without points, to be filled."""
    shared.clear()
    return shared


@pytest.fixture(scope="module")
def shared_too(qdrant: QdrantClient) -> Iterator[Memory]:
    with memory(qdrant) as made:
        yield made


@pytest.fixture
def other(shared_too: Memory) -> Memory:
    """A second one."""
    shared_too.clear()
    return shared_too


def at(context: Context, now: datetime = NOW) -> Context:
    return replace(context, now=lambda: now)


def numbers(snapshot: Snapshot, metric: Metric) -> dict[tuple[str, ...], float]:
    """The samples of a metric by their labels but for the collection."""
    found = [s for s in snapshot.samples() if s.metric is metric]
    return {s.labels[1:]: s.value for s in found}


def failed(snapshot: Snapshot) -> set[tuple[str, str]]:
    return {key for key, run in snapshot.runs.items() if not run.success}


def of(tenant: str | None, scope: str = "docs", **changes: Any) -> dict[str, Any]:
    return good_payload(tenant_id=tenant, scope=scope, **changes)


def test_points_per_tenant_and_scope(filled: Memory, qdrant_url: str) -> None:
    payloads = [of(f"t_{i % 3}", SCOPES[i % 5]) for i in range(45)]
    payloads += [of(None), of("", "memory"), of("t_0", "secret"), of("t_0", "gossip"), of(None, "secret")]
    without = [of("t_1"), of("t_2")]
    del without[0]["tenant_id"], without[1]["scope"]
    filled.put(payloads + without)
    with context_for(qdrant_url, filled.name) as context:
        job = CensusJob()
        report = job.run(context)
    assert report.outcome == "success", report.problems
    counts = numbers(job.store.current, metrics.POINTS)
    expected = Counter((f"t_{i % 3}", SCOPES[i % 5]) for i in range(45))
    expected += Counter({(NO_TENANT, "docs"): 2, (NO_TENANT, "memory"): 1, (NO_TENANT, OTHER_SCOPES): 1})
    expected += Counter({("t_0", OTHER_SCOPES): 2, ("t_2", OTHER_SCOPES): 1})
    shown: Counter[tuple[str, ...]] = Counter()
    for labels, count in counts.items():
        shown[labels] += int(count)
    assert shown == expected
    assert numbers(job.store.current, metrics.TENANTS) == {(): 3}
    assert numbers(job.store.current, metrics.COLLECTION_POINTS) == {(): 52}
    assert report.found == 52
    assert report.details[filled.name]["points"] == 52


@pytest.mark.parametrize("backlog", [False, True])
def test_what_is_expired_agrees_with_the_rule(
    filled: Memory, qdrant_url: str, monkeypatch: pytest.MonkeyPatch, backlog: bool
) -> None:
    monkeypatch.setattr(retention, "TTL_PER_FILTER", 4)
    monkeypatch.setattr(retention, "GUARDED_MOST", 0 if backlog else 1000)
    odd: list[Any] = [None, 0, -1, "7", 7.5, 7.0, None if backlog else [7, 400], True]
    payloads = []
    for i in range(300):
        ttl = odd[i % 8] if i % 10 == 0 else 1 + i % 11
        created = NOW - timedelta(days=(i * 7) % 60, hours=i % 24)
        payloads.append(
            of(f"t_{i % 4}" if i % 50 else None, SCOPES[i % 5], ttl_days=ttl, created_at=created.isoformat())
        )
        if i % 13 == 0:
            payloads[-1]["tags"] = ["legal_hold"]
    payloads.append(of("t_0", ttl_days=3, created_at="no time"))
    payloads.append(of("t_0", ttl_days=3, created_at="2020-01-01", schema_version="cm_payload_v2"))
    filled.put(payloads)
    grace = timedelta(hours=5)
    with context_for(qdrant_url, filled.name, ttl={"grace": grace}) as context:
        job = CensusJob()
        assert job.run(at(context)).outcome == "success"
    snapshot = job.store.current

    def count(now: datetime) -> Counter[tuple[str, str]]:
        return Counter(
            (p["tenant_id"] or NO_TENANT, p["scope"]) for p in payloads if is_expired(p, now, grace=grace)
        )

    assert numbers(snapshot, metrics.EXPIRED_POINTS) == count(NOW)
    assert sum(count(NOW).values()) > 50
    expiries = [expires_at(p) for p in payloads if is_expired(p, NOW, grace=grace)]
    oldest = min(e for e in expiries if isinstance(e, datetime))
    assert numbers(snapshot, metrics.EXPIRED_OLDEST_AGE) == {(): (NOW - grace - oldest).total_seconds()}
    if not backlog:  # the forecast does not read payloads, so it takes a list for any of its values
        return
    coming = {}
    for window, days in metrics.WINDOWS.items():
        for tenant in {t for t, _ in count(NOW + timedelta(days=days)) if t != NO_TENANT}:
            later = sum(n for (t, _), n in count(NOW + timedelta(days=days)).items() if t == tenant)
            now = sum(n for (t, _), n in count(NOW).items() if t == tenant)
            if later > now:
                coming[tenant, window] = later - now
    assert numbers(snapshot, metrics.EXPIRING_POINTS) == coming
    assert coming


def test_a_collection_as_it_is_stored(filled: Memory, qdrant: QdrantClient, qdrant_url: str) -> None:
    filled.put([of("t_a")] * 3)
    qdrant.upsert(filled.name, [models.PointStruct(id=99, vector={}, payload=of("t_a"))], wait=True)
    with context_for(qdrant_url, filled.name) as context:
        job = CensusJob()
        job.run(context)
    snapshot = job.store.current
    assert numbers(snapshot, metrics.COLLECTION_POINTS) == {(): 4}
    assert numbers(snapshot, metrics.COLLECTION_VECTORS) == {("dense",): 3}
    assert numbers(snapshot, metrics.COLLECTION_SEGMENTS)[()] >= 1
    assert sum(numbers(snapshot, metrics.COLLECTION_STATUS).values()) == 1
    assert set(numbers(snapshot, metrics.SCHEMA_DRIFT).values()) == {0}
    version = [s.labels for s in snapshot.samples() if s.metric is metrics.QDRANT_INFO]
    assert version == [(qdrant.info().version,)]


def test_the_number_of_requests_is_that_of_few_tenants(
    filled: Memory, qdrant_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One tenant with very many points beside a thousand with three, and before that one tenant alone."""
    monkeypatch.setattr(retention, "GUARDED_MOST", 10_000)
    filled.put([of("t_small", ttl_days=1)])
    with context_for(qdrant_url, filled.name) as context:
        few = CensusJob().run(at(context)).requests
        payloads = [of("t_large", SCOPES[i % 5], ttl_days=1) for i in range(3000)]
        payloads += [of(f"t_{i % 1000}", SCOPES[i % 5], ttl_days=1) for i in range(3000)]
        filled.put(payloads, start=10)
        job = CensusJob()
        report = job.run(at(context))
    assert report.requests == few
    counts: Counter[str] = Counter()
    for (tenant, _), count in numbers(job.store.current, metrics.POINTS).items():
        counts[tenant] += int(count)
    assert counts["t_large"] == 3000
    assert counts["t_999"] == 3
    assert len(counts) == 1002
    shown = Exposition(job.store, Results(), max_tenants=10).render()[0].decode()
    assert "comemory_tenants_folded 992.0" in shown
    assert f'comemory_points{{collection="{filled.name}",scope="docs",tenant_id="t_large"}} 600.0' in shown
    assert shown.count("comemory_points{") <= 11 * 6


def test_tenants_beyond_one_page_are_counted_too(
    filled: Memory, qdrant_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops.session, "FACET_PAGE", 7)
    filled.put([of(f"t_{i % 40}") for i in range(80)])
    with context_for(qdrant_url, filled.name) as context:
        job = CensusJob()
        job.run(context)
    assert numbers(job.store.current, metrics.POINTS) == {(f"t_{i}", "docs"): 2 for i in range(40)}


def test_a_page_smaller_than_ours_is_taken_as_the_limit(filled: Memory, qdrant_url: str) -> None:
    """Strict mode may allow fewer values in one answer than we ask for."""
    filled.put([of(f"t_{i % 5}") for i in range(10)])
    refusal = b'{"status":{"error":"Bad request: Limit exceeded 10000 > 3 for \\"limit\\". Help: Reduce it."}}'
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name) as context:
        proxy.script(*[Status(400, body=refusal)] * 3, path="/facet")
        job = CensusJob()
        assert job.run(context).outcome == "success"
    assert numbers(job.store.current, metrics.POINTS) == {(f"t_{i}", "docs"): 2 for i in range(5)}


def test_a_tenant_that_is_gone_is_gone_from_the_next_snapshot(
    filled: Memory, qdrant: QdrantClient, qdrant_url: str
) -> None:
    filled.put([of("t_stays"), of("t_goes")])
    with context_for(qdrant_url, filled.name) as context:
        job = CensusJob()
        job.run(context)
        assert ("t_goes", "docs") in numbers(job.store.current, metrics.POINTS)
        qdrant.delete(filled.name, models.PointIdsList(points=[1]), wait=True)
        job.run(context)
    assert numbers(job.store.current, metrics.POINTS) == {("t_stays", "docs"): 1}
    assert numbers(job.store.current, metrics.TENANTS) == {(): 1}


def test_odd_tenants(filled: Memory, qdrant_url: str) -> None:
    odd: list[Any] = ['quo"te', "new\nline", "юнікод", "x" * 500, 5, ["t_a", "t_b"], {"a": 1}, True, "__other__"]
    filled.put([of(tenant) for tenant in odd])
    with context_for(qdrant_url, filled.name) as context:
        job = CensusJob()
        assert job.run(context).outcome == "success"
    tenants = {tenant for tenant, _ in numbers(job.store.current, metrics.POINTS)}
    assert tenants == {'quo"te', "new\nline", "юнікод", "x" * 127 + "…", "t_a", "t_b", "__other__", NO_TENANT}
    assert numbers(job.store.current, metrics.POINTS)[NO_TENANT, "docs"] == 3
    text = Exposition(job.store, Results(), max_tenants=100).render()[0].decode()
    assert 'tenant_id="quo\\"te"' in text
    assert 'tenant_id="new\\nline"' in text


def test_a_missing_index_is_named_and_the_rest_goes_on(qdrant: QdrantClient, qdrant_url: str) -> None:
    indexes = [index for index in PAYLOAD_INDEXES if index.field not in ("scope", "ttl_days")]
    with memory(qdrant, indexes=indexes) as poor, memory(qdrant) as rich:
        for one in (poor, rich):
            one.put([of("t_a", ttl_days=1)])
        with context_for(qdrant_url, poor.name, rich.name) as context:
            job = CensusJob()
            report = job.run(at(context))
        assert report.outcome == "partial"
        told = {problem.message.split("'")[3] for problem in report.problems}
        assert told == {"scope", "ttl_days"}
        assert {problem.collection for problem in report.problems} == {poor.name}
        assert failed(job.store.current) == {("tenants", poor.name), ("retention", poor.name)}
        assert {s.labels[0] for s in job.store.current.samples() if s.metric is metrics.POINTS} == {rich.name}
        drift = {s.labels: s.value for s in job.store.current.samples() if s.metric is metrics.SCHEMA_DRIFT}
        assert drift[poor.name, "index_missing"] == 2
        assert drift[rich.name, "index_missing"] == 0


def test_a_collection_deleted_meanwhile(qdrant: QdrantClient, qdrant_url: str) -> None:
    with memory(qdrant) as one, memory(qdrant) as other:
        for made in (one, other):
            made.put([of("t_a")])
        with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, one.name, other.name) as context:
            job = CensusJob()
            job.run(context)
            first = min(one, other, key=lambda made: made.name)
            proxy.script(Call(first.delete), path=f"{first.name}/facet", after=2)
            report = job.run(context)
        assert [problem.collection for problem in report.problems] == [first.name]
        assert report.outcome == "partial"
        assert {s.labels[0] for s in job.store.current.samples() if s.metric is metrics.POINTS} == (
            {one.name, other.name} - {first.name}
        )
        assert first.name not in {collection for _, collection in job.store.current.runs}
        missing = [s for s in job.store.current.samples() if s.labels == (first.name, "collection_missing")]
        assert missing == []  # the layout was looked at before it went
        with context_for(qdrant_url, one.name, other.name) as context:
            job.run(context)
        assert [s.value for s in job.store.current.samples() if s.labels == (first.name, "collection_missing")] == [
            1
        ]


@pytest.mark.parametrize("after", [0, 1, 6, 20])
def test_qdrant_going_away_keeps_the_last_numbers_marked_as_old(
    filled: Memory, qdrant_url: str, after: int
) -> None:
    filled.put([of("t_a", ttl_days=1)] * 4)
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name, retry_for=0.2) as context:
        job = CensusJob()
        job.run(at(context))
        shown = Exposition(job.store, Results(), max_tenants=10)
        before = job.store.current
        filled.put([of("t_b")], start=50)
        proxy.always(Status(503), after=after)
        report = job.run(at(context))
        assert report.outcome == ("failed" if not report.rows else "partial")
        assert len(report.problems) == 1
        assert "gave no answer" in report.problems[0].message
        assert set(job.store.current.runs) == set(before.runs)
        assert failed(job.store.current) >= {("server", ""), ("drift", filled.name)}
        counts = numbers(job.store.current, metrics.POINTS)
        assert counts[("t_a", "docs")] == 4
        text = shown.render()[0].decode()
        assert "comemory_qdrant_up 0.0" in text
        assert f'comemory_collector_success{{collection="{filled.name}",collector="drift"}} 0.0' in text
        proxy.heal()
        job.run(at(context))
        assert failed(job.store.current) == set()
        assert ("t_b", "docs") in numbers(job.store.current, metrics.POINTS)
        assert "comemory_qdrant_up 1.0" in shown.render()[0].decode()


def test_qdrant_away_from_the_start(qdrant_url: str) -> None:
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, "cm_text_4_v1", retry_for=0.1) as context:
        proxy.always(Status(500))
        job = CensusJob()
        report = job.run(context)
    assert report.outcome == "failed"
    assert failed(job.store.current) == {("server", "")}
    assert "comemory_qdrant_up 0.0" in Exposition(job.store, Results(), max_tenants=1).render()[0].decode()


def test_busy_for_a_moment_is_no_failure(filled: Memory, qdrant_url: str) -> None:
    filled.put([of("t_a")])
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name, retry_for=20) as context:
        proxy.script(Status(429), Status(503), Status(500), path="/facet")
        report = CensusJob().run(context)
    assert report.outcome == "success"
    assert report.retries == 3


def test_collections_that_are_not_ours_are_left_alone(filled: Memory, other: Memory, qdrant_url: str) -> None:
    foreign = other
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name) as context:
        job = CensusJob()
        report = job.run(context)
        assert report.outcome == "success"
        assert proxy.seen(path=foreign.name) == 0
        refused = job.run(replace(context, selection=Selection(collection=foreign.name)))
        assert "not one the settings look after" in refused.problems[0].message
        assert proxy.seen(path=foreign.name) == 0


def test_an_alias_is_followed_when_the_run_begins(
    qdrant: QdrantClient, filled: Memory, other: Memory, qdrant_url: str
) -> None:
    old, new = filled, other
    old.put([of("t_old")])
    new.put([of("t_new")])
    alias = f"alias_{old.name}"

    def point_to(name: str) -> None:
        create = models.CreateAlias(collection_name=name, alias_name=alias)
        qdrant.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])

    point_to(old.name)
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, old.name, new.name) as context:
        chosen = replace(context, selection=Selection(collection=alias))
        proxy.script(Call(lambda: point_to(new.name)), path=f"{old.name}/facet")
        assert {(r.collection, r.tenant) for r in CensusJob().run(chosen).rows} == {(old.name, "t_old")}
        assert {(r.collection, r.tenant) for r in CensusJob().run(chosen).rows} == {(new.name, "t_new")}


def test_a_selection_narrows_the_rows_and_keeps_the_other_collections(
    filled: Memory, other: Memory, qdrant_url: str
) -> None:
    for made in (filled, other):
        made.put([of("t_a"), of("t_b"), of("t_a", "memory")])
    with context_for(qdrant_url, filled.name, other.name) as context:
        job = CensusJob()
        job.run(context)
        report = job.run(replace(context, selection=Selection(filled.name, "t_a", "memory")))
    assert [(r.collection, r.tenant, r.scope, r.count) for r in report.rows] == [(filled.name, "t_a", "memory", 1)]
    assert {collection for _, collection in job.store.current.runs} == {"", filled.name, other.name}


def test_a_run_that_is_stopped_keeps_what_it_did_not_reach(filled: Memory, other: Memory, qdrant_url: str) -> None:
    with context_for(qdrant_url, filled.name, other.name) as context:
        job = CensusJob()
        job.run(context)

        class Used:
            spent = 0
            asked = iter([None, "asked to stop"])

            def exhausted(self) -> str | None:
                return next(self.asked, "asked to stop")

        report = job.run(replace(context, budget=Used()))  # type: ignore[arg-type]
        assert report.stopped == "asked to stop"
        assert {collection for _, collection in job.store.current.runs} == {"", filled.name, other.name}


def test_a_collector_with_a_defect_takes_nothing_from_the_others(filled: Memory, qdrant_url: str) -> None:
    class Broken:
        name = "broken"

        def collect(self, target: object) -> list[Any]:
            raise KeyError("secret content")

    filled.put([of("t_a")])
    with context_for(qdrant_url, filled.name) as context:
        job = CensusJob(collectors=[Broken(), *COLLECTORS])
        report = job.run(context)
    assert failed(job.store.current) == {("broken", filled.name)}
    assert "raised KeyError at test_census.py" in report.problems[0].message
    assert "secret" not in report.problems[0].message
    assert numbers(job.store.current, metrics.POINTS) == {("t_a", "docs"): 1}


def test_exact_facets_are_asked_for_only_when_the_quick_ones_do_not_add_up(filled: Memory, qdrant_url: str) -> None:
    filled.put([of("t_a"), of("t_b", "memory")])
    with FaultProxy(qdrant_url) as proxy, context_for(proxy.url, filled.name) as context:
        CensusJob(collectors=[TenantsCollector()]).run(context)
        quick = proxy.seen("POST", "/facet")
        twice = b'{"result":{"hits":[{"value":"t_a","count":2}]}}'
        proxy.script(Status(200, body=twice), path="/facet")
        job = CensusJob(collectors=[TenantsCollector()])
        job.run(context)
        assert proxy.seen("POST", "/facet") == quick * 3
    assert numbers(job.store.current, metrics.POINTS) == {("t_a", "docs"): 1, ("t_b", "memory"): 1}
