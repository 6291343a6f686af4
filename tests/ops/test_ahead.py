"""Reading one page ahead: the same items in the same order, errors in their place, and never more than one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ops.jobs.ahead import ahead


def test_the_same_items_one_ahead() -> None:
    taken: list[int] = []
    reached = [threading.Event() for _ in range(4)]

    def numbers() -> Iterator[int]:
        for number in range(4):
            taken.append(number)
            reached[number].set()
            yield number

    seen = []
    for number in ahead(numbers()):
        if number < 3:
            assert reached[number + 1].wait(10), "the next one is asked for before this one is done with"
        assert len(taken) <= number + 2
        seen.append(number)
    assert seen == [0, 1, 2, 3]


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
