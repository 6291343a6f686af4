"""Reading pages ahead: the same items in the same order, errors in their place, and never more than `DEPTH`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ops.jobs.ahead import DEPTH, ahead


def test_the_same_items_some_ahead() -> None:
    taken: list[int] = []
    reached = [threading.Event() for _ in range(9)]

    def numbers() -> Iterator[int]:
        for number in range(9):
            taken.append(number)
            reached[number].set()
            yield number

    seen = []
    for number in ahead(numbers()):
        if number < 9 - DEPTH:
            assert reached[number + DEPTH].wait(10), "the next ones are asked for before this one is done with"
        assert len(taken) <= number + 1 + DEPTH
        seen.append(number)
    assert seen == list(range(9))


def test_an_error_comes_in_its_place_and_nothing_hangs() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    pages = ahead(numbers())
    assert next(pages) == 1
    with pytest.raises(ValueError, match="broken"):
        next(pages)


def test_one_who_loses_interest_ends_the_thread() -> None:
    before = threading.active_count()
    pages = ahead(iter(range(1, 100)))
    next(pages)
    pages.close()
    assert threading.active_count() == before
