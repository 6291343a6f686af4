"""Whose a collection is: adoption, import, a second stack, and a run that was cut short."""

from __future__ import annotations

import pulumi
import pytest
from qdrant_client import models

from comemory.ownership import owner_marks
from infra.resources import Collection, PayloadIndex
from tests.support.fault_proxy import Delay, FaultProxy, Reset

pytestmark = pytest.mark.pulumi

VECTORS = {"dense": {"size": 4, "distance": "Cosine"}}


def declared(name: str, *, imported: bool = False, **properties):
    def program(opts: pulumi.ResourceOptions) -> None:
        def with_import(what: str) -> pulumi.ResourceOptions:
            return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(import_=what)) if imported else opts

        collection = Collection("memory", name=name, **{"vectors": VECTORS, **properties}, opts=with_import(name))
        PayloadIndex(
            "tags", collection=collection.name, field="tags", type="keyword", opts=with_import(f"{name}/tags")
        )

    return program


def make_by_hand(qdrant, name: str, metadata: dict | None = None) -> None:
    dense = models.VectorParams(size=4, distance=models.Distance.COSINE)
    qdrant.create_collection(name, {"dense": dense}, metadata=metadata)
    qdrant.create_payload_index(name, "tags", models.PayloadSchemaType.KEYWORD)
    qdrant.upsert(name, [models.PointStruct(id=1, vector={"dense": [1, 0, 0, 0]})], wait=True)


def test_a_collection_made_by_hand_is_refused_then_adopted_and_never_shared(deploy, qdrant, collection_name):
    name = collection_name
    make_by_hand(qdrant, name)
    first = deploy(stack="first")

    first.program = declared(name)
    refused = first.preview()
    assert not refused.ok
    assert any("was not made by this stack; set adopt: true" in line for line in refused.errors()), refused.text
    assert not qdrant.get_collection(name).config.metadata

    first.program = declared(name, adopt=True, vectors={"dense": {"size": 8, "distance": "Cosine"}})
    refused = first.up()
    assert not refused.ok
    assert any(
        "cannot take over" in line and "is 4 and cannot be changed to 8" in line for line in refused.errors()
    )

    first.program = declared(name, adopt=True, hnsw_config={"ef_construct": 77})
    adopted = first.up()
    assert adopted.ok, adopted.text
    live = qdrant.get_collection(name)
    assert live.config.metadata["stack"] == "comemory/first"
    assert live.config.hnsw_config.ef_construct == 77
    assert qdrant.count(name).count == 1

    second = deploy(stack="second")
    second.program = declared(name, adopt=True)
    refused = second.up()
    assert not refused.ok
    (sentence,) = [line for line in refused.errors() if "belongs to" in line]
    assert "belongs to stack comemory/first (managed by comemory)" in sentence
    assert qdrant.get_collection(name).config.metadata["stack"] == "comemory/first"


def test_import_takes_a_collection_and_its_index_as_they_are(deploy, qdrant, collection_name):
    name = collection_name
    make_by_hand(qdrant, name, metadata={"team": "search"})
    stack = deploy()

    stack.program = declared(name, imported=True, metadata={"team": "search"})
    imported = stack.up()
    assert imported.ok and imported.changes["import"] == 2, imported.text
    assert qdrant.count(name).count == 1

    stack.program = declared(name, metadata={"team": "search"})
    refreshed = stack.refresh()
    assert refreshed.ok, refreshed.text
    marked = stack.up()
    assert marked.ok and marked.changes.get("update") == 1, marked.text
    metadata = qdrant.get_collection(name).config.metadata
    assert metadata["team"] == "search" and metadata["stack"] == "comemory/test"


def test_what_an_interrupted_run_made_is_taken_over_and_finished(deploy, qdrant, collection_name):
    """The collection is there with our marks, but not all is as declared, and the state knows nothing of it."""
    name = collection_name
    qdrant.create_collection(
        name,
        {"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)},
        metadata=owner_marks("comemory/test", "delete_if_empty"),
    )
    stack = deploy()
    stack.program = declared(name, hnsw_config={"ef_construct": 77})
    finished = stack.up()
    assert finished.ok and finished.changes["create"] == 4, finished.text
    live = qdrant.get_collection(name)
    assert live.config.hnsw_config.ef_construct == 77 and "tags" in live.payload_schema
    again = stack.up()
    assert set(again.changes) == {"same"}, again.text


@pytest.mark.parametrize(
    ("fault", "requests"),
    [
        pytest.param(Reset(forwarded=True), 2, id="the answer is lost: asked again, it exists and is ours"),
        pytest.param(Delay(2.5), 1, id="the answer is late: the collection appears meanwhile"),
    ],
)
def test_a_collection_that_appears_without_an_answer_is_taken_as_created(
    deploy, qdrant, qdrant_url, collection_name, fault, requests
):
    with FaultProxy(qdrant_url) as proxy:
        path = rf"/collections/{collection_name}\?"
        proxy.script(fault, path=path, method="PUT")
        stack = deploy(url=proxy.url, timeout=1.0)
        stack.program = declared(collection_name)
        made = stack.up()
        assert made.ok, made.text
        assert proxy.seen("PUT", path) == requests
    assert qdrant.get_collection(collection_name).config.metadata["stack"] == "comemory/test"


def test_what_may_be_another_ones_is_neither_deleted_nor_bared_of_its_indexes(deploy, qdrant, collection_name):
    """With the strongest policy in the state: the collection was replaced, handed over, or told to stay."""
    name = collection_name
    stack = deploy()
    stack.program = declared(name, deletion_policy="delete")
    assert stack.up().ok
    qdrant.upsert(name, [models.PointStruct(id=1, vector={"dense": [1, 0, 0, 0]})], wait=True)
    none = dict.fromkeys(owner_marks("", ""))
    for metadata, said in (
        (none, "holds 1 point and not the marks of this stack"),
        (none | owner_marks("comemory/other", "delete"), "belongs to stack comemory/other"),
        (none | {"managed_by": "somebody"}, "belongs to an unnamed stack (managed by somebody)"),
    ):
        qdrant.update_collection(name, metadata=metadata)
        refused = stack.destroy()
        assert not refused.ok and said in refused.text, refused.text
        assert qdrant.count(name).count == 1
        assert "tags" in qdrant.get_collection(name).payload_schema

    qdrant.update_collection(name, metadata=owner_marks("comemory/test", "retain"))
    left = stack.destroy()
    assert left.ok, left.text
    assert qdrant.count(name).count == 1
    assert "tags" in qdrant.get_collection(name).payload_schema


def test_a_filled_collection_is_not_replaced_by_another_name_unless_its_policy_says_what_becomes_of_it(
    deploy, qdrant, memory_name
):
    old, new = memory_name, memory_name.removesuffix("_v1") + "_v2"
    stack = deploy()
    stack.program = declared(old)
    assert stack.up().ok
    qdrant.upsert(old, [models.PointStruct(id=1, vector={"dense": [1, 0, 0, 0]})], wait=True)

    stack.program = declared(new)
    for refused in (stack.preview(), stack.up()):
        assert not refused.ok
        assert f"{old} holds 1 point, so it cannot be replaced by {new}" in refused.text, refused.text
    assert not qdrant.collection_exists(new)

    stack.program = declared(old, deletion_policy="retain")
    assert stack.up().ok
    stack.program = declared(new)
    replaced = stack.up()
    assert replaced.ok, replaced.text
    assert qdrant.count(old).count == 1 and "tags" in qdrant.get_collection(old).payload_schema
    assert qdrant.count(new).count == 0
    assert set(stack.up().changes) == {"same"}
