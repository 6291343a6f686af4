"""Identifiers made from foreign names: the same every time, well-formed, and never one for two."""

from __future__ import annotations

import uuid

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ulid import ULID

from comemory.identifiers import Kind, parse_identifier
from comemory.migration.identity import PointIds, derived_slug, derived_ulid

LOADED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is slow, which is no failure."""

names = st.text(min_size=1, max_size=90).filter(str.strip)


@LOADED
@given(names, names)
@example("Ann@x.org", "ann-x-org")
@example("marta", "Marta")
@example("ann@x.org", "ann.x.org")
@example("a" * 65, "a" * 66)
def test_two_names_never_become_one_reader(one: str, other: str) -> None:
    made = [derived_slug(Kind.USER, name) for name in (one, other)]
    assert (made[0] == made[1]) == (one == other)
    for identifier in made:
        parse_identifier(identifier, Kind.USER)


@LOADED
@given(names)
def test_nobody_can_choose_the_name_that_anothers_became(name: str) -> None:
    taken = derived_slug(Kind.USER, name).removeprefix("user_")
    if taken != name:
        assert derived_slug(Kind.USER, taken) != f"user_{taken}"


def test_a_slug_stays_what_it_is() -> None:
    assert derived_slug(Kind.USER, "marta_2") == "user_marta_2"
    assert (
        derived_slug(Kind.AGENT, "2f1a5c1e-98f7-4a3c-9b59-7a5f3f1c0001")
        == "agt_2f1a5c1e-98f7-4a3c-9b59-7a5f3f1c0001"
    )


def test_ids_depend_on_origin_collection_and_the_kind_of_id() -> None:
    places = [("a", "c", 1), ("a", "c", "1"), ("b", "c", 1), ("a", "d", 1), ("a", "c", 2), ("a\0c", "", 1)]
    made = [PointIds(origin, name).of(point) for origin, name, point in places]
    assert len({one for one, _ in made}) == len({chunk for _, chunk in made}) == len(places)
    assert made == [PointIds(origin, name).of(point) for origin, name, point in places]
    for one, chunk in made:
        assert (uuid.UUID(one).version, uuid.UUID(one).variant) == (8, uuid.RFC_4122)
        assert str(uuid.UUID(one)) == one
        parse_identifier(chunk, Kind.CHUNK)


@LOADED
@given(st.lists(st.text(max_size=5), max_size=3), st.lists(st.text(max_size=5), max_size=3))
def test_a_derived_ulid_is_whole_says_no_time_and_tells_its_parts_apart(one: list[str], other: list[str]) -> None:
    first, second = derived_ulid("doc", *one), derived_ulid("doc", *other)
    assert (first == second) == (one == other)
    assert str(ULID.from_str(first.removeprefix("doc_"))) == first.removeprefix("doc_")
    found = parse_identifier(first, Kind.DOCUMENT)
    assert found.created_at is not None and found.created_at.timestamp() == 0
