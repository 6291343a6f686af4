"""The rules of a rollover: every step by a table, and what the digests take for the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comemory.rollover import (
    MARKER,
    READERS,
    Marker,
    Old,
    Step,
    copy_digest,
    decide,
    digest,
    marked,
    readers_digest,
    readers_taken_over,
    without_marker,
)
from tests.comemory.payloads import access_payloads, good_payload

OF = "cm_text_1024_v1"
AS_COPIED = Old(7, good_payload(), "v")
COPY = marked(AS_COPIED, OF)


def old(vectors: str = "v", **changes: Any) -> Old:
    return Old(7, good_payload(**changes), vectors)


def new(**changes: Any) -> dict[str, Any]:
    """The copy, as an application changed it; its marker stays."""
    return {**COPY, **changes}


OWN = good_payload(tags=["own"])

STEPS: list[tuple[str, Old | None, dict[str, Any] | None, Step]] = [
    ("nothing on either side", None, None, Step.SAME),
    ("not there yet", AS_COPIED, None, Step.COPY),
    ("nothing changed", AS_COPIED, COPY, Step.SAME),
    ("the payload changed", old(tags=["x"]), COPY, Step.PAYLOAD),
    ("readers changed", old(visibility="private"), COPY, Step.PAYLOAD),
    ("vectors changed", old("w"), COPY, Step.WHOLE),
    ("both changed", old("w", tags=["x"]), COPY, Step.WHOLE),
    ("gone", None, COPY, Step.REMOVE),
    ("touched", AS_COPIED, new(seen=1), Step.TOUCHED),
    ("touched, and the old one changed", old("w", tags=["x"]), new(seen=1), Step.TOUCHED),
    ("touched, and the old one shut readers out", old(visibility="private"), new(seen=1), Step.READERS),
    ("the touch was about readers", AS_COPIED, new(visibility="public"), Step.OTHER_READERS),
    ("both changed readers", old(visibility="private"), new(visibility="public"), Step.OTHER_READERS),
    ("both changed readers alike", old(visibility="public"), new(visibility="public"), Step.TOUCHED),
    ("touched and gone", None, new(seen=1), Step.ORPHAN),
    ("written to the new one only", None, OWN, Step.OWN),
    ("written to both", AS_COPIED, OWN, Step.OWN),
    ("written to both, for others", AS_COPIED, good_payload(visibility="public"), Step.OTHER_READERS),
    ("a marker of another rollover", old(tags=["x"]), marked(AS_COPIED, "cm_text_1024_v0"), Step.OWN),
    ("something else where markers are", old(tags=["x"]), new(**{MARKER: {"of": OF}}), Step.OWN),
    ("a marker with a number in it", old(tags=["x"]), new(**{MARKER: {**COPY[MARKER], "copy": 1}}), Step.OWN),
    ("a copy's payload under another id", old(tags=["x"]), marked(Old(8, good_payload(), "v"), OF), Step.TOUCHED),
    ("a null field is a missing one", AS_COPIED, new(channel_id=None), Step.SAME),
]


@pytest.mark.parametrize(("before", "after", "step"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
@pytest.mark.parametrize("deleted", [False, True])
def test_what_is_done(before: Old | None, after: dict[str, Any] | None, step: Step, deleted: bool) -> None:
    left_out = deleted and before is not None and after is None
    assert decide(before, after, 7, OF, deleted=deleted) is (Step.DELETED if left_out else step)


def test_the_table_has_every_step() -> None:
    assert {row[3] for row in STEPS} | {Step.DELETED} == set(Step)
    assert {step for step in Step if step.writes} == {
        Step.COPY, Step.PAYLOAD, Step.WHOLE, Step.READERS, Step.REMOVE,
    }  # fmt: skip


@given(access_payloads(), access_payloads())
def test_a_touched_copy_takes_over_all_readers_at_once_and_then_rests(
    first: dict[str, Any], then: dict[str, Any]
) -> None:
    copy = {**marked(Old(7, first, "v"), OF), "seen": 1}
    later = Old(7, then, "v")
    step = decide(later, copy, 7, OF)
    assert step is (Step.TOUCHED if readers_digest(first) == readers_digest(then) else Step.READERS)
    taken = {**copy, **readers_taken_over(later, copy)}
    # A server takes null for "take it away".
    stored = {key: value for key, value in taken.items() if value is not None}
    assert readers_digest(stored) == later.readers and stored["seen"] == 1
    assert {key: stored.get(key) for key in READERS} == {key: then.get(key) for key in READERS}
    assert decide(later, stored, 7, OF) is Step.TOUCHED


@given(access_payloads())
def test_a_copy_rests_and_a_copy_of_a_copy_has_one_marker(payload: dict[str, Any]) -> None:
    point = Old("8a5f1c1e-0000-4000-8000-000000000001", payload, "v")
    copy = marked(point, OF)
    assert decide(point, copy, point.point_id, OF) is Step.SAME
    assert without_marker(copy) == payload
    assert marked(Old(point.point_id, copy, "v"), OF) == copy


def test_what_a_payload_says_of_its_vectors_is_said_anew() -> None:
    point = old(embedding={"model": "a", "dim": 4})
    copy = marked(point, OF, embedding={"model": "b", "dim": 8, "metric": "cosine"})
    assert copy["embedding"] == {"model": "b", "dim": 8, "metric": "cosine"}
    assert point.content["embedding"] == {"model": "a", "dim": 4}
    assert decide(point, copy, 7, OF) is Step.SAME
    assert Marker.read(copy) == Marker(OF, point.payload, "v", point.readers, copy_digest(7, copy))


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text() | st.none() | st.booleans(), max_size=4))
def test_a_digest_looks_at_values_and_not_at_the_order(payload: dict[str, Any]) -> None:
    assert digest(payload) == digest(dict(reversed(list(payload.items()))))
    assert digest({**payload, "more": 1}) != digest({**payload, "more": 2})


def test_numbers_and_truth_are_told_apart() -> None:
    assert len({digest(value) for value in (1, 1.0, True, "1", [1], None)}) == 6
