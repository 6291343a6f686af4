"""How far a command is: bars on a terminal, else a line now and then, both with the rate and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ops.cli import output
from ops.jobs import base

TELL_SECONDS = 10.0


@contextmanager
def progress() -> Iterator[Callable[[base.Progress], None]]:
    """A function that shows each step on stderr: a bar on a terminal, else a line every ten seconds."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    tasks: dict[tuple[str, str], Any] = {}
    paces: dict[tuple[str, str], _Pace] = {}

    def show(step: base.Progress) -> None:
        key = (step.collection, step.step)
        if key not in tasks:
            tasks[key] = bars.add_task(f"{step.collection} {step.step}", total=step.total, rate="")
            paces[key] = _Pace(step.done)
        bars.update(tasks[key], completed=step.done, total=step.total, rate=f"{paces[key].rate(step.done):,.0f}/s")

    with bars:
        yield show


class _Pace:
    """Points per second since the first one told."""

    def __init__(self, done: float) -> None:
        self._began, self._before = time.monotonic(), done

    def rate(self, done: float) -> float:
        elapsed = time.monotonic() - self._began
        return (done - self._before) / elapsed if elapsed > 0 else 0.0


class _Lines:
    """Progress for a file: `nutra_messages: copying 120,000 of 1,000,000, 8,100/s, 1 min 49 s left`."""

    def __init__(self) -> None:
        self._paces: dict[tuple[str, str], _Pace] = {}
        self._told = time.monotonic()

    def __call__(self, step: base.Progress) -> None:
        pace = self._paces.setdefault((step.collection, step.step), _Pace(step.done))
        now = time.monotonic()
        if now - self._told < TELL_SECONDS:
            return
        self._told = now
        rate = pace.rate(step.done)
        whole, time_left = "", ""
        if step.total is not None:
            whole = f" of {step.total:,}"
            time_left = f", {_span((step.total - step.done) / rate)} left" if rate else ""
        output.tell(f"{step.collection}: {step.step} {step.done:,}{whole}, {rate:,.0f}/s{time_left}")


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
