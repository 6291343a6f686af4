"""Create, no-op, change in place, rebuild an index, mend drift, destroy: with the real engine and a real
collection.
"""

from __future__ import annotations

import pulumi
import pytest
from qdrant_client import QdrantClient, models

from comemory.profiles import declare
from infra.resources import Alias, Collection, PayloadIndex

pytestmark = pytest.mark.pulumi


def memory(name: str, *, tags: str = "keyword", size: int = 4, policy: str | None = None, **explicit):
    """A collection with three indexes and an alias."""

    def program(opts: pulumi.ResourceOptions) -> None:
        extra = {"deletion_policy": policy} if policy else {}
        spec = declare(name, size=4, profile="multitenant", embedding_model="m-1", **explicit, **extra)
        vectors = {"dense": spec.vectors["dense"].model_copy(update={"size": size})}
        collection = Collection("memory", **{**spec.declared(), "vectors": vectors}, opts=opts)
        for field, kind in (("tenant_id", "keyword"), ("tags", tags), ("ttl_days", "integer")):
            tenant = {"is_tenant": True} if field == "tenant_id" else {}
            PayloadIndex(f"index-{field}", collection=collection.name, field=field, type=kind, **tenant, opts=opts)
        Alias("alias", name=f"{name}_alias", collection=collection.name, opts=opts)

    return program


def index_type(qdrant: QdrantClient, name: str, field: str) -> str:
    return qdrant.get_collection(name).payload_schema[field].data_type.value


def test_a_collection_from_its_creation_to_its_end(deploy, qdrant, memory_name):
    stack = deploy()
    name = memory_name

    stack.program = memory(name)
    made = stack.up()
    assert made.ok, made.text
    live = qdrant.get_collection(name)
    assert live.config.hnsw_config.m == 0
    assert live.config.strict_mode_config.enabled is True
    assert live.config.params.vectors["dense"].on_disk is True
    assert live.config.metadata["embedding_model"] == "m-1"
    assert live.config.metadata["stack"] == "comemory/test"
    assert live.config.metadata["managed_by"] == "comemory"
    assert set(live.payload_schema) == {"tenant_id", "tags", "ttl_days"}
    assert live.payload_schema["tenant_id"].params.is_tenant is True
    assert qdrant.get_collection(f"{name}_alias").config.metadata["stack"] == "comemory/test"

    again = stack.up()
    assert again.ok and set(again.changes) == {"same"}, again.text

    stack.program = memory(name, hnsw_config={"ef_construct": 77}, tags="text")
    foreseen = stack.preview()
    assert foreseen.changes["update"] == 2, foreseen.text
    assert "index on tags will be dropped and rebuilt (type keyword -> text)" in foreseen.text
    assert index_type(qdrant, name, "tags") == "keyword", "a preview changes nothing"
    changed = stack.up()
    assert changed.ok and changed.changes["update"] == 2, changed.text
    assert qdrant.get_collection(name).config.hnsw_config.ef_construct == 77
    assert index_type(qdrant, name, "tags") == "text"

    # Behind Pulumi's back: one index gone, one of another type, one parameter changed.
    qdrant.delete_payload_index(name, "ttl_days")
    qdrant.create_payload_index(name, "tags", models.PayloadSchemaType.KEYWORD)
    qdrant.update_collection(name, hnsw_config=models.HnswConfigDiff(ef_construct=99))
    found = stack.refresh()
    assert found.ok and found.changes["delete"] == 1 and found.changes["update"] == 2, found.text
    mended = stack.up()
    assert mended.ok and mended.changes["create"] == 1 and mended.changes["update"] == 2, mended.text
    assert qdrant.get_collection(name).config.hnsw_config.ef_construct == 77
    assert index_type(qdrant, name, "tags") == "text"
    assert index_type(qdrant, name, "ttl_days") == "integer"

    stack.program = memory(name, size=8)
    refused = stack.preview()
    assert not refused.ok
    assert f"the name {name} says 4 dimensions, but the size of its vector 'dense' is 8" in refused.text

    stack.program = memory(name)
    gone = stack.destroy()
    assert gone.ok, gone.text
    assert not qdrant.collection_exists(name)


def test_what_cannot_be_changed_and_what_holds_points_is_refused_in_one_sentence(deploy, qdrant, collection_name):
    stack, name = deploy(), collection_name
    stack.program = memory(name)
    assert stack.up().ok

    stack.program = memory(name, size=8)
    refused = stack.preview()
    assert not refused.ok
    (sentence,) = [line for line in refused.errors() if "cannot be changed" in line]
    assert "vectors.dense.size is 4 and cannot be changed to 8" in sentence
    assert f"declare {name}_v2" in sentence
    assert "Traceback" not in refused.text

    stack.program = memory(name)
    qdrant.upsert(
        name, [models.PointStruct(id=1, vector={"dense": [1, 0, 0, 0]}, payload={"tags": ["a"]})], wait=True
    )
    kept = stack.destroy()
    assert not kept.ok
    assert any(f"collection {name} holds 1 point, so neither it nor its index" in line for line in kept.errors()), (
        kept.text
    )
    assert "Traceback" not in kept.text
    assert set(qdrant.get_collection(name).payload_schema) == {"tenant_id", "tags", "ttl_days"}
    assert qdrant.count(name).count == 1

    stack.program = memory(name, policy="delete")
    allowed = stack.up()
    assert allowed.ok and qdrant.get_collection(name).config.metadata["deletion_policy"] == "delete", allowed.text
    assert stack.destroy().ok
    assert not qdrant.collection_exists(name)
