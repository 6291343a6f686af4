"""The exposition: both formats against the library's own writer and parser, caching, folding, odd labels."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ops import metrics
from ops.exposition import Exposition
from ops.metrics import METRICS, NO_TENANT, OTHER_TENANTS
from ops.report import JobReport, Problem, Row
from ops.results import Results
from ops.snapshot import CollectorRun, Sample, Snapshot, SnapshotStore, tenant_label
from tests.support.prometheus import programs

NOW = datetime(2026, 2, 1, 12, 0, 0, 250_000, tzinfo=UTC)
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def snapshot(samples: Iterable[Sample], *, success: bool = True) -> Snapshot:
    runs = {
        ("server", ""): CollectorRun(
            "server", "", 0.01, success, NOW, (Sample(metrics.QDRANT_INFO, ("1.19.0",), 1.0),)
        ),
        ("tenants", "cm"): CollectorRun("tenants", "cm", 0.5, success, NOW, tuple(samples)),
    }
    return Snapshot(NOW, MappingProxyType(runs))


def exposition(samples: Iterable[Sample] = (), max_tenants: int = 100, **kwargs: Any) -> tuple[Exposition, Results]:
    store, results = SnapshotStore(), Results(("audit", "census", "dedup", "ttl"))
    store.publish(snapshot(samples))
    return Exposition(store, results, max_tenants=max_tenants, **kwargs), results


def series(shown: Exposition) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = shown.render()[0].decode()
    found = [(s.name, frozenset(s.labels.items()), s.value) for f in parse_text(text) for s in f.samples]
    assert len({key[:2] for key in found}) == len(found), "a series stands twice"
    return {(name, labels): value for name, labels, value in found}


def value(shown: Exposition, name: str, **labels: str) -> float | None:
    return series(shown).get((name, frozenset(labels.items())))


def report(job: str, *rows: Row, dry_run: bool = False, **kwargs: Any) -> JobReport:
    return JobReport(job, dry_run, NOW, NOW + timedelta(seconds=2), rows=list(rows), **kwargs)


def points(tenant: str, count: float, scope: str = "docs") -> Sample:
    return Sample(metrics.POINTS, ("cm", tenant_label(tenant), scope), count)


texts = st.text(st.characters(codec="utf-8"), max_size=12)


@given(st.dictionaries(st.tuples(texts, texts), st.floats(0, 1e12) | st.integers(0, 10**12), max_size=8))
def test_both_formats_are_the_librarys_own_to_the_byte(numbers: dict[tuple[str, str], float]) -> None:
    shown, results = exposition(points(tenant, n, scope) for (tenant, scope), n in numbers.items())
    for job in ("ttl", "audit"):
        results.start(job, NOW)
        results.finish(report(job, Row("cm", "t_a", "docs", 3, reason="x.y" if job == "audit" else "")))
    results.fail("dedup", "it failed")
    registry = CollectorRegistry()
    registry.register(shown)
    assert shown.render()[0] == generate_latest(registry)
    text, content_type = shown.render(OPENMETRICS)
    assert text == openmetrics.generate_latest(registry)
    assert content_type.startswith(OPENMETRICS)


def test_openmetrics_is_parsed_strictly_with_types_and_units() -> None:
    shown, results = exposition([points("t_a", 3)], lease_held=lambda: False)
    results.start("ttl", NOW)
    results.finish(report("ttl", Row("cm", "t_a", "docs", 3), handled=3))
    families = {f.name: f for f in parse_openmetrics(shown.render(OPENMETRICS)[0].decode())}
    declared = {metric.family: metric for metric in METRICS}
    assert set(families) <= set(declared)
    for name, family in families.items():
        assert (family.type, family.unit) == (declared[name].type, declared[name].unit)
    assert families["comemory_deleted_points"].samples[0].name == "comemory_deleted_points_total"
    assert families["comemory_lease_held"].samples[0].value == 0


@pytest.mark.parametrize(
    "tenant", ['quo"te', "back\\slash", "new\nline", "юнікод", "{}=,", " ", "tab\t", "\\n", "__name__"]
)
def test_odd_tenants_come_back_as_they_are(tenant: str) -> None:
    shown, _ = exposition([points(tenant, 7)])
    assert value(shown, "comemory_points", collection="cm", tenant_id=tenant, scope="docs") == 7
    found = [
        s.labels["tenant_id"]
        for family in parse_openmetrics(shown.render(OPENMETRICS)[0].decode())
        for s in family.samples
        if s.name == "comemory_points"
    ]
    assert found == [tenant]


def test_tenants_that_pose_as_the_folded_ones_are_added_up() -> None:
    shown, _ = exposition(
        [points("t_a", 50), points("t_b", 2), points(OTHER_TENANTS, 5), points(NO_TENANT, 3), points("", 4)],
        max_tenants=1,
    )
    assert value(shown, "comemory_points", collection="cm", tenant_id="t_a", scope="docs") == 50
    assert value(shown, "comemory_points", collection="cm", tenant_id=OTHER_TENANTS, scope="docs") == 7
    assert value(shown, "comemory_points", collection="cm", tenant_id=NO_TENANT, scope="docs") == 7
    assert value(shown, "comemory_tenants_folded") == 1


def test_a_counter_never_moves_to_another_series() -> None:
    shown, results = exposition(max_tenants=1)

    def deleted(tenant: str) -> float | None:
        labels = {"job_name": "ttl", "collection": "cm", "scope": "docs", "tenant_id": tenant}
        return value(shown, "comemory_deleted_points_total", **labels)

    results.start("ttl", NOW)
    results.finish(report("ttl", Row("cm", "t_small", "docs", 1)))
    assert (deleted("t_small"), deleted(OTHER_TENANTS)) == (1, None)
    results.start("ttl", NOW)
    results.finish(report("ttl", Row("cm", "t_large", "docs", 1000), Row("cm", "t_more", "docs", 5)))
    assert (deleted("t_small"), deleted("t_large"), deleted(OTHER_TENANTS)) == (1, None, 1005)


def test_a_dry_run_deletes_nothing() -> None:
    shown, results = exposition()
    results.start("dedup", NOW)
    results.finish(report("dedup", Row("cm", "t_a", "memory", 4), dry_run=True))
    names = {name for name, _ in series(shown)}
    assert "comemory_deleted_points_total" not in names
    assert value(shown, "comemory_duplicate_points", collection="cm", tenant_id="t_a", scope="memory") == 4


def test_what_only_the_deep_audit_can_tell_stays_beside_what_was_counted() -> None:
    shown, results = exposition()
    results.start("audit-deep", NOW)
    results.finish(
        report(
            "audit-deep",
            Row("cm", "t_a", "", 9, reason="scope.unknown"),
            Row("cm", "t_a", "", 2, reason="lang.malformed"),
            Row("cm", "t_a", "", 4, reason="embedding.dim.mismatch"),
        )
    )
    results.start("audit", NOW)
    left = [{"collection": "cm", "reason": "embedding.dim.mismatch", "why": "no index"}]
    results.finish(report("audit", Row("cm", "t_a", "", 1, reason="scope.unknown"), details={"not_checked": left}))
    found = {dict(k[1])["reason"]: v for k, v in series(shown).items() if k[0] == "comemory_invalid_points"}
    assert found == {"scope.unknown": 1, "lang.malformed": 2, "embedding.dim.mismatch": 4}


def test_what_was_found_stays_while_nobody_can_look() -> None:
    shown, results = exposition()
    for job, reason in (("audit", "scope.unknown"), ("dedup", "")):
        results.finish(report(job, Row("cm", "t_a", "docs", 5, reason=reason)))
        results.finish(report(job, problems=[Problem("", "away")], missed={""}))
    assert value(shown, "comemory_invalid_points", collection="cm", tenant_id="t_a", reason="scope.unknown") == 5
    assert value(shown, "comemory_duplicate_points", collection="cm", tenant_id="t_a", scope="docs") == 5
    assert value(shown, "comemory_job_problems", job_name="audit") == 1
    results.finish(report("audit"))
    assert "comemory_invalid_points" not in {name for name, _ in series(shown)}


def test_jobs_have_series_before_they_ever_ran() -> None:
    shown, results = exposition()
    assert value(shown, "comemory_job_runs_total", job_name="ttl", outcome="failed") == 0
    assert value(shown, "comemory_job_running", job_name="ttl") == 0
    assert value(shown, "comemory_job_last_success_timestamp_seconds", job_name="ttl") is None
    results.start("ttl", NOW)
    assert value(shown, "comemory_job_running", job_name="ttl") == 1
    results.finish(
        report("ttl", Row("cm", "t_a", "docs", 1), problems=[Problem("cm", "why")], handled=1, retries=2)
    )
    assert value(shown, "comemory_job_runs_total", job_name="ttl", outcome="partial") == 1
    assert value(shown, "comemory_job_problems", job_name="ttl") == 1
    assert value(shown, "comemory_job_retries_total", job_name="ttl") == 2
    assert value(shown, "comemory_job_last_success_timestamp_seconds", job_name="ttl") is None
    results.start("ttl", NOW)
    results.finish(report("ttl"))
    assert (
        value(shown, "comemory_job_last_success_timestamp_seconds", job_name="ttl")
        == (NOW + timedelta(seconds=2)).timestamp()
    )


def test_a_stale_snapshot_keeps_its_numbers_and_says_so() -> None:
    store = SnapshotStore()
    shown = Exposition(store, Results(), max_tenants=10)
    store.publish(snapshot([points("t_a", 3)], success=False))
    assert value(shown, "comemory_points", collection="cm", tenant_id="t_a", scope="docs") == 3
    assert value(shown, "comemory_collector_success", collector="tenants", collection="cm") == 0
    assert value(shown, "comemory_qdrant_up") == 0


def test_a_new_snapshot_is_shown_at_once_and_a_tenant_that_is_gone_is_gone() -> None:
    store = SnapshotStore()
    shown = Exposition(store, Results(), max_tenants=10)
    assert value(shown, "comemory_qdrant_up") is None
    for _ in range(50):  # what is kept goes by identity, not to be mixed up when old snapshots are freed
        store.publish(snapshot([points("t_a", 3), points("t_b", 1)]))
        assert value(shown, "comemory_points", collection="cm", tenant_id="t_b", scope="docs") == 1
        store.publish(snapshot([points("t_a", 4)]))
        assert value(shown, "comemory_points", collection="cm", tenant_id="t_b", scope="docs") is None
        assert value(shown, "comemory_points", collection="cm", tenant_id="t_a", scope="docs") == 4


def test_promtool_finds_nothing_to_complain_of() -> None:
    shown, results = exposition([points("t_a", 3), points('odd"\\\n', 1)])
    results.start("ttl", NOW)
    results.finish(report("ttl", Row("cm", "t_a", "docs", 3)))
    said = subprocess.run(
        [programs().promtool, "check", "metrics"], input=shown.render()[0], capture_output=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")


def test_a_scrape_while_the_next_snapshot_is_being_written_shows_the_old_one() -> None:
    store = SnapshotStore()
    shown = Exposition(store, Results(), max_tenants=10)
    seen: list[float | None] = []
    store.before_publishing(
        lambda _: seen.append(value(shown, "comemory_points", collection="cm", tenant_id="t_a", scope="docs"))
    )
    for count in (1, 2, 3):
        store.publish(snapshot([points("t_a", count)]))
    assert seen == [None, 1, 2]


BY_TENANT = {
    "comemory_points": (),
    "comemory_deleted_points_total": ("ttl", "dedup"),
    "comemory_duplicate_points": ("dedup",),
    "comemory_invalid_points": ("audit",),
}


def tenants(shown: Exposition, name: str) -> set[str]:
    return {dict(labels)["tenant_id"] for found, labels in series(shown) if found == name}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9)),
    st.lists(st.tuples(st.sampled_from(["ttl", "dedup", "audit"]), st.sampled_from("abcdefgh")), max_size=12),
    st.integers(1, 8),
)
def test_a_tenant_is_folded_in_every_metric_or_in_none(
    counted: dict[str, int], found: list[tuple[str, str]], most: int
) -> None:
    shown, results = exposition((points(tenant, n) for tenant, n in counted.items()), max_tenants=most)
    for job, tenant in found:
        results.start(job, NOW)
        results.finish(report(job, Row("cm", tenant, "docs", 1, reason="x.y" if job == "audit" else "")))
    kept = {name: {t for t in tenants(shown, name) if t != OTHER_TENANTS} for name in BY_TENANT}
    ranked = sorted(counted, key=lambda tenant: (-counted[tenant], tenant))[:most]
    named = set().union(*kept.values())
    assert kept["comemory_points"] == set(ranked)
    assert len(named) <= most
    for name, jobs in BY_TENANT.items():
        there = {t for job, t in found if job in jobs} if jobs else set(counted)
        if name == "comemory_deleted_points_total":
            assert kept[name] == there & named
        else:  # of these the last report counts
            assert kept[name] <= there & named
        assert (OTHER_TENANTS in tenants(shown, name)) <= bool(there - named)
    deletions = sum(1 for job, _ in found if job != "audit")
    assert sum(v for (name, _), v in series(shown).items() if name == "comemory_deleted_points_total") == deletions


def test_the_largest_of_a_new_census_take_the_places_and_no_counter_moves() -> None:
    store, results = SnapshotStore(), Results(("ttl",))
    shown = Exposition(store, results, max_tenants=1)

    def run(*counts: tuple[str, int]) -> dict[str, float]:
        results.start("ttl", NOW)
        results.finish(report("ttl", *(Row("cm", tenant, "docs", n) for tenant, n in counts)))
        return {dict(k[1])["tenant_id"]: v for k, v in series(shown).items() if k[0].startswith("comemory_deleted")}

    store.publish(snapshot([points("t_a", 9), points("t_b", 1)]))
    assert run(("t_a", 5), ("t_b", 3)) == {"t_a": 5, OTHER_TENANTS: 3}
    store.publish(snapshot([points("t_a", 1), points("t_b", 9)]))
    assert run(("t_a", 1), ("t_b", 2)) == {"t_b": 2, OTHER_TENANTS: 4}
    store.publish(snapshot([points("t_a", 9), points("t_b", 1)]))
    assert run(("t_a", 1)) == {"t_a": 6, OTHER_TENANTS: 4}


def test_the_interval_of_a_job_is_shown_where_it_has_one() -> None:
    shown, _ = exposition(intervals={"ttl": 3630.0})
    assert value(shown, "comemory_job_interval_seconds", job_name="ttl") == 3630
    assert value(shown, "comemory_job_interval_seconds", job_name="audit") is None
