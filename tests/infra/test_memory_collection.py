"""The component on a real engine: a collection, its indexes before data arrives, and its alias last."""

from __future__ import annotations

from collections.abc import Callable

import pulumi
import pytest
from qdrant_client import QdrantClient

from comemory.indexes import PAYLOAD_INDEXES, IndexSpec
from comemory.profiles import declare
from infra.components.memory_collection import MemoryCollection
from tests.infra.conftest import Deployment

pytestmark = pytest.mark.pulumi


def test_the_component_makes_collection_indexes_and_alias(
    deploy: Callable[..., Deployment], qdrant: QdrantClient, memory_name: str
) -> None:
    alias = f"{memory_name}_current"
    spec = declare(memory_name, size=4, profile="multitenant", embedding_model="m")
    extra = IndexSpec(field="mood", type="keyword")

    def program(options: pulumi.ResourceOptions) -> None:
        made = MemoryCollection(
            memory_name,
            spec,
            indexes=(*PAYLOAD_INDEXES, extra),
            alias=alias,
            opts=pulumi.ResourceOptions(providers=[options.provider]),  # type: ignore[list-item]
        )
        pulumi.export("ready", made.ready)

    deployment = deploy()
    deployment.program = program
    outcome = deployment.up()
    assert outcome.ok, outcome.text
    # The stack, the provider, the component, the collection, its indexes, the alias.
    assert outcome.changes == {"create": 4 + len(PAYLOAD_INDEXES) + 1 + 1}
    assert deployment.stack.outputs()["ready"].value == memory_name

    info = qdrant.get_collection(alias)
    assert info.points_count == 0
    assert {field: index.data_type.value for field, index in info.payload_schema.items()} == {
        index.field: index.type for index in (*PAYLOAD_INDEXES, extra)
    }
    assert info.payload_schema["tenant_id"].params.is_tenant is True  # type: ignore[union-attr]
    assert (info.config.hnsw_config.m, info.config.hnsw_config.payload_m) == (0, 16)

    again = deployment.up()
    assert again.ok
    assert set(again.changes) == {"same"}
    assert deployment.destroy().ok
    assert not qdrant.collection_exists(memory_name)
