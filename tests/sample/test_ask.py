from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from comemory.access import Principal, can_read
from sample.ask import ask, why_readable
from sample.content import points
from sample.people import people, person
from sample.questions import Question, questions

ID_OF = {point.key: point.id for point in points()}
PAYLOADS = [point.payload for point in points() if point.problem is None]


def name(question: Question) -> str:
    return f"{question.asker}: {question.ask}"


@pytest.mark.parametrize("question", questions(), ids=name)
def test_a_question_finds_the_passage_that_answers_it(
    qdrant: QdrantClient, loaded: Mapping[str, str], question: Question
) -> None:
    first, *_ = ask(qdrant, question.ask, person(question.asker).principal, collections=loaded)
    assert first.id == ID_OF[question.finds]


@pytest.mark.parametrize("question", [q for q in questions() if q.hidden_from], ids=name)
def test_whoever_may_not_read_it_never_sees_it(
    qdrant: QdrantClient, loaded: Mapping[str, str], question: Question
) -> None:
    for other in question.hidden_from:
        principal = person(other).principal
        hits = ask(qdrant, question.ask, principal, limit=100, least_score=-1, collections=loaded)
        assert ID_OF[question.finds] not in {hit.id for hit in hits}
        assert {hit.payload["tenant_id"] for hit in hits} == {principal.tenant_id}


def test_hits_come_nearest_first_from_every_collection(qdrant: QdrantClient, loaded: Mapping[str, str]) -> None:
    hits = ask(qdrant, "bicycle courtyard", person("agt_helion").principal, limit=4, collections=loaded)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.collection for hit in hits} >= {loaded["text"], loaded["mm"]}
    assert len(hits) <= 4
    assert min(hit.score for hit in hits) >= 0.1


def test_a_question_with_no_word_in_common_finds_nothing(qdrant: QdrantClient, loaded: Mapping[str, str]) -> None:
    assert ask(qdrant, "zither quorum", person("agt_helion").principal, collections=loaded) == []


@pytest.mark.parametrize("asker", sorted(people()))
def test_the_reason_given_suffices(asker: str) -> None:
    """A principal that holds nothing but what the reason names may read the payload, too."""
    principal = person(asker).principal
    readable = [payload for payload in PAYLOADS if can_read(payload, principal, only_indexed=False)]
    assert readable
    for payload in readable:
        reason = why_readable(payload, principal)
        assert can_read(payload, holding_only(reason, principal), only_indexed=False), reason


def holding_only(reason: str, principal: Principal) -> Principal:
    named = set(reason.replace(",", "").split())
    owns = reason == f"owned by {principal.owner_id}"
    return Principal(
        tenant_id=principal.tenant_id,
        owner_kind=principal.owner_kind if owns else "user",
        owner_id=principal.owner_id if owns else "user_nobody",
        team_ids=tuple(set(principal.team_ids) & named),
        agent_ids=() if owns else tuple(set(principal.agent_ids) & named),
        role_ids=tuple(set(principal.role_ids) & named),
    )


def test_a_name_that_nobody_has_is_answered_with_those_there_are() -> None:
    with pytest.raises(LookupError, match=r"nobody named 'agt_ghost'.*agt_helion"):
        person("agt_ghost")


def test_every_question_is_about_principals_and_passages_that_exist() -> None:
    for question in questions():
        assert question.finds in ID_OF
        assert {question.asker, *question.hidden_from} <= people().keys()
    assert sum(question.demo is not None for question in questions()) == 3


@pytest.mark.parametrize("ending", ["\n", " ", "ключ", "\x07"])
def test_a_key_that_cannot_be_sent_is_not_shown(ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sample", "ask", "--as", "agt_helion", "--", "when"],
        env={**os.environ, "QDRANT_API_KEY": f"S3CRET{ending}", "QDRANT_URL": "http://127.0.0.1:9"},
        cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: QDRANT_API_KEY holds")
    assert "S3CRET" not in done.stdout + done.stderr
