"""Asking the server for the next page while the one before is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, each taken from `items`, in a thread, before the one before it is done with; one, never more.

    An error that `items` raises comes in its place.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as reader:
        following: Future[Item | None] = reader.submit(next, items, None)
        while (item := following.result()) is not None:
            following = reader.submit(next, items, None)
            yield item
