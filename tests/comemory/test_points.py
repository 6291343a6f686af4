"""Points: deterministic ids, and upserts that leave alone what is there."""

from __future__ import annotations

import uuid

import pytest
from qdrant_client import QdrantClient, models

from comemory import CoMemoryError, InvalidPayloadError, insert_only, new_point, point_id
from tests.comemory.payloads import good_payload


def test_an_id_is_that_of_the_duplicate_identity_and_never_changes() -> None:
    made = point_id(good_payload())
    assert made == "a71fb89a-7a5f-525d-b0f0-c2b5489e6b06"
    assert uuid.UUID(made).version == 5
    assert point_id(good_payload(text="x", importance=1, created_at="2020-01-01T00:00:00Z")) == made
    assert point_id(good_payload(tenant_id="t_b")) != made
    assert point_id(good_payload(), ["dense", "sparse"]) == point_id(good_payload(), ["sparse", "dense"]) != made


def test_what_breaks_the_schema_gets_no_id() -> None:
    with pytest.raises(InvalidPayloadError, match="fingerprint"):
        point_id(good_payload(fingerprint="a1b2..."))
    with pytest.raises(InvalidPayloadError, match="tenant_id is missing"):
        new_point({key: value for key, value in good_payload().items() if key != "tenant_id"}, {"dense": [1.0]})


def test_a_vector_without_a_name_is_refused_in_words() -> None:
    with pytest.raises(CoMemoryError, match="by name"):
        new_point(good_payload(), [1.0])  # type: ignore[arg-type]


def test_a_second_write_of_the_same_changes_nothing(qdrant: QdrantClient, collection_name: str) -> None:
    qdrant.create_collection(collection_name, {"dense": models.VectorParams(size=1, distance=models.Distance.DOT)})
    first = new_point(good_payload(importance=0.5), {"dense": [1.0]})
    again = new_point(good_payload(importance=0.9), {"dense": [0.5]})
    other = new_point(good_payload(tenant_id="t_b"), {"dense": [1.0]})
    qdrant.batch_update_points(collection_name, [insert_only([first])])
    qdrant.batch_update_points(collection_name, [insert_only([again, other])])
    stored = {str(p.id): p.payload for p in qdrant.retrieve(collection_name, [first.id, other.id])}
    assert stored == {first.id: good_payload(importance=0.5), other.id: good_payload(tenant_id="t_b")}
