"""Payloads made from points: strict, private unless a rule says more, and refused where anything is unclear."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comemory import Payload, Principal, can_read, fingerprint
from comemory.migration.mapping import Mapped, Mapper, Refused
from comemory.migration.rules import RuleSet
from tests.migration.fixtures import NAMES, fixture

LOADED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is slow, which is no failure."""

TENANT, TARGET = "t_daarion", "cm_text_8_v1"
LC = {"page_content": "hello", "metadata": {"source": "a.md", "creationdate": "2025-01-01T00:00:00Z"}}


def rules(**values: Any) -> RuleSet:
    rule = {"name": "r", "collections": ".*", "scope": "docs", "agent": "agt_helion", **values}
    return RuleSet(tenant=TENANT, target=TARGET, created_at="2024-01-01T00:00:00Z", zone="UTC", rules=[rule])


def mapped(payload: dict[str, Any], collection: str = "c", point: int | str = 1, **values: Any) -> Mapped:
    outcome = Mapper(rules(**values), collection).map(point, payload)
    assert isinstance(outcome, Mapped), outcome
    return outcome


def refused(payload: Any, set_of_rules: RuleSet | None = None, **values: Any) -> str:
    outcome = Mapper(set_of_rules or rules(**values), "c").map(1, payload)
    assert isinstance(outcome, Refused), outcome
    return outcome.code


@pytest.mark.parametrize("name", NAMES)
def test_what_frameworks_wrote_becomes_strict_payloads_with_new_ids(name: str) -> None:
    mapper = Mapper(rules(), f"old_{name}")
    ids = set()
    for point in fixture(name).points:
        outcome = mapper.map(point["id"], point["payload"])
        if not isinstance(outcome, Mapped):
            assert name in ("haystack", "roo_code")
            continue
        made = Payload.parse(outcome.payload).to_payload()
        assert made["fingerprint"] == fingerprint(made["text"])
        assert made["created_at"].endswith("Z")
        assert (made["legacy"]["id"], made["legacy"]["collection"]) == (point["id"], f"old_{name}")
        assert made["tenant_id"] == TENANT
        ids.add(outcome.id)
    assert len(ids) >= 54


def test_chunks_of_one_source_share_it_and_those_of_others_do_not() -> None:
    one, two = mapped(LC, point=1), mapped({**LC, "page_content": "other"}, point=2)
    assert one.payload["source_id"] == two.payload["source_id"]
    assert one.payload["chunk"]["chunk_id"] != two.payload["chunk"]["chunk_id"]
    assert mapped(LC, "d").payload["source_id"] != one.payload["source_id"]
    alone = [mapped({"page_content": "x", "metadata": None}, point=n).payload["source_id"] for n in (1, 2)]
    assert alone[0] != alone[1]


def test_without_a_word_on_readers_only_the_owner_reads() -> None:
    made = mapped(LC).payload
    assert can_read(made, Principal.agent(TENANT, "agt_helion"))
    assert not can_read(made, Principal.agent(TENANT, "agt_other", team_ids=["team_core"]))
    assert not can_read(made, Principal.agent("t_other", "agt_helion"))


def test_the_user_that_a_point_names_owns_it_before_the_rules_agent() -> None:
    point = {
        "data": "likes tea",
        "hash": "x",
        "user_id": "marta",
        "agent_id": "nutra",
        "created_at": "2025-01-01T00:00:00Z",
    }
    made = mapped(point).payload
    assert (made["owner_kind"], made["owner_id"], made["agent_id"]) == ("user", "user_marta", "agt_helion")
    made = mapped(point, agent=None, users={"marta": "user_m"}).payload
    assert (made["owner_id"], made["agent_id"]) == ("user_m", "agt_nutra")
    made = mapped(point, owner="team_core").payload
    assert (made["owner_kind"], made["owner_id"]) == ("team", "team_core")


