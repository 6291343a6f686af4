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
    with pytest.raises(ValidationError, match="no_zone"):
        Rule(**rule(created_at=date(2024, 9, 1)))
