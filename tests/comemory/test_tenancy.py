"""Whose a point is: identifiers to the letter, and the filters against the rule on the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comemory.tenancy import Belonging, Subject
from tests.comemory.conftest import Points
from tests.comemory.payloads import malformed

TENANT = Subject("t_a")
OWNER = Subject("t_a", "agt_a")


@pytest.mark.parametrize(
    ("value", "belonging"),
    [
        ("t_a", Belonging.OWN),
        (["t_a"], Belonging.OWN),
        (["t_a", "t_b"], Belonging.SHARED),
        (["t_b", "t_a"], Belonging.SHARED),
        (["t_a", None], Belonging.SHARED),
        (["t_a", 5], Belonging.SHARED),
        ("t_a_b", Belonging.OTHER),
        ("t_", Belonging.OTHER),
        ("T_A", Belonging.OTHER),
        ("t_a ", Belonging.OTHER),
        ("t_*", Belonging.OTHER),
        ("t_\N{CYRILLIC SMALL LETTER A}", Belonging.OTHER),
        ([["t_a"]], Belonging.OTHER),
        ({"t_a": 1}, Belonging.OTHER),
        (["t_b"], Belonging.OTHER),
        ([], Belonging.OTHER),
        (None, Belonging.OTHER),
        (5, Belonging.OTHER),
    ],
)
def test_a_tenant_owns_what_names_it_and_nobody_else(value: Any, belonging: Belonging) -> None:
    assert TENANT.belonging({"tenant_id": value}) is belonging
    assert OWNER.belonging({"tenant_id": "t_a", "owner_id": "agt_a"}) is Belonging.OWN
    # The same list in either field makes a point shared.
    assert OWNER.belonging({"tenant_id": value, "owner_id": "agt_a"}) is belonging


def test_unicode_forms_of_one_letter_are_two_tenants() -> None:
    composed, decomposed = "t_caf\N{LATIN SMALL LETTER E WITH ACUTE}", "t_cafe\N{COMBINING ACUTE ACCENT}"
    assert Subject(composed).belonging({"tenant_id": decomposed}) is Belonging.OTHER
    assert Subject(composed).looks_alike(decomposed)


def test_a_payload_without_fields_is_nobodys() -> None:
    for payload in ({}, None, {"owner_id": "agt_a"}):
        assert TENANT.belonging(payload) is OWNER.belonging(payload) is Belonging.OTHER


def test_an_owner_of_the_same_name_in_another_tenant_is_another() -> None:
    assert OWNER.belonging({"tenant_id": "t_b", "owner_id": "agt_a"}) is Belonging.OTHER
    assert OWNER.belonging({"tenant_id": "t_a", "owner_id": "agt_ab"}) is Belonging.OTHER
    assert OWNER.belonging({"tenant_id": "t_a", "owner_id": ["agt_a", "agt_b"]}) is Belonging.SHARED


@pytest.mark.parametrize(
    "tenant", ["T_A", "a", " t_a", "t-a", "t_a\N{ZERO WIDTH SPACE}", "\N{FULLWIDTH LATIN SMALL LETTER T}_a"]
)
def test_what_a_person_could_take_for_it_looks_alike(tenant: str) -> None:
    assert TENANT.looks_alike(tenant)


@pytest.mark.parametrize("tenant", ["t_a", "t_ab", "t_b", "", 5])
def test_what_nobody_would_take_for_it_does_not(tenant: object) -> None:
    assert not TENANT.looks_alike(tenant)
    assert Subject("5").looks_alike(5)


VALUES = st.one_of(st.sampled_from(["t_a", "t_b", "agt_a", "agt_b"]), malformed("t_a"), malformed("agt_a"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    payloads=st.lists(st.fixed_dictionaries({"tenant_id": VALUES, "owner_id": VALUES}), min_size=1, max_size=20),
    indexed=st.booleans(),
    subject=st.sampled_from([TENANT, OWNER]),
)
def test_the_filters_find_what_the_rule_calls_so(
    engine: Callable[[bool], Points], payloads: list[dict[str, Any]], indexed: bool, subject: Subject
) -> None:
    points = engine(indexed)
    points.put(payloads)
    found = {key: {n for n, one in enumerate(payloads) if subject.belonging(one) is key} for key in Belonging}
    assert points.found(subject.any_filter()) >= found[Belonging.OWN] | found[Belonging.SHARED]
    own = points.found(subject.own_filter())
    assert own >= found[Belonging.OWN]
    # Nothing that names two of ours is taken for one's own, whatever else stands in the list.
    both = {
        n
        for n, one in enumerate(payloads)
        if any(isinstance(v, list) and len({x for x in v if isinstance(x, str)}) > 1 for v in one.values())
    }
    assert not own & both & found[Belonging.SHARED]