def test_nothing_of_an_old_payload_opens_the_new_one() -> None:
    hostile = {
        "page_content": "x", "metadata": {"visibility": "public", "tenant_id": "t_other", "creationdate": 1},
        "visibility": "public", "tenant_id": "t_other", "team_id": None, "owner_id": "agt_evil",
        "acl": {"read_agent_ids": ["agt_evil"]}, "legacy": {"rule": "z"},
    }  # fmt: skip
    made = mapped(hostile).payload
    assert (made["tenant_id"], made["visibility"], made["owner_id"]) == (TENANT, "private", "agt_helion")
    assert "acl" not in made
    assert made["legacy"]["fields"]["acl"] == hostile["acl"]


@pytest.mark.parametrize(
    ("payload", "values", "code"),
    [
        ({"page_content": "", "metadata": {}}, {}, "content.missing"),
        ({"page_content": None, "metadata": {}}, {}, "content.missing"),
        (None, {}, "shape.unknown"),
        ({"schema_version": "cm_payload_v1", "text": "x"}, {}, "schema_version.already"),
        (LC, {"scope": None}, "scope.unknown"),
        (LC, {"agent": None}, "owner.unknown"),
        (LC, {"tags": [], "lang": "english language"}, "lang.malformed"),
        (LC, {"shape": "dify"}, "shape.other"),
        (LC, {"partitions": "x"}, "rule.none"),
        (LC, {"collections": "c(?P<t>x)?", "tenant": "t_{t}"}, "tenant_id.malformed"),
        (LC, {"collections": "c(?P<t>x)?", "target": "{t}"}, "target.unknown"),
        (LC, {"collections": "c(?P<t>x)?", "owner": "team_{t}"}, "owner_id.malformed"),
        (LC, {"collections": "c(?P<t>x)?", "agent": "agt_{t}"}, "agent_id.malformed"),
        (LC, {"collections": "c(?P<t>x)?", "team": "team_{t}"}, "team_id.malformed"),
        ({**LC, "tenant_id": "acme"}, {"user_field": "metadata.source"}, "tenant.other"),
        ({"text": "x", "user_id": "a", "meta": {"tenant_id": "t_acme"}}, {}, "tenant.other"),
        ({"text": "x", "agent_id": "a", "tenant_id": "acme"}, {"agent": None}, "tenant.other"),
        ({"text": "x", "user_id": "a", "tenant_id": ["t_daarion"]}, {}, "tenant.other"),
        ({"text": "x", "tenant_id": "acme"}, {"partition_field": "tenant_id", "partitions": "beta"}, "rule.none"),
        (
            {"text": "x", "tenant_id": ["a"]},
            {"partition_field": "tenant_id", "partitions": "a"},
            "partition.malformed",
        ),
        (LC, {"user_field": "metadata.user_id"}, "user.missing"),
        ({**LC, "metadata": {"user_id": ["u"]}}, {"user_field": "metadata.user_id"}, "user.malformed"),
        ({**LC, "metadata": {"creationdate": "soon"}}, {}, "created_at.malformed"),
        ({**LC, "metadata": {"creationdate": 1, "moddate": "soon"}}, {}, "updated_at.malformed"),
        ({"data": "x", "hash": "y", "user_id": ["marta"]}, {}, "user.malformed"),
        ({"data": "x", "hash": "y", "user_id": ""}, {}, "user.malformed"),
        ({"data": "x", "hash": "y", "agent_id": {}}, {"agent": None}, "agent.malformed"),
    ],
)
def test_what_is_unclear_is_refused_with_its_reason(payload: Any, values: dict[str, Any], code: str) -> None:
    assert refused(payload, **values) == code


def test_tenant_target_and_time_have_to_be_said() -> None:
    bare = {"page_content": "x", "metadata": None}
    base = {"rules": [{"name": "r", "collections": ".*", "scope": "docs", "agent": "agt_a"}]}
    assert refused(bare, RuleSet(**base)) == "tenant.unknown"
    assert refused(bare, RuleSet(**base, tenant=TENANT)) == "target.unknown"
    assert refused(bare, RuleSet(**base, tenant=TENANT, target=TARGET)) == "created_at.missing"
    naive = {"page_content": "x", "metadata": {"creationdate": "2025-01-01T00:00:00"}}
    assert refused(naive, RuleSet(**base, tenant=TENANT, target=TARGET)) == "created_at.no_zone"


