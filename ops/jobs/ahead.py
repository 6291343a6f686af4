"""Asking the server for the next pages while the one before is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

DEPTH = 2
"""Items taken in advance: with one, the server would wait while an item is decided on."""


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, taken from `items` in a thread, `DEPTH` of them before they are asked for and never more.

    An error that `items` raises comes in its place.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as reader:
        following: deque[Future[Item | None]] = deque(reader.submit(next, items, None) for _ in range(DEPTH))
        try:
            while (item := following.popleft().result()) is not None:
                following.append(reader.submit(next, items, None))
                yield item
        finally:
            for one in following:
                one.cancel()
