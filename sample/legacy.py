"""A part of the sample as it stood before the schema: a collection per agent, each written by another tool.

What docs/migration.md migrates. The texts are the sample's; the payloads are LangChain's, mem0's, Haystack's and an
application's own, with the gaps that such collections have: times without an offset, a memory of nobody.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from qdrant_client import QdrantClient, models

from sample.content import DIMENSIONS, SamplePoint, points
from sample.vectors import embed

_NAMESPACE: Final = uuid.UUID("0b0e3c9a-4f5d-5c1e-9a53-6f1c2f7f8e11")
Payload = dict[str, Any]


def _langchain(point: SamplePoint, number: int) -> Payload:
    source = f"handbook-{number // 4}.md"
    return {
        "page_content": point.text,
        "metadata": {
            "source": source,
            "start_index": number % 4 * 400,
            "creationdate": point.payload["created_at"],
        },
    }


def _mem0(point: SamplePoint, number: int) -> Payload:
    whose = {"user_id": "marta"} if number % 5 else {"run_id": "run-17"}
    return {
        "data": point.text,
        "hash": hashlib.md5(point.text.encode(), usedforsecurity=False).hexdigest(),
        "created_at": _moment(point).isoformat(),
        **whose,
    }


def _haystack(point: SamplePoint, number: int) -> Payload:
    meta = {"file_path": "law.txt", "split_id": number}
    return {"id": f"{number:064x}", "content": point.text, "blob": None, "meta": meta, "score": None}


def _own(point: SamplePoint, number: int) -> Payload:
    when = _moment(point).replace(tzinfo=None).isoformat(sep=" ")
    return {"text": point.text, "message_id": 4000 + number, "channel": "clinic", "timestamp": when}


def _moment(point: SamplePoint) -> datetime:
    return datetime.fromisoformat(point.payload["created_at"])


COLLECTIONS: Final[dict[str, tuple[str, str, Callable[[SamplePoint, int], Payload]]]] = {
    "helion_docs": ("agt_helion", "docs", _langchain),
    "nutra_messages": ("agt_nutra", "messages", _own),
    "nutra_memory_items": ("agt_nutra", "memory", _mem0),
    "druid_legal_kb": ("agt_druid", "docs", _haystack),
}
"""Each collection: whose points of which scope it holds, and how their payloads are written."""


def write(client: QdrantClient) -> dict[str, int]:
    """Make the collections anew; returns how many points each has."""
    size = DIMENSIONS["text"]
    sound = [point for point in points() if point.type == "text" and point.problem is None]
    written = {}
    for name, (agent, scope, payload) in COLLECTIONS.items():
        chosen = [one for one in sound if one.payload["agent_id"] == agent and one.payload["scope"] == scope]
        client.delete_collection(name)
        client.create_collection(name, models.VectorParams(size=size, distance=models.Distance.COSINE))
        vectors = embed([point.text for point in chosen], size)
        client.upsert(
            name,
            [
                models.PointStruct(id=str(uuid.uuid5(_NAMESPACE, f"{name}/{number}")), vector=vector, payload=made)
                for number, (vector, made) in enumerate(
                    zip(vectors, (payload(point, number) for number, point in enumerate(chosen)), strict=True)
                )
            ],
            wait=True,
        )
        written[name] = len(chosen)
    return written