def test_users_of_two_old_tenants_with_one_id_never_become_one_reader() -> None:
    points = [{"text": "x", "user_id": 7, "tenant_id": who} for who in ("acme", "beta")]
    assert [refused(point) for point in points] == ["tenant.other"] * 2
    parted = {"partition_field": "tenant_id", "partitions": "(?P<who>[a-z]+)", "tenant": "t_{who}"}
    made = [mapped(point, **parted).payload for point in points]
    assert [(one["tenant_id"], one["owner_id"]) for one in made] == [("t_acme", "user_7"), ("t_beta", "user_7")]
    reader = Principal.user("t_acme", "user_7")
    assert [can_read(one, reader) for one in made] == [True, False]


def test_a_user_may_stand_anywhere_in_the_payload() -> None:
    point = {**LC, "metadata": {**LC["metadata"], "user_id": "marta"}}
    assert mapped(point).payload["owner_id"] == "agt_helion"
    assert mapped(point, user_field="metadata.user_id").payload["owner_id"] == "user_marta"


@LOADED
@given(
    names=st.dictionaries(st.sampled_from(["marta", "m-1", "7", "Marta", "user_marta"]),
                          st.sampled_from(["user_marta", "user_7", "user_m-1", "user_user_marta"])),
    users=st.lists(st.sampled_from(["marta", "m-1", "7", 7, "Marta", "user_marta", " marta"]), min_size=2),
)  # fmt: skip
def test_two_users_become_one_reader_only_where_the_rules_name_both(
    names: dict[str, str], users: list[str | int]
) -> None:
    mapper = Mapper(rules(users=names), "c")
    became: dict[str, set[str]] = {}
    for number, user in enumerate(users):
        outcome = mapper.map(number, {"data": "x", "hash": "y", "user_id": user})
        if isinstance(outcome, Mapped):
            became.setdefault(outcome.payload["owner_id"], set()).add(str(user))
        else:
            assert isinstance(outcome, Refused)
            assert outcome.code == "user.ambiguous" and str(user) not in names
    for called, all_of_them in became.items():
        assert len(all_of_them) == 1 or all(names.get(user) == called for user in all_of_them)


@LOADED
@given(
    st.text(max_size=12) | st.sampled_from(["core\n", "team_core", "x_docs", "-a", "t_other", "a b"]),
    st.text(max_size=12) | st.sampled_from(["core\n", "public", "user-memory-7"]),
)
def test_no_name_that_a_group_matches_makes_an_identifier_of_another_kind(name: str, partition: str) -> None:
    rule = {
        "collections": "(?s:(?P<c>.*))", "partitions": "(?s:(?P<p>.*))", "tenant": "t_{p}", "team": "team_{c}",
        "agent": "agt_{c}", "owner": "user_{p}",
    }  # fmt: skip
    outcome = Mapper(rules(**rule), name).map(1, {"page_content": "x", "group_id": partition, "metadata": None})
    if isinstance(outcome, Mapped):
        made = outcome.payload
        assert not Payload.problems(made)
        assert (made["tenant_id"], made["team_id"], made["owner_id"], made["owner_kind"]) == (
            f"t_{partition}", f"team_{name}", f"user_{partition}", "user",
        )  # fmt: skip


def test_a_flat_point_beside_a_frameworks_is_one_with_something_missing() -> None:
    outcome = Mapper(rules(), "c", shapes=frozenset({"open_webui"})).map(1, {"text": "x", "metadata": {}})
    assert isinstance(outcome, Refused)
    assert outcome.code == "shape.unknown"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted({key for name in NAMES for point in fixture(name).points for key in point["payload"]})


@LOADED
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=6), st.integers(0, 2**64 - 1) | st.uuids().map(str))
def test_any_payload_is_mapped_strictly_or_refused_and_never_opened(
    payload: dict[str, Any], point: int | str
) -> None:
    outcome = Mapper(rules(agent=None), "c").map(point, payload)
    if isinstance(outcome, Mapped):
        assert not Payload.problems(outcome.payload)
        assert (outcome.payload["visibility"], outcome.payload["tenant_id"]) == ("private", TENANT)
        assert outcome.payload["owner_id"].startswith(("user_", "agt_"))
    elif isinstance(outcome, Refused):
        assert outcome.code and outcome.detail
