"""Rules: patterns, captures, order, the built-in table, and what a rule may not say."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from comemory.migration.rules import BUILTIN, Rule, RuleSet


def rule(**values: Any) -> dict[str, Any]:
    return {"name": "r", "collections": ".*", **values}


@pytest.mark.parametrize(
    ("collection", "agent", "scope", "tags"),
    [
        ("helion_docs", "agt_helion", "docs", ()),
        ("nutra_messages", "agt_nutra", "messages", ()),
        ("druid_legal_kb", "agt_druid", "docs", ("legal_kb",)),
        ("nutra_food_knowledge", "agt_nutra", "docs", ("food_kb",)),
        ("helion_memory_items", None, "memory", ()),
        ("nutra_artifacts", None, "artifacts", ()),
    ],
)
def test_the_table_of_the_specification_is_built_in(
    collection: str, agent: str | None, scope: str, tags: tuple[str, ...]
) -> None:
    found = RuleSet(tenant="t_daarion").assign(collection, None)
    assert found is not None
    assert (found.agent, found.rule.scope, found.tags, found.tenant) == (agent, scope, tags, "t_daarion")
    assert found.rule.visibility == "private"
    assert len(BUILTIN) == 6


def test_captures_of_both_patterns_are_filled_in() -> None:
    rules = RuleSet(
        rules=[
            rule(
                collections="(?P<agent>[a-z]+)_(?P<what>docs|wiki)",
                partitions="space-(?P<team>[a-z]+)",
                agent="agt_{agent}",
                team="team_{team}",
                tags=["{what}", "migrated"],
                owner="team_{team}",
            )
        ]
    )
    found = rules.assign("helion_wiki", "space-core")
    assert found is not None
    assert (found.agent, found.team, found.owner, found.tags) == (
        "agt_helion",
        "team_core",
        "team_core",
        ("wiki", "migrated"),
    )
    assert rules.assign("helion_wiki", None) is None
    assert rules.assign("helion_wiki", "space-core-x") is None
    assert rules.assign("helion_wikis", "space-core") is None


def test_the_first_rule_that_matches_decides_and_comes_before_the_built_in_ones() -> None:
    rules = RuleSet(
        rules=[rule(name="mine", collections="helion_.*", scope="memory"), rule(name="rest", scope="docs")]
    )
    first, other = rules.assign("helion_docs", None), rules.assign("nutra_messages", None)
    assert first is not None and other is not None
    assert (first.rule.name, other.rule.name) == ("mine", "rest")
    assert not RuleSet(builtin=False).of_collection("helion_docs")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"collections": "("}, "regular expression"),
        ({"agent": "agt_{name}"}, "no pattern of the rule has a group"),
        ({"tags": ["{x}"]}, "tags has {x}"),
        ({"shape": "chroma"}, "is none of langchain"),
        ({"zone": "Mars"}, "time zone"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"visibility": "open"}, "public"),
        ({"acl": {"read_team_ids": ["team_a"]}}, "acl opens confidential points only"),
        ({"visibilty": "public"}, "Extra inputs"),
        ({"tenant": "daarion"}, "tenant is 'daarion'; expected t_<slug>"),
        ({"tenant": "t_Daarion"}, "expected t_<slug>"),
        ({"team": "core"}, "expected team_<slug>"),
        ({"project": "team_core"}, "expected proj_<slug>"),
        ({"agent": "helion"}, "expected agt_<slug>"),
        ({"owner": "role_lead"}, "expected agt_<slug> or team_<slug> or user_<slug>"),
        ({"collections": "(?P<who>.*)", "owner": "{who}"}, "whose prefix is no group"),
        ({"collections": "(?P<kind>[a-z]+)_(?P<who>.*)", "owner": "{kind}_{who}"}, "whose prefix is no group"),
        ({"users": {"marta": "team_core"}}, "users.marta is 'team_core'; expected user_<slug>"),
        ({"users": {"marta": "user_{x}"}}, "expected user_<slug>"),
        ({"agents": {"bot": "user_marta"}}, "agents.bot is 'user_marta'; expected agt_<slug>"),
        ({"collections": "(?P<x>.*)", "partitions": "(?P<x>.*)"}, "stands in both patterns"),
        ({"partition_field": "customer"}, "no `partitions`"),
        ({"owner": "team_core", "user_field": "metadata.user"}, "give one"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Rule(**rule(**values))
    assert said in str(refused.value)


def test_two_rules_of_one_name_are_refused_since_reports_count_by_it() -> None:
    with pytest.raises(ValidationError, match="two rules are named 'r'"):
        RuleSet(rules=[rule(), rule(collections="a")])


def test_a_time_may_stand_in_yaml_with_and_without_quotes() -> None:
    for value in (datetime(2024, 9, 1, tzinfo=UTC), "2024-09-01T00:00:00Z"):
        assert (
            Rule(**rule(created_at=value)).created_at
            == RuleSet(created_at=value).created_at
            == "2024-09-01T00:00:00Z"
        )
    with pytest.raises(ValidationError, match="names no offset; write it as"):
        Rule(**rule(created_at=date(2024, 9, 1)))


def test_a_tenant_for_all_rules_is_checked_too() -> None:
    with pytest.raises(ValidationError, match="does not begin with t_"):
        RuleSet(tenant="daarion")


def test_a_partition_may_stand_anywhere_in_the_payload() -> None:
    rules = RuleSet(
        builtin=False,
        rules=[
            rule(name="a", partition_field="metadata.customer", partitions="(?P<t>acme)", tenant="t_{t}"),
            rule(name="b", partitions="x"),
        ],
    )
    found = rules.assign("c", "x", {"metadata.customer": "acme"})
    assert found is not None
    assert (found.rule.name, found.tenant) == ("a", "t_acme")
    other = rules.assign("c", "x", {"metadata.customer": "beta"})
    assert other is not None and other.rule.name == "b"
    assert rules.assign("c", "acme", {"metadata.customer": None}) is None
