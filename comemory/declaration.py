"""One collection as a person declares it: name, model, dimension, a profile, and what departs from it.

The same list stands in a stack's configuration, which `pulumi up` applies, and in the file that the daemon measures
drift against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from comemory.catalog import (
    CollectionSpec,
    DeletionPolicy,
    Distance,
    HnswSpec,
    OptimizersSpec,
    QuantizationSpec,
    SparseVectorSpec,
    StrictModeSpec,
    VectorSpec,
)
from comemory.indexes import PAYLOAD_INDEXES, IndexSpec
from comemory.profiles import ProfileName, declare
from comemory.specs import Spec


def _metric(value: object) -> object:
    return value.capitalize() if isinstance(value, str) else value


Metric = Annotated[Distance, BeforeValidator(_metric)]


@dataclass(frozen=True)
class Declared:
    """A collection with its indexes and alias, ready to be made."""

    spec: CollectionSpec
    indexes: tuple[IndexSpec, ...]
    alias: str | None


class CollectionSettings(Spec):
    """One collection: an embedding space, its tuning, and the indexes it has beside the standard ones."""

    name: str = Field(description="`cm_<type>_<dim>_v<version>`, for example `cm_text_1024_v1`.")
    embedding_model: str = Field(
        min_length=1, description="Model that makes the vectors; written to the collection's metadata."
    )
    dimension: int = Field(ge=1, le=65536, description="Size of the vectors; must equal the dimension in the name.")
    metric: Metric = Field("Cosine", description="How vectors are compared.")
    profile: ProfileName = Field(
        "multitenant", description="Tuning profile; see below. Keys given here override it."
    )
    vector: dict[str, Any] | None = Field(
        None,
        description="Overrides of the vector `dense`: `datatype`, `on_disk`, `hnsw_config`, `quantization_config`.",
    )
    vectors: dict[str, VectorSpec] | None = Field(None, description="Further named vectors beside `dense`.")
    sparse_vectors: dict[str, SparseVectorSpec] | None = Field(None, description="Named sparse vectors.")
    hnsw_config: HnswSpec | None = Field(None, description="The graph.")
    optimizers_config: OptimizersSpec | None = Field(None, description="The optimizers.")
    quantization_config: QuantizationSpec | None = Field(None, description="The quantization.")
    strict_mode_config: StrictModeSpec | None = Field(None, description="What the server refuses.")
    on_disk_payload: bool | None = Field(None, description="Keep payloads on disk and not in memory.")
    shard_number: int | None = Field(None, ge=1, description="Shards; fixed once the collection exists.")
    sharding_method: Literal["auto", "custom"] | None = Field(
        None, description="How points are spread over shards."
    )
    replication_factor: int | None = Field(None, ge=1, description="Copies of each shard.")
    write_consistency_factor: int | None = Field(None, ge=1, description="Copies that must acknowledge a write.")
    metadata: dict[str, Any] | None = Field(None, description="Metadata of your own.")
    indexes: tuple[IndexSpec, ...] = Field(
        (),
        description="Payload indexes beside the standard ones. A standard field may be named to give it parameters "
        "(such as `on_disk`), not another type.",
    )
    alias: str | None = Field(None, min_length=1, max_length=255, description="Another name for the collection.")
    deletion_policy: DeletionPolicy = Field(
        "delete_if_empty",
        description="When the collection leaves the program: refuse while it holds points, leave it on the server "
        "(`retain`), or delete it with its data (`delete`).",
    )
    adopt: bool = Field(False, description="Take over a collection of that name that no stack made.")

    @model_validator(mode="after")
    def _dense_is_declared_once(self) -> Self:
        if "dense" in (self.vectors or {}):
            raise ValueError("`vectors` names 'dense', which dimension and metric declare; use `vector` to tune it")
        return self

    def spec(self) -> CollectionSpec:
        """The collection as the domain declares it. Raises `pydantic.ValidationError`."""
        explicit = self.model_dump(
            mode="json",
            exclude_none=True,
            exclude={"name", "dimension", "metric", "profile", "vector", "indexes", "alias"},
        )
        return declare(
            self.name,
            size=self.dimension,
            distance=self.metric,
            profile=self.profile,
            vector=self.vector,
            **explicit,
        )

    def all_indexes(self) -> tuple[IndexSpec, ...]:
        """The standard payload indexes, with those given here added or put in their place."""
        given = {index.field: index for index in self.indexes}
        standard = [_merged(index, given.pop(index.field, None)) for index in PAYLOAD_INDEXES]
        return (*standard, *given.values())


def _merged(standard: IndexSpec, given: IndexSpec | None) -> IndexSpec:
    return standard if given is None else IndexSpec.model_validate({**standard.declared(), **given.declared()})
