"""Payloads that are copies of each other, for tests of the deduplication."""

from __future__ import annotations

from typing import Any

from ops.jobs.dedup import DedupJob
from tests.ops.memory import payload


def hashed(number: int) -> str:
    """A fingerprint; it takes more than 64 bits of the number to differ in its first 16 digits."""
    return f"sha256:{number:064x}"


def copy(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A payload of a memory; those with the same number, and no other change, are copies."""
    return payload(**{"fingerprint": hashed(number << 192), "scope": "memory", **changes})


def full() -> DedupJob:
    """A run over every point."""
    return DedupJob("full")
