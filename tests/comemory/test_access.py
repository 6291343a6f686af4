"""Access: the rules one by one, and the filter against the oracle on the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from qdrant_client import models

from comemory import InvalidPrincipalError, Principal, can_read, read_filter
from tests.comemory.conftest import Points
from tests.comemory.payloads import AGENTS, ROLES, TEAMS, TENANTS, USERS, access_payloads, good_payload

HELION = Principal.agent("t_a", "agt_a", team_ids=["team_a"], role_ids=["role_a"])
STRANGER = Principal.agent("t_a", "agt_b", team_ids=["team_b"])
OUTSIDER = Principal.agent("t_b", "agt_a", team_ids=["team_a"], role_ids=["role_a"])


@pytest.mark.parametrize(
    ("changes", "owner", "stranger"),
    [
        ({"visibility": "private"}, True, False),
        ({"visibility": "confidential"}, True, False),
        ({"visibility": "confidential", "acl": {"read_agent_ids": ["agt_b"]}}, True, True),
        ({"visibility": "confidential", "acl": {"read_team_ids": ["team_x", "team_b"]}}, True, True),
        ({"visibility": "confidential", "acl": {"read_role_ids": ["role_x"]}}, True, False),
        ({"visibility": "private", "acl": {"read_agent_ids": ["agt_b"]}}, True, False),
        ({"visibility": "public"}, True, False),
        ({"visibility": "public", "team_id": "team_b"}, False, True),
        ({"visibility": "public", "team_id": None}, True, True),
        ({"visibility": "public", "team_id": []}, True, True),
        ({"visibility": "public", "team_id": ""}, False, False),
        ({"visibility": "public", "team_id": 5}, False, False),
        ({"visibility": "secret"}, False, False),
        ({"visibility": None}, False, False),
        ({"visibility": "private", "owner_kind": "user"}, False, False),
        ({"visibility": "public", "team_id": None, "tenant_id": None}, False, False),
        ({"visibility": "public", "team_id": None, "schema_version": "cm_payload_v2"}, False, False),
    ],
)
def test_each_rule_opens_to_whom_it_should(changes: dict[str, Any], owner: bool, stranger: bool) -> None:
    payload = good_payload(**changes)
    assert can_read(payload, HELION) is owner
    assert can_read(payload, STRANGER) is stranger
    assert not can_read(payload, OUTSIDER)


def test_what_is_not_indexed_shows_only_when_asked_for() -> None:
    for indexed in (False, None, "true", 1):
        assert not can_read(good_payload(indexed=indexed), HELION)
        assert can_read(good_payload(indexed=indexed), HELION, only_indexed=False)


def test_a_role_opens_what_is_granted_to_it() -> None:
    granted = good_payload(owner_id="agt_z", acl={"read_role_ids": ["role_a"]})
    assert can_read(granted, HELION)
    assert not can_read(granted, STRANGER)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tenant_id": ""}, "tenant_id"),
        ({"tenant_id": None}, "tenant_id"),
        ({"tenant_id": "acme"}, "t_"),
        ({"owner_kind": "robot"}, "owner_kind is 'robot'"),
        ({"owner_kind": None}, "owner_kind is None"),
        ({"owner_id": "user_a"}, "agt_"),
        ({"team_ids": "team_a"}, "team_ids is 'team_a'"),
        ({"team_ids": None}, "team_ids is None"),
        ({"team_ids": ["agt_a"]}, "team_ids"),
        ({"agent_ids": [None]}, "agent_ids"),
        ({"role_ids": ["role_"]}, "role_ids"),
    ],
)
def test_a_principal_that_cannot_be_is_refused_by_name(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidPrincipalError, match=says):
        Principal(**{"tenant_id": "t_a", "owner_kind": "agent", "owner_id": "agt_a", **fields})
    with pytest.raises(InvalidPrincipalError, match="Principal"):
        read_filter(None)  # type: ignore[arg-type]


def test_a_single_string_is_not_taken_for_a_list_of_teams() -> None:
    with pytest.raises(InvalidPrincipalError, match="team_ids is 'team_a'"):
        Principal.agent("t_a", "agt_a", team_ids="team_a")
    with pytest.raises(TypeError, match="tags is 'legal'"):
        read_filter(HELION, tags="legal")


def test_the_filter_is_what_validation_would_have_made_of_it() -> None:
    quick = read_filter(HELION, scopes=["docs"], tags=["a"], also=[models.HasIdCondition(has_id=[1])])
    validated = models.Filter.model_validate_json(quick.model_dump_json())
    assert validated == quick
    assert models.Filter.model_validate(quick.model_dump()).model_dump() == quick.model_dump()
    changed = quick.model_copy(deep=True)
    assert changed == quick


def test_every_filter_asks_for_the_tenant_at_the_top() -> None:
    for principal in (HELION, STRANGER, Principal.user("t_a", "user_a")):
        for only_indexed in (True, False):
            must = read_filter(principal, only_indexed=only_indexed).must
            assert models.FieldCondition(key="tenant_id", match=models.MatchValue(value="t_a")) in must


principals = st.builds(
    lambda tenant, owner, teams, agents, roles: Principal(
        tenant, *owner, tuple(teams), tuple(agents), tuple(roles)
    ),
    st.sampled_from(TENANTS),
    st.sampled_from([("agent", AGENTS[0]), ("agent", AGENTS[1]), ("user", USERS[0]), ("team", TEAMS[0])]),
    st.lists(st.sampled_from(TEAMS), max_size=2),
    st.lists(st.sampled_from(AGENTS), max_size=2),
    st.lists(st.sampled_from(ROLES), max_size=2),
)

# Not shrunk: a failure names the payload that it is about, and a batch of requests per step would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
PAYLOADS_PER_EXAMPLE, PRINCIPALS_PER_EXAMPLE, EXAMPLES = 32, 4, 30


def test_the_filter_finds_what_the_oracle_allows(engine: Callable[[bool], Points]) -> None:
    pairs, readable = 0, 0

    @settings(max_examples=EXAMPLES, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(
        payloads=st.lists(access_payloads(), min_size=PAYLOADS_PER_EXAMPLE, max_size=PAYLOADS_PER_EXAMPLE),
        askers=st.lists(principals, min_size=PRINCIPALS_PER_EXAMPLE, max_size=PRINCIPALS_PER_EXAMPLE),
        only_indexed=st.booleans(),
    )
    def check(payloads: list[dict[str, Any]], askers: list[Principal], only_indexed: bool) -> None:
        nonlocal pairs, readable
        for indexes in (True, False):
            points = engine(indexes)
            points.put(payloads)
            for principal in askers:
                found = points.found(read_filter(principal, only_indexed=only_indexed))
                for i, payload in enumerate(payloads):
                    allowed = can_read(payload, principal, only_indexed=only_indexed)
                    assert (i in found) is allowed, (indexes, principal, payload)
                foreign = [payloads[i] for i in found if not _belongs(payloads[i], principal.tenant_id)]
                assert not foreign, (principal, foreign)
                pairs, readable = pairs + len(payloads), readable + len(found)

    check()
    assert pairs >= 2 * 3000
    assert 0.02 < readable / pairs < 0.95, "the payloads generated are too easy to tell"


def _belongs(payload: dict[str, Any], tenant: str) -> bool:
    """Whether a payload names the tenant, told from its text alone so as to owe nothing to the oracle."""
    return payload.get("tenant_id") == tenant or (
        isinstance(payload.get("tenant_id"), list) and tenant in payload["tenant_id"]
    )


def test_further_conditions_only_narrow(engine: Callable[[bool], Points]) -> None:
    payloads = [
        good_payload(scope="docs", tags=["a"]),
        good_payload(scope="memory", tags=["a", "b"]),
        good_payload(scope="memory", project_id="proj_b"),
        good_payload(scope="memory", tenant_id="t_b", tags=["a"]),
    ]
    for indexes in (True, False):
        points = engine(indexes)
        points.put(payloads)
        assert points.found(read_filter(HELION)) == {0, 1, 2}
        assert points.found(read_filter(HELION, scopes=["memory"])) == {1, 2}
        assert points.found(read_filter(HELION, tags=["b", "a"])) == {0, 1}
        assert points.found(read_filter(HELION, project_ids=["proj_b"])) == {2}
        everything = models.Filter(should=[models.HasIdCondition(has_id=[0, 3])])
        assert points.found(read_filter(HELION, also=[everything])) == {0}
