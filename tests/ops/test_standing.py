"""The bound that keeps a copy behind its survivor, against the rank itself, as the engine evaluates it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from comemory.duplicates import Candidate
from ops.jobs.standing import Standings
from tests.ops.copies import copy
from tests.ops.memory import Memory, days_ago, memory


@pytest.fixture(scope="module")
def points(qdrant: QdrantClient, qdrant_url: str) -> Iterator[Memory]:
    with memory(qdrant, qdrant_url) as made:
        yield made


TIMES = [days_ago(1), days_ago(2), days_ago(3), days_ago(24), "2026-05-31T00:00:00.000001Z", "2026-05-31"]
PLAIN = {
    "ttl_days": st.sampled_from([None, None, 1, 7, 7.0, [7], 30, 10**7, 0, "7"]),
    "created_at": st.sampled_from([*TIMES, None, "once"]),
    "importance": st.sampled_from([None, 0.0, 0.1, 0.5, 0.9, 1, 1.0, 5, -0.5, "high"]),
}
CHANGED = {
    "ttl_days": PLAIN["ttl_days"] | st.sampled_from([[7, 7], [7, 30], [], 8]),
    "created_at": PLAIN["created_at"] | st.sampled_from([[days_ago(1), days_ago(90)], days_ago(90), days_ago(-9)]),
    "importance": PLAIN["importance"] | st.sampled_from([[0.9], [0.1, 0.9], 0.2]),
}


def days(payload: dict[str, Any], candidate: Candidate) -> int | None:
    ttl = payload.get("ttl_days")
    return None if candidate.expires is None else int(ttl[0] if isinstance(ttl, list) else ttl)


def held(points: Memory, standings: Standings, ids: list[int]) -> set[int]:
    """Which of these points the conditions hold of, by the engine."""
    must = [models.HasIdCondition(has_id=ids), *standings.conditions()]
    found, _ = points.client.scroll(points.name, models.Filter(must=must), limit=1000, with_payload=False)
    return {int(point.id) for point in found}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_unchanged_is_held_and_what_would_win_is_not(points: Memory, data: st.DataObject) -> None:
    made = {
        number: copy(**data.draw(st.fixed_dictionaries(PLAIN)))
        for number in range(2 * data.draw(st.integers(1, 12)))
    }
    candidates = {number: Candidate.of(number, payload) for number, payload in made.items()}
    standings = Standings()
    keepers: dict[int, Candidate] = {}
    numbers = data.draw(st.permutations(list(made)))
    for one, other in zip(numbers[::2], numbers[1::2], strict=True):
        survivor, loser = sorted((candidates[one], candidates[other]), key=lambda candidate: candidate.rank)
        lived = days(made[int(loser.id)], loser)
        place = standings.place(survivor, loser, lived)
        assert standings.cost(place) is not None
        standings.add(place)
        keepers[int(loser.id)] = survivor
    points.put({number: made[number] for number in keepers})
    assert held(points, standings, list(keepers)) == keepers.keys()

    changed = {}
    for number in keepers:
        fields = data.draw(st.sets(st.sampled_from(sorted(CHANGED)), min_size=1))
        now = made[number] | {field: data.draw(CHANGED[field]) for field in sorted(fields)}
        changed[number] = {key: value for key, value in now.items() if value is not None}
    points.put(changed)
    for number in held(points, standings, list(keepers)):
        assert keepers[number].rank < Candidate.of(number, changed[number]).rank


def test_copies_whose_bounds_meet_share_one() -> None:
    standings = Standings()
    pairs = [
        (Candidate.of(n, copy(created_at=days_ago(90 + n))), Candidate.of(100 + n, copy(created_at=days_ago(n))))
        for n in range(50)
    ]
    assert standings.cost(standings.place(*pairs[0], None))
    for survivor, loser in pairs:
        standings.add(standings.place(survivor, loser, None))
    (clause,) = standings.conditions()
    assert isinstance(clause, models.Filter)
    assert clause.should is None
    assert standings.cost(standings.place(Candidate.of(1, copy(created_at=days_ago(95))), pairs[1][1], None)) == 0
