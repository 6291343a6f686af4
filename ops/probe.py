"""Whether Qdrant answers, asked every few seconds in a thread, so that `/readyz` need not ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ops import logs
from ops.errors import OpsError
from ops.session import Session


@dataclass(frozen=True, slots=True)
class Health:
    """What the last probe found: `reason` is why Qdrant cannot be used, or None when it can."""

    version: str | None = None
    reason: str | None = "Qdrant has not been asked yet."


class Probe:
    """Asks again and again.

    Args:
        connect: Opens a session that does not retry.
        every: Seconds between two probes.
        came_up: Called when Qdrant can be used and could not before.
    """

    def __init__(
        self, connect: Callable[[], Session], *, every: float, came_up: Callable[[], None] = lambda: None
    ) -> None:
        self._connect = connect
        self._every = every
        self._came_up = came_up
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._probe, name="probe", daemon=True)
        self.health = Health()

    def start(self) -> None:
        """Begin in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a probe under way is not waited for."""
        self._end.set()

    def _probe(self) -> None:
        while True:
            self._once()
            if self._end.wait(self._every):
                return

    def _once(self) -> None:
        before = self.health
        try:
            with self._connect() as session:
                session.collections()
                self.health = Health(session.version(), None)
        except OpsError as error:
            self.health = Health(before.version, str(error))
        except Exception as error:  # the thread must live on, or `/readyz` would keep an old answer
            self.health = Health(before.version, f"Asking Qdrant raised an unexpected {type(error).__name__}.")
        if before.reason is not None and self.health.reason is None:
            logs.get().info("qdrant", up=True, version=self.health.version)
            self._came_up()
        elif before.reason != self.health.reason and self.health.reason is not None:
            logs.get().warning("qdrant", up=False, problem=self.health.reason)
