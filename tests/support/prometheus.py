"""Prometheus for tests: the programs, or a skip that says why; and a running server."""

from __future__ import annotations

import functools

import pytest

from tools.fetching import ToolError
from tools.prometheus import Prometheus, ensure


@functools.cache
def _programs() -> Prometheus | str:
    try:
        return ensure(lambda _: None)
    except ToolError as error:
        return str(error)


def programs() -> Prometheus:
    """The programs; the test is skipped, with the reason printed, where they cannot be had."""
    found = _programs()
    if isinstance(found, str):
        pytest.skip(found)
    return found
