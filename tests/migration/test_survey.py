"""A look at a whole collection: which shapes it has, and that counts of a dry look and of the mapping agree."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comemory.migration.mapping import LeftOut, Mapped, Mapper
from comemory.migration.rules import RuleSet
from comemory.migration.survey import Survey
from tests.migration.fixtures import NAMES, fixture

LOADED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is slow, which is no failure."""

RULES = RuleSet(
    tenant="t_a", target="cm_text_8_v1", created_at="2024-01-01T00:00:00Z", zone="UTC",
    rules=[{"name": "all", "collections": ".*", "scope": "docs", "agent": "agt_a"}],
)  # fmt: skip
ODD: list[dict[str, Any]] = [
    {},
    {"text": "flat"},
    {"text": "no tenant", "metadata": {}},
    {"page_content": " ", "metadata": None},
]
POOL = [point["payload"] for name in NAMES for point in fixture(name).points[:12]] + ODD


def look(payloads: list[dict[str, Any]], rules: RuleSet = RULES) -> Survey:
    survey = Survey(rules, "c")
    for number, payload in enumerate(payloads):
        survey.add(number, payload)
    survey.finish()
    return survey


def test_one_point_among_many_is_seen() -> None:
    survey = look(
        [{"page_content": "a", "metadata": None}] * 5000
        + [{"page_content": "b", "metadata": None, "group_id": "g"}]
    )
    assert survey.shapes == {"langchain": 5000, "dify": 1}
    assert survey.read == {"langchain", "dify"}


def test_flat_points_are_read_where_they_are_alone_or_a_rule_says_so() -> None:
    flat, framework = {"text": "x"}, {"page_content": "a", "metadata": None}
    assert look([flat]).mapped == 1
    mixed = look([flat, framework])
    assert (mixed.mapped, mixed.refused) == (1, {"shape.unknown": 1})
    declared = {"name": "flat", "collections": "c", "shape": "flat", "scope": "docs", "agent": "agt_a"}
    both = look([flat, framework], RULES.model_copy(update={"rules": (*RuleSet(rules=[declared]).rules,)}))
    assert (both.mapped, both.refused) == (1, {"shape.other": 1})


@LOADED
@given(st.lists(st.sampled_from(POOL), max_size=30))
def test_the_counts_are_those_of_the_mapping(payloads: list[dict[str, Any]]) -> None:
    survey = look(payloads)
    mapper = Mapper(RULES, "c", shapes=survey.read)
    outcomes = [mapper.map(number, payload) for number, payload in enumerate(payloads)]
    mapped = sum(isinstance(one, Mapped) for one in outcomes)
    left_out = sum(isinstance(one, LeftOut) for one in outcomes)
    refused = Counter(one.code for one in outcomes if not isinstance(one, (Mapped, LeftOut)))
    assert (survey.mapped, survey.left_out, survey.refused) == (mapped, left_out, refused)
    assert survey.points == mapped + left_out + refused.total() == len(payloads)
    assert survey.to_json()["mapped"] == mapped
