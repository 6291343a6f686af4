from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest
from qdrant_client import QdrantClient, models

from comemory.catalog import PAYLOAD_INDEXES, IndexSpec
from sample.content import DIMENSIONS
from sample.load import VECTOR_NAME, load


@pytest.fixture(scope="session")
def make_collections(qdrant: QdrantClient) -> Iterator[Callable[..., dict[str, str]]]:
    """Make one empty collection of each type, with payload indexes if the test filters; removed at the end."""
    made: list[str] = []

    def make(*indexes: IndexSpec) -> dict[str, str]:
        names = {kind: f"test_{uuid.uuid4().hex}_{kind}" for kind in DIMENSIONS}
        for kind, name in names.items():
            qdrant.create_collection(
                name,
                vectors_config={
                    VECTOR_NAME: models.VectorParams(size=DIMENSIONS[kind], distance=models.Distance.COSINE)
                },
            )
            made.append(name)
            for index in indexes:
                qdrant.create_payload_index(name, index.field, field_schema=index.field_schema())
        return names

    yield make
    for name in made:
        qdrant.delete_collection(name)


@pytest.fixture(scope="session")
def loaded(qdrant: QdrantClient, make_collections: Callable[..., dict[str, str]]) -> Mapping[str, str]:
    """Collections that hold the sample, by type."""
    names = make_collections(*PAYLOAD_INDEXES)
    load(qdrant, names)
    return names
