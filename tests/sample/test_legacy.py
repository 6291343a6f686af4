"""The sample as it stood before the schema: written anew each time, in the shapes that its page says."""

from __future__ import annotations

import pytest
from qdrant_client import QdrantClient

from comemory.migration.shapes import shape_of
from sample import legacy

SHAPES = {
    "helion_docs": "langchain", "nutra_messages": "flat", "nutra_memory_items": "mem0",
    "druid_legal_kb": "haystack",
}  # fmt: skip


def test_the_collections_have_the_shapes_of_their_tools(qdrant: QdrantClient) -> None:
    if any(qdrant.collection_exists(name) for name in SHAPES):
        pytest.skip("the server of QDRANT_URL has a collection of one of these names")
    try:
        counts = legacy.write(qdrant)
        assert legacy.write(qdrant) == counts
        for name, shape in SHAPES.items():
            records, _ = qdrant.scroll(name, limit=1000, with_payload=True)
            assert len(records) == counts[name] > 3
            for record in records:
                found = shape_of(record.payload or {})
                assert found is not None and found.name == shape
    finally:
        for name in SHAPES:
            qdrant.delete_collection(name)
