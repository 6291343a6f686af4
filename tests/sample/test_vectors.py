from __future__ import annotations

import math

import pytest

from sample.vectors import embed


@pytest.mark.parametrize("dimension", [512, 768, 1024])
def test_a_vector_has_the_dimension_asked_for_and_length_one(dimension: int) -> None:
    [vector] = embed(["Battery charging stops at 92 percent."], dimension)
    assert len(vector) == dimension
    assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-4)


def test_the_same_text_gives_the_same_vector_whatever_stands_beside_it() -> None:
    alone = embed(["a lorry at the border"], 512)
    beside = embed(["something else", "a lorry at the border"], 512)
    assert alone[0] == beside[1]


def test_a_text_is_nearer_to_one_that_shares_its_words_also_when_inflected() -> None:
    question, near, far = embed(
        ["insulated batteries", "the battery is insulated", "menu of the second week"], 1024
    )
    assert _dot(question, near) > 0.2 > 0.1 > _dot(question, far)


def test_no_text_gives_no_vector_and_an_empty_text_gives_zeros() -> None:
    assert embed([], 512) == []
    assert set(embed([""], 512)[0]) == {0.0}


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
