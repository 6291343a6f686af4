"""What the domain costs per query and per write: building an access filter, checking a payload.

Each figure is processor time, and the best of many short rounds, because whatever else the machine does can only
make a round slower.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable

from benchmarks.report import Row
from comemory.access import Principal, can_read, read_filter
from comemory.payload import LenientPayload, Payload

LIMIT_MICROSECONDS = 50.0
_ULID = "01HQ8K9X2N0PQR3FGJKM567890"
_PRINCIPAL = Principal(
    tenant_id="t_daarion",
    owner_kind="agent",
    owner_id="agt_helion",
    team_ids=("team_core", "team_legal", "team_ops"),
    agent_ids=("agt_helion",),
    role_ids=("role_admin", "role_reader"),
)
_PAYLOAD = {
    "schema_version": "cm_payload_v1",
    "tenant_id": "t_daarion",
    "team_id": "team_core",
    "project_id": "proj_helion",
    "agent_id": "agt_helion",
    "owner_kind": "agent",
    "owner_id": "agt_helion",
    "scope": "docs",
    "visibility": "confidential",
    "indexed": True,
    "source_kind": "document",
    "source_id": f"doc_{_ULID}",
    "chunk": {"chunk_id": f"chk_{_ULID}", "chunk_idx": 0},
    "fingerprint": "sha256:" + "a1" * 32,
    "created_at": "2026-01-26T12:00:00Z",
    "updated_at": "2026-01-27T12:00:00Z",
    "acl": {"read_team_ids": ["team_core", "team_ops"], "read_agent_ids": ["agt_nutra"], "read_role_ids": []},
    "tags": ["product", "features"],
    "lang": "uk",
    "importance": 0.8,
    "ttl_days": 365,
    "embedding": {"model": "cohere-embed-multilingual-v3", "dim": 1024, "metric": "cosine"},
    "text": "a passage of an ordinary length " * 60,
}


def rows() -> list[Row]:
    """A filter for an agent with three teams and two roles, and a payload with every field of the specification."""
    figures: dict[str, Callable[[], object]] = {
        "read_filter, built anew": lambda: read_filter(_PRINCIPAL, scopes=("docs", "memory")),
        "can_read": lambda: can_read(_PAYLOAD, _PRINCIPAL),
        "validating a payload, strict": lambda: Payload.parse(_PAYLOAD),
        "validating a payload, lenient": lambda: LenientPayload.parse(_PAYLOAD),
    }
    return [Row(what, _microseconds(call), LIMIT_MICROSECONDS, "µs") for what, call in figures.items()]


def _microseconds(call: Callable[[], object], number: int = 200, rounds: int = 100) -> float:
    return min(timeit.repeat(call, timer=time.process_time, number=number, repeat=rounds)) / number * 1e6
