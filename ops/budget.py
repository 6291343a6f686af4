"""How much one run may do: points, time and speed, and the wish to stop. Asked between batches only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Budget:
    """The limits of one run.

    Args:
        max_points: How many points may be changed, or None for no limit.
        max_seconds: How long the run may take, or None for no limit.
        points_per_second: The highest speed, averaged over a batch, or None for no limit.
        stop: Set from outside (SIGTERM) to end the run at the next batch boundary.
        clock: Monotonic seconds; a parameter so that a test need not wait.
    """

    def __init__(
        self,
        *,
        max_points: int | None = None,
        max_seconds: float | None = None,
        points_per_second: float | None = None,
        stop: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_points = max_points
        self._deadline = None if max_seconds is None else clock() + max_seconds
        self._rate = points_per_second
        self._stop = stop or threading.Event()
        self._clock = clock
        self._batch_began = clock()
        self.spent = 0

    def exhausted(self) -> str | None:
        """Why the run has to end now, as a phrase for the report, or None while it may go on."""
        if self._stop.is_set():
            return "asked to stop"
        if self._deadline is not None and self._clock() >= self._deadline:
            return "time budget used up"
        if self._max_points is not None and self.spent >= self._max_points:
            return f"point budget of {self._max_points} used up"
        return None

    def next_batch(self, size: int) -> int:
        """How many points the next batch may hold, at most `size`; 0 when the run has to end."""
        self._batch_began = self._clock()
        if self.exhausted():
            return 0
        return size if self._max_points is None else min(size, self._max_points - self.spent)

    def spend(self, points: int, *, wait: bool = True) -> None:
        """Count a batch that was applied, and wait as long as the speed limit asks for (a stop ends the wait).

        A dry run counts without waiting.
        """
        self.spent += points
        if wait and self._rate is not None:
            due = points / self._rate - (self._clock() - self._batch_began)
            if due > 0:
                self._stop.wait(due)
