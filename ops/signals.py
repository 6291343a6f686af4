"""SIGTERM and Ctrl-C: the first asks the work to end at its next batch boundary, a second ends the process at once.

The signals are blocked in every thread and fetched by the main one: a handler that sets an event could interrupt
the very code that holds the event's lock.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

ENDING = frozenset({signal.SIGTERM, signal.SIGINT})
POLL_SECONDS = 0.1

T = TypeVar("T")


@contextmanager
def blocked() -> Iterator[None]:
    """Hold the ending signals back in this thread and in those it starts; `arrived` fetches them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def arrived(seconds: float) -> signal.Signals | None:
    """The signal that came while waiting up to so many seconds, if one did."""
    found = signal.sigtimedwait(ENDING, seconds)
    return None if found is None else signal.Signals(found.si_signo)


def end_at_once(code: int) -> None:
    """End the process now, without waiting for threads; the kernel gives up its locks and connections."""
    os._exit(code)


def run_interruptibly(work: Callable[[], T], stop: threading.Event, told: Callable[[], None]) -> T:
    """Run `work` in a thread; a signal sets `stop` and calls `told`, and a second one ends the process.

    Returns what `work` returns, and raises what it raises.
    """
    result: list[T] = []
    error: list[BaseException] = []

    def target() -> None:
        try:
            result.append(work())
        except BaseException as raised:  # raised again in the caller
            error.append(raised)

    with blocked():
        thread = threading.Thread(target=target, name="work", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.01)
            if thread.is_alive() and arrived(POLL_SECONDS) is not None:
                if stop.is_set():
                    end_at_once(130)
                stop.set()
                told()
    if error:
        raise error[0]
    return result[0]


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true in time; a signal meanwhile ends the process at once."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        if arrived(POLL_SECONDS) is not None:
            end_at_once(130)
    return True
