"""Duplicates: what makes two points the same, and which one stays."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comemory import Candidate, DuplicatePolicy, can_read, duplicate_key, fingerprint, survivor, victims
from comemory.duplicates import DECIDING_FIELDS, Copies, Identity, find_copies, fingerprint_hash
from comemory.fingerprints import normalise_fingerprint
from comemory.times import LATEST
from tests.comemory.payloads import ULID, access_payloads, good_payload
from tests.comemory.test_access import principals

KEY = duplicate_key(good_payload())


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprint": "A1" * 32},
        {"team_id": "team_a", "acl": None},
        {"acl": {"read_team_ids": [], "read_agent_ids": None}},
        {
            "created_at": "2020-01-01T00:00:00Z",
            "importance": 1,
            "ttl_days": 3,
            "tags": ["a"],
            "lang": "uk",
            "text": "x",
        },
        {"chunk": {"chunk_id": "chk_01HQ", "chunk_idx": 0}},
    ],
)
def test_what_does_not_matter(changes: dict[str, Any]) -> None:
    assert duplicate_key(good_payload(**changes)) == KEY is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_id": "t_b"}, {"team_id": "team_b"}, {"team_id": None}, {"project_id": None}, {"agent_id": "agt_b"},
        {"owner_kind": "team", "owner_id": "team_a"}, {"owner_id": "agt_b"}, {"scope": "signals"},
        {"visibility": "private"},
        {"indexed": False}, {"acl": {"read_team_ids": ["team_a"]}}, {"acl": {"read_role_ids": ["role_a"]}},
        {"fingerprint": fingerprint("other")}, {"source_id": f"msg_{ULID}"}, {"chunk": {"chunk_idx": 1}},
    ],
)  # fmt: skip
def test_what_keeps_two_points_apart(changes: dict[str, Any]) -> None:
    assert duplicate_key(good_payload(**changes)) not in (None, KEY)


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": "cm_payload_v2"}, {"tenant_id": None}, {"tenant_id": ["t_a"]}, {"team_id": ["team_a"]},
        {"scope": 5},
        {"indexed": "true"}, {"acl": [1]}, {"acl": {"read_team_ids": "team_a"}}, {"acl": {"read_team_ids": [None]}},
        {"fingerprint": "sha256:a1b2c3d4e5f6..."}, {"fingerprint": None},
        {"chunk": None}, {"chunk": {"chunk_idx": True}},
        {"source_id": None},
    ],
)  # fmt: skip
def test_what_is_in_doubt_is_a_duplicate_of_nothing(changes: dict[str, Any]) -> None:
    assert duplicate_key(good_payload(**changes)) is None


def test_the_order_of_an_acl_and_repeats_in_it_do_not_matter() -> None:
    one = good_payload(acl={"read_team_ids": ["team_a", "team_b", "team_a"]})
    other = good_payload(acl={"read_team_ids": ["team_b", "team_a"]})
    assert duplicate_key(one) == duplicate_key(other)


def test_the_policy_says_whether_the_source_counts() -> None:
    moved = {"source_id": f"doc_{ULID[:-1]}1", "chunk": {"chunk_idx": 9}}
    for scope in ("docs", "messages", "artifacts", "signals", "somewhere"):
        assert duplicate_key(good_payload(scope=scope)) != duplicate_key(good_payload(scope=scope, **moved))
    assert duplicate_key(good_payload(scope="memory")) == duplicate_key(good_payload(scope="memory", **moved))
    content = DuplicatePolicy.CONTENT
    assert duplicate_key(good_payload(), content) == duplicate_key(good_payload(**moved), content)


def test_other_vectors_make_another_point() -> None:
    assert duplicate_key(good_payload(), vector_names=["dense", "sparse"]) != KEY
    assert duplicate_key(good_payload(), vector_names=["b", "a"]) == duplicate_key(
        good_payload(), vector_names=["a", "b"]
    )


@given(access_payloads(), access_payloads(), principals, st.booleans())
def test_duplicates_have_the_same_readers(
    one: dict[str, Any], other: dict[str, Any], principal: Any, only: bool
) -> None:
    other = {**other, **{key: one[key] for key in ("tenant_id", "owner_kind", "owner_id", "scope") if key in one}}
    if duplicate_key(one) is not None and duplicate_key(one) == duplicate_key(other):
        assert can_read(one, principal, only_indexed=only) == can_read(other, principal, only_indexed=only)


OLD, NEW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
SMALL, LARGE = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
RANKED = [
    Candidate(9, None, 0.1, NEW),
    Candidate(8, NEW, 0.1, NEW),
    Candidate(7, OLD, 0.9, NEW),
    Candidate(6, OLD, 0.5, OLD),
    Candidate(2, OLD, 0.5, NEW),
    Candidate(10, OLD, 0.5, NEW),
    Candidate(SMALL, OLD, 0.5, NEW),
    Candidate(LARGE, OLD, 0.5, NEW),
    Candidate(1, OLD, -1.0, NEW),
]


def test_who_lives_longest_then_matters_most_then_is_oldest_then_has_the_smallest_id_stays() -> None:
    for better, worse in itertools.combinations(RANKED, 2):
        assert survivor([worse, better]) == better


@given(st.datetimes(timezones=st.just(UTC)), st.integers(1, 5))
def test_one_microsecond_more_of_life_is_enough_in_any_year(expires: datetime, microseconds: int) -> None:
    later = expires + min(timedelta(microseconds=microseconds), LATEST - expires)
    longer, important = Candidate(9, later, 0.1, NEW), Candidate(1, expires, 0.9, OLD)
    assert survivor([important, longer]) == (longer if later > expires else important)


@given(st.permutations(RANKED))
def test_the_choice_does_not_depend_on_the_order(shuffled: list[Candidate]) -> None:
    assert survivor(shuffled) == RANKED[0]
    assert victims(shuffled) == RANKED[1:]


def test_a_candidate_is_read_from_its_payload() -> None:
    payload = good_payload(created_at="2026-01-01", ttl_days=31, importance=0.5)
    assert Candidate.of(1, payload) == Candidate(1, NEW, 0.5, OLD)
    assert Candidate.of(1, payload | {"ttl_days": "31"}).expires is None
    assert Candidate.of(1, payload | {"importance": 7}).importance == -1
    assert Candidate.of(1, payload | {"created_at": "?"}).created > NEW + timedelta(days=365_000)
    held = Candidate.of(1, payload | {"tags": ["legal_hold"]})
    assert held.exempt and held.expires is None


def test_what_a_tag_exempts_is_never_a_victim() -> None:
    held = [Candidate(i, None, 0.5, OLD, exempt=True) for i in (1, 2)]
    assert survivor([*held, RANKED[1]]) == held[0]
    assert victims([*held, RANKED[1]]) == [RANKED[1]]


def test_what_to_do_about_copies() -> None:
    held = Candidate(3, None, 0.0, OLD, exempt=True)
    first, second, third = RANKED[1:4]
    found = find_copies([(b"a", second), (b"b", RANKED[8]), (b"a", first), (b"a", held), (b"a", third)])
    assert found == [Copies(held, (first, second, third))]
    assert find_copies([(b"a", RANKED[0]), (b"a", held)]) == [Copies(RANKED[0], (), (held,))]


@given(access_payloads(), access_payloads(), st.sampled_from([("dense",), ("dense", "other")]), st.booleans())
def test_digests_are_equal_where_keys_are(
    one: dict[str, Any], other: dict[str, Any], vectors: tuple[str, ...], same: bool
) -> None:
    other = {**other, "chunk": {"chunk_idx": 1}} if not same else {**one, "importance": 1, "tags": ["x"]}
    for policy in DuplicatePolicy:
        keys = duplicate_key(one, policy), duplicate_key(other, policy, vectors)
        identities = Identity.of(one), Identity.of(other, vectors)
        digests = [None if identity is None else identity.under(policy) for identity in identities]
        assert [digest is None for digest in digests] == [key is None for key in keys]
        assert (digests[0] == digests[1]) == (keys[0] == keys[1])


@pytest.mark.parametrize("write", [str, str.upper, lambda f: f.removeprefix("sha256:"), lambda f: f[7:].upper()])
def test_equal_fingerprints_have_equal_hashes(write: Callable[[str], str]) -> None:
    plain = "sha256:" + "9f" * 32
    assert fingerprint_hash(write(plain)) == fingerprint_hash(plain) == 0x9F9F9F9F9F9F9F9F


@pytest.mark.parametrize(
    "value", [None, 7, [], ["sha256:" + "9f" * 32], "", "9f" * 31, "z" * 64, "sha1:" + "9" * 64]
)
def test_what_is_no_fingerprint_has_no_hash(value: Any) -> None:
    assert fingerprint_hash(value) is None
    assert normalise_fingerprint(value) is None


def test_the_deciding_fields_are_all_that_is_looked_at() -> None:
    class Watched(dict[str, Any]):
        def __init__(self, values: dict[str, Any], prefix: str = "") -> None:
            super().__init__(
                {k: Watched(v, f"{prefix}{k}.") if isinstance(v, dict) else v for k, v in values.items()}
            )
            self.prefix = prefix

        def get(self, key: str, default: Any = None) -> Any:
            asked.add(self.prefix + key)
            return super().get(key, default)

    asked: set[str] = set()
    payload = Watched(good_payload(acl={"read_team_ids": ["a"]}, ttl_days=7, importance=1, tags=[]))
    Identity.of(payload)
    Candidate.of(1, payload)
    covered = {key for key in asked if any(f"{key}.".startswith(f"{field}.") for field in DECIDING_FIELDS)}
    assert asked - covered == {"chunk"}
