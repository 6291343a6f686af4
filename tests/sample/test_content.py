from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime

import pytest

from comemory.duplicates import Candidate, duplicate_key, survivor
from comemory.fingerprints import normalise_fingerprint
from comemory.identifiers import parse_identifier
from comemory.naming import CollectionName
from comemory.payload import SCOPES, VISIBILITIES, Payload
from comemory.retention import InvalidRetention, expires_at, is_expired
from sample.content import COLLECTIONS, DIMENSIONS, TENANTS, SamplePoint, points

POINTS = points()
SOUND = [point for point in POINTS if point.problem is None]
BROKEN = [point for point in POINTS if point.problem is not None]
LONG_BEFORE = datetime(2026, 1, 1, tzinfo=UTC)
FAR_AWAY = datetime(2100, 1, 1, tzinfo=UTC)


def by_key(key: str) -> SamplePoint:
    [found] = [point for point in POINTS if point.key == key]
    return found


def test_it_is_the_same_sample_each_time() -> None:
    assert points() == POINTS


def test_keys_and_point_ids_are_unique() -> None:
    assert len({point.key for point in POINTS}) == len({point.id for point in POINTS}) == len(POINTS)


def test_every_sound_payload_passes_strict_parsing() -> None:
    assert {point.key: Payload.problems(point.payload) for point in SOUND} == {point.key: () for point in SOUND}


def test_one_payload_alone_claims_another_dimension_than_its_collection_has() -> None:
    wrong = [point.key for point in SOUND if point.payload["embedding"]["dim"] != DIMENSIONS[point.type]]
    assert wrong == ["t_greenfold/malformed-dimension-of-another-model/0"]


@pytest.mark.parametrize("point", BROKEN, ids=lambda point: point.key)
def test_a_malformed_payload_has_the_one_problem_that_it_is_there_for(point: SamplePoint) -> None:
    assert [problem.code for problem in Payload.problems(point.payload)] == [point.problem]


def test_the_names_of_the_collections_say_the_dimension() -> None:
    assert {kind: CollectionName.parse(name).dim for kind, name in COLLECTIONS.items()} == DIMENSIONS


def test_identifiers_are_as_old_as_what_they_name() -> None:
    """`created_at` of a copy is a day later than its source's; the others agree to the second."""
    for point in SOUND:
        chunk = parse_identifier(point.payload["chunk"]["chunk_id"]).created_at
        assert chunk == datetime.fromisoformat(point.payload["created_at"]), point.key


def test_every_tenant_has_every_scope_and_visibility() -> None:
    seen = {(point.payload["tenant_id"], point.payload["scope"], point.payload["visibility"]) for point in SOUND}
    assert {(tenant, scope) for tenant, scope, _ in seen} == {(t, s) for t in TENANTS for s in SCOPES}
    assert {(tenant, visibility) for tenant, _, visibility in seen} == {
        (t, v) for t in TENANTS for v in VISIBILITIES
    }


def test_every_kind_of_access_is_there() -> None:
    payloads = [point.payload for point in SOUND]
    for readers in ("read_team_ids", "read_agent_ids", "read_role_ids"):
        assert any(payload.get("acl", {}).get(readers) for payload in payloads), readers
    assert {payload["owner_kind"] for payload in payloads} == {"agent", "team", "user"}
    assert {payload["team_id"] is None for payload in payloads if payload["visibility"] == "public"} == {
        True,
        False,
    }
    assert any(payload["indexed"] is False for payload in payloads)


def test_every_tenant_has_points_that_expired_before_they_were_ever_loaded() -> None:
    expired = Counter(point.payload["tenant_id"] for point in SOUND if is_expired(point.payload, LONG_BEFORE))
    assert set(expired) == set(TENANTS)
    assert min(expired.values()) >= 4


def test_a_retention_that_has_not_passed_does_not_pass_in_this_century() -> None:
    for point in SOUND:
        end = expires_at(point.payload)
        assert not isinstance(end, InvalidRetention)
        assert end is None or end < LONG_BEFORE or end > FAR_AWAY, point.key


def test_every_tenant_has_pinned_points_whose_retention_has_passed() -> None:
    pinned = [point for point in SOUND if "legal_hold" in point.payload.get("tags", [])]
    assert {point.payload["tenant_id"] for point in pinned} == set(TENANTS)
    for point in pinned:
        assert is_expired(point.payload, LONG_BEFORE, exempt_tags=()), point.key
        assert not is_expired(point.payload, FAR_AWAY), point.key


def test_a_malformed_retention_never_expires() -> None:
    broken = [point for point in BROKEN if str(point.problem).startswith(("ttl_days", "created_at"))]
    assert len(broken) >= 5
    for point in broken:
        retention = expires_at(point.payload)
        assert isinstance(retention, InvalidRetention)
        assert retention.code == point.problem


def test_the_duplicates_are_those_that_were_meant() -> None:
    groups: dict[object, list[str]] = defaultdict(list)
    for point in POINTS:
        key = duplicate_key(point.payload)
        if key is not None:
            groups[point.type, key].append(point.key)
    copies = {point.key for point in SOUND if point.key.endswith("+")}
    assert {frozenset(keys) for keys in groups.values() if len(keys) > 1} == {
        frozenset({"t_daarion/fact-first/0", "t_daarion/fact-second/0", "t_daarion/fact-third/0"}),
        frozenset({"t_orbita/list-order-first/0", "t_orbita/list-order-second/0"}),
        *(frozenset({key, key.removesuffix("+")}) for key in copies),
    }


def test_of_a_chunk_written_twice_the_copy_survives_where_it_lives_longer() -> None:
    pair = [by_key(f"t_orbita/signal-sent-twice/0{end}") for end in ("", "+")]
    assert survivor(Candidate.of(point.id, point.payload) for point in pair).id == pair[1].id


def test_the_same_words_stand_on_both_sides_of_every_kind_of_boundary() -> None:
    groups: dict[str | None, list[dict[str, object]]] = defaultdict(list)
    for point in SOUND:
        groups[normalise_fingerprint(point.payload["fingerprint"])].append(point.payload)
    differing = {
        field
        for payloads in groups.values()
        for field in ("tenant_id", "team_id", "owner_id", "visibility", "acl")
        if len({repr(payload.get(field)) for payload in payloads}) > 1
    }
    assert differing == {"tenant_id", "team_id", "owner_id", "visibility", "acl"}


def test_a_copy_is_the_same_chunk_in_another_point() -> None:
    copies = [point for point in SOUND if point.key.endswith("+")]
    assert len(copies) >= 7
    for copy in copies:
        first = by_key(copy.key.removesuffix("+"))
        for field in ("tenant_id", "team_id", "owner_id", "scope", "visibility", "source_id", "acl"):
            assert copy.payload.get(field) == first.payload.get(field)
        assert copy.payload["chunk"]["chunk_idx"] == first.payload["chunk"]["chunk_idx"]
        assert normalise_fingerprint(copy.payload["fingerprint"]) == normalise_fingerprint(
            first.payload["fingerprint"]
        )
        assert copy.id != first.id
