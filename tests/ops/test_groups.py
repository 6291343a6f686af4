"""Points that share a hash are found, whatever their ids, in parts as in one go."""

from __future__ import annotations

import uuid
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ops.jobs.groups import PointGroups

hashes = st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1) | st.integers(0, 30)
ids = st.integers(0, 2**64 - 1) | st.uuids().map(str)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    points=st.lists(st.tuples(hashes, ids), unique_by=lambda point: point[1]), part=st.sampled_from([1, 3, 1000])
)
def test_the_points_of_each_hash_that_several_have(
    points: list[tuple[int, int | str]], part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.jobs.groups.PART", part)
    groups = PointGroups()
    for start in range(0, len(points), 7):
        groups.add(points[start : start + 7])
    by_hash: defaultdict[int, set[int | str]] = defaultdict(set)
    for code, point in points:
        by_hash[code].add(point)
    found = [groups.ids(places) for places in groups.shared()]
    assert len(groups) == len(points)
    assert all(len(set(one)) == len(one) for one in found)
    assert sorted(map(sorted, ([str(point) for point in one] for one in found))) == sorted(
        sorted(str(point) for point in one) for one in by_hash.values() if len(one) > 1
    )


def test_ids_come_back_as_they_were() -> None:
    groups = PointGroups()
    ours: list[int | str] = [2**64 - 1, str(uuid.UUID(int=2**128 - 1)), 0, str(uuid.UUID(int=5))]
    groups.add((7, point) for point in ours)
    (places,) = groups.shared()
    assert set(groups.ids(places)) == set(ours)
    assert {type(point) for point in groups.ids(places)} == {int, str}
