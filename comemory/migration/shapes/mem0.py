"""mem0: the memory in `data`, beside whose it is (`user_id`, `agent_id`, `run_id`) and when it was made.

Traps: `hash` is an MD5 of the text, and no fingerprint; times carry the offset of the machine that wrote them,
which for years was that of California; `user_id` is whatever the application gave, so it says whose memory it
is in the application's words, not in ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comemory.migration.record import Record
from comemory.migration.shapes.base import Shape, without


def _fits(payload: Mapping[str, Any]) -> bool:
    return "data" in payload and "hash" in payload


def _read(payload: Mapping[str, Any]) -> Record:
    return Record(
        content=payload["data"],
        created=payload.get("created_at"),
        updated=payload.get("updated_at"),
        user=payload.get("user_id"),
        agent=payload.get("agent_id"),
        scope="memory",
        kept=without(payload, "data"),
    )


SHAPE = Shape("mem0", "mem0", _fits, _read)
