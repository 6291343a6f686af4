"""Runs that are owed: they came due and did not take place, or could not do their work.

A daemon passes over what comes due while another holds the lease, and a run is cut when the lease is lost or Qdrant
goes away. An interval comes round soon; a nightly time would be lost for a day. So such a run is made up once, when
the lease is won or Qdrant is back. Once only: what brings Qdrant down must not do so again and again.
"""

from __future__ import annotations

import threading


class Owed:
    """The keys of such runs; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: set[str] = set()
        self._made_up: set[str] = set()

    def due(self, key: str) -> None:
        """A run is to take place; it is owed until it begins."""
        with self._lock:
            self._due.add(key)

    def begin(self, key: str) -> None:
        """It begins."""
        with self._lock:
            self._due.discard(key)

    def end(self, key: str, *, done: bool) -> None:
        """It ended; one that could not do its work is owed again, unless it was itself made up."""
        with self._lock:
            if not done and key not in self._made_up:
                self._due.add(key)
            self._made_up.discard(key)

    def take(self) -> list[str]:
        """What is to be made up now; it is no longer owed."""
        with self._lock:
            taken, self._due = self._due, set()
            self._made_up |= taken
            return sorted(taken)
