"""Snapshots: folding keeps the sums, and never lets two series have the same labels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ops import metrics
from ops.metrics import NO_TENANT, OTHER_SCOPES, OTHER_TENANTS
from ops.snapshot import (
    LONGEST_TENANT,
    Sample,
    Snapshot,
    SnapshotStore,
    fold,
    largest_tenants,
    scope_label,
    tenant_label,
)

TENANTS = ["t_a", "t_b", "t_c", "t_d", OTHER_TENANTS, NO_TENANT, ""]


def points(collection: str, tenant: str, scope: str, count: float) -> Sample:
    return Sample(metrics.POINTS, (collection, tenant_label(tenant), scope), count)


@given(
    st.lists(
        st.builds(
            points, st.sampled_from(["c1", "c2"]), st.sampled_from(TENANTS), st.just("docs"), st.integers(1, 99)
        )
    ),
    st.integers(1, 5),
)
def test_folding_keeps_the_sum_and_the_number_of_tenants(samples: list[Sample], most: int) -> None:
    kept = largest_tenants(samples, metrics.POINTS, most)
    folded = fold(samples, kept)
    assert sum(s.value for s in folded) == sum(s.value for s in samples)
    assert len({(s.metric, s.labels) for s in folded}) == len(folded)
    named = {s.labels[1] for s in folded} - {OTHER_TENANTS, NO_TENANT}
    assert named == kept
    assert len(kept) <= most


def test_the_largest_tenants_over_all_collections_keep_their_names() -> None:
    samples = [points("c1", "t_a", "docs", 6), points("c1", "t_b", "docs", 5), points("c2", "t_b", "docs", 5)]
    assert largest_tenants(samples, metrics.POINTS, 1) == {"t_b"}
    folded = {(s.labels[0], s.labels[1]): s.value for s in fold(samples, frozenset({"t_b"}))}
    assert folded == {("c1", OTHER_TENANTS): 6, ("c1", "t_b"): 5, ("c2", "t_b"): 5}


def test_a_tie_is_settled_by_name_so_that_two_daemons_agree() -> None:
    samples = [points("c", name, "docs", 1) for name in ("t_b", "t_a", "t_c")]
    assert largest_tenants(samples, metrics.POINTS, 2) == {"t_a", "t_b"}


def test_points_without_a_tenant_are_never_folded() -> None:
    samples = [points("c", "", "docs", 3), points("c", "t_a", "docs", 9)]
    assert [s.labels[1] for s in fold(samples, frozenset())] == [NO_TENANT, OTHER_TENANTS]


def test_labels_of_odd_tenants_and_scopes() -> None:
    assert tenant_label("") == NO_TENANT
    assert tenant_label('a"b\\c\n') == 'a"b\\c\n'
    assert len(tenant_label("x" * 5000)) == LONGEST_TENANT
    assert scope_label("docs") == "docs"
    assert scope_label("secret") == scope_label("") == OTHER_SCOPES


def test_the_store_hands_out_the_newest() -> None:
    store = SnapshotStore()
    assert store.current.taken is None
    first, second = Snapshot(), Snapshot()
    store.publish(first)
    store.publish(second)
    assert store.current is second
    assert first != second
