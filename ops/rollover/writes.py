"""What a pass sends to the new collection: points that are not there yet, and changes held to what was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.rollover import Old, Step, digest, marked, readers_taken_over
from comemory.unchanged import unchanged
from ops.jobs.limits import parts
from ops.rollover.join import Both
from ops.rollover.pair import Pair
from ops.writing import change, insert

MOST_CHANGES = 100
"""Of one request. Each has a filter of its own, since each point is held to what it was itself."""

Operation = dict[str, Any]


class Writes:
    """Collects what one page of a pass asks for, and sends it.

    A copy is inserted only where there is no point, in one request. A change or removal carries the filter that
    the point meets while its indexed fields are what they were when it was read, so what an application wrote in
    between stays; the next pass sees it.

    Args:
        pair: the two collections.
    """

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._inserts: list[dict[str, Any]] = []
        self._changes: list[Operation] = []

    @property
    def count(self) -> int:
        """How many points it is about."""
        return len(self._inserts) + len(self._changes)

    @property
    def inserted(self) -> list[int | str]:
        """The ids of the points to insert."""
        return [point["id"] for point in self._inserts]

    def add(self, step: Step, both: Both, old: Old | None, vectors: Mapping[str, Any] | None) -> None:
        """Add what a step asks for; `vectors` are those of the copy, where the step writes any."""
        new = None if both.new is None else both.new["payload"] or {}
        if step is Step.REMOVE:
            self._changes.append({"delete": {"filter": self._held(both)}})
            return
        assert old is not None  # noqa: S101 (all other steps bring something of it)
        if step is Step.READERS and new is not None:
            self._set(readers_taken_over(old, new), both)
            return
        payload = marked(old, self._pair.old, embedding=self._pair.embedding)
        point = {"id": both.id, "vector": dict(vectors or {}), "payload": payload}
        if new is None:
            self._inserts.append(point)
        elif step is Step.WHOLE:
            held = {"update_filter": self._held(both), "update_mode": "update_only"}
            self._changes.append({"upsert": {"points": [point], **held}})
        else:
            self._bring(payload, new, both)

    def _bring(self, payload: Mapping[str, Any], new: Mapping[str, Any], both: Both) -> None:
        """Bring a copy's payload to what it shall be."""
        changed = {key: value for key, value in payload.items() if not _same(new, key, value)}
        if any(value is None for value in changed.values()):
            self._changes.append({"overwrite_payload": {"payload": payload, "filter": self._held(both)}})
            return
        # No more than what differs: another field that is being changed just now is left alone, and found by the
        # next pass. To set a field to null is to take it away.
        self._set({**dict.fromkeys(new.keys() - payload.keys()), **changed}, both)

    def _set(self, payload: Mapping[str, Any], both: Both) -> None:
        self._changes.append({"set_payload": {"payload": payload, "filter": self._held(both)}})

    def _held(self, both: Both) -> dict[str, Any]:
        assert both.new is not None  # noqa: S101 (only what was read is held to it)
        most = self._pair.limits.filter_max_conditions
        condition = unchanged(both.id, both.new["payload"] or {}, self._pair.live.indexes, most=most)
        return condition.model_dump(mode="json", exclude_none=True, by_alias=True)

    def send(self) -> None:
        """Send all of it, and return when it is stored."""
        session, name = self._pair.session, self._pair.new
        if self._inserts:
            insert(session, name, self._inserts)
        for some in parts(self._changes, MOST_CHANGES):
            change(session, name, some)


def _same(payload: Mapping[str, Any], key: str, value: object) -> bool:
    return key in payload and digest(payload[key]) == digest(value)
