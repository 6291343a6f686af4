"""Declared collections: one per embedding space, with named vectors and everything Qdrant lets one tune.

Names of keys are those of Qdrant's REST interface (`PUT /collections/{name}`), so that a settings file, the
provider's properties, this model and the server's answer say the same word for the same thing. What is None is
not declared: the server's default holds, and never shows as drift.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from comemory.errors import InvalidNameError
from comemory.indexes import PAYLOAD_INDEXES, IndexSpec
from comemory.naming import CollectionName
from comemory.specs import Spec

__all__ = [
    "PAYLOAD_INDEXES",
    "BinaryQuantization",
    "CollectionSpec",
    "DeletionPolicy",
    "Distance",
    "HnswSpec",
    "IndexSpec",
    "MultivectorSpec",
    "OptimizersSpec",
    "ProductQuantization",
    "QuantizationSpec",
    "ScalarQuantization",
    "SparseIndexSpec",
    "SparseVectorSpec",
    "StrictModeSpec",
    "VectorSpec",
]

Distance = Literal["Cosine", "Dot", "Euclid", "Manhattan"]
DeletionPolicy = Literal["delete_if_empty", "retain", "delete"]
"""What happens to the collection when it leaves the declaration: `delete_if_empty` refuses while it holds points,
`retain` leaves it on the server, `delete` removes it with its data."""

RESERVED_METADATA = frozenset({"managed_by", "stack", "schema_version", "deletion_policy", "embedding_model"})
"""Metadata keys that are written from other properties, and cannot be declared by hand."""


class HnswSpec(Spec):
    """The HNSW graph.

    `m=0` builds no graph over the whole collection; `payload_m` builds one per indexed value instead.
    """

    m: int | None = Field(None, ge=0)
    ef_construct: int | None = Field(None, ge=4)
    full_scan_threshold: int | None = Field(None, ge=0, description="kilobytes")
    max_indexing_threads: int | None = Field(None, ge=0)
    on_disk: bool | None = None
    payload_m: int | None = Field(None, ge=0)


class OptimizersSpec(Spec):
    """When segments are merged, vacuumed and indexed. Sizes are in kilobytes, the flush interval in seconds."""

    deleted_threshold: float | None = Field(None, ge=0, le=1)
    vacuum_min_vector_number: int | None = Field(None, ge=100)
    default_segment_number: int | None = Field(None, ge=0)
    max_segment_size: int | None = Field(None, ge=1)
    memmap_threshold: int | None = Field(None, ge=0)
    indexing_threshold: int | None = Field(None, ge=0)
    flush_interval_sec: int | None = Field(None, ge=0)
    max_optimization_threads: int | Literal["auto"] | None = None


class ScalarQuantization(Spec):
    """One byte per dimension in place of four."""

    type: Literal["int8"] = "int8"
    quantile: float | None = Field(None, ge=0.5, le=1)
    always_ram: bool | None = None


class ProductQuantization(Spec):
    """Codebooks per chunk of dimensions: the smallest, the slowest and the least exact."""

    compression: Literal["x4", "x8", "x16", "x32", "x64"]
    always_ram: bool | None = None


class BinaryQuantization(Spec):
    """One bit (or one and a half, or two) per dimension: for models of at least about 1024 dimensions."""

    always_ram: bool | None = None
    encoding: Literal["one_bit", "two_bits", "one_and_half_bits"] | None = None
    query_encoding: Literal["default", "binary", "scalar4bits", "scalar8bits"] | None = None


class QuantizationSpec(Spec):
    """Exactly one way of quantizing, or `disabled=True` to take an existing one away."""

    scalar: ScalarQuantization | None = None
    product: ProductQuantization | None = None
    binary: BinaryQuantization | None = None
    disabled: Literal[True] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        chosen = [name for name in ("scalar", "product", "binary", "disabled") if getattr(self, name) is not None]
        if len(chosen) != 1:
            raise ValueError(
                f"give exactly one of scalar, product, binary, disabled; got {', '.join(chosen) or 'none'}"
            )
        return self


class MultivectorSpec(Spec):
    """Several vectors per point, compared by their best match."""

    comparator: Literal["max_sim"] = "max_sim"


class VectorSpec(Spec):
    """One named dense vector.

    Size, distance, datatype and multivector can never be changed in an existing collection.
    """

    size: int = Field(ge=1, le=65536)
    distance: Distance = "Cosine"
    datatype: Literal["float32", "float16", "uint8"] | None = None
    on_disk: bool | None = None
    hnsw_config: HnswSpec | None = None
    quantization_config: QuantizationSpec | None = None
    multivector_config: MultivectorSpec | None = None


class SparseIndexSpec(Spec):
    """The inverted index of a sparse vector."""

    full_scan_threshold: int | None = Field(None, ge=0)
    on_disk: bool | None = None
    datatype: Literal["float32", "float16", "uint8"] | None = None


class SparseVectorSpec(Spec):
    """One named sparse vector; `modifier="idf"` makes it BM25-like."""

    index: SparseIndexSpec | None = None
    modifier: Literal["none", "idf"] | None = None


class StrictModeSpec(Spec):
    """What the server refuses: filters on unindexed keys, too large requests, too much data."""

    enabled: bool | None = None
    max_query_limit: int | None = Field(None, ge=1)
    max_timeout: int | None = Field(None, ge=1, description="seconds")
    unindexed_filtering_retrieve: bool | None = None
    unindexed_filtering_update: bool | None = None
    search_max_hnsw_ef: int | None = Field(None, ge=0)
    search_allow_exact: bool | None = None
    search_max_oversampling: float | None = Field(None, ge=0)
    upsert_max_batchsize: int | None = Field(None, ge=0)
    search_max_batchsize: int | None = Field(None, ge=0)
    max_collection_vector_size_bytes: int | None = Field(None, ge=0)
    max_collection_payload_size_bytes: int | None = Field(None, ge=0)
    max_points_count: int | None = Field(None, ge=1)
    read_rate_limit: int | None = Field(None, ge=1, description="operations per minute and replica")
    write_rate_limit: int | None = Field(None, ge=1, description="operations per minute and replica")
    filter_max_conditions: int | None = Field(None, ge=0)
    condition_max_size: int | None = Field(None, ge=0)
    max_payload_index_count: int | None = Field(None, ge=0)


class CollectionSpec(Spec):
    """One declared collection; its payload indexes are declared beside it (`PAYLOAD_INDEXES` and extra ones).

    Raises `pydantic.ValidationError`, naming the key, when a value is out of its range, a key is unknown, or
    the dimension in a name such as `cm_text_1024_v1` is not the size of its vector.
    """

    name: str = Field(min_length=1, max_length=255, pattern=r"^[^/\\<>:\"|?*\x00\x1f]+$")
    vectors: Annotated[dict[str, VectorSpec], Field(min_length=1)]
    sparse_vectors: dict[str, SparseVectorSpec] | None = None
    hnsw_config: HnswSpec | None = None
    optimizers_config: OptimizersSpec | None = None
    quantization_config: QuantizationSpec | None = None
    strict_mode_config: StrictModeSpec | None = None
    shard_number: int | None = Field(None, ge=1)
    sharding_method: Literal["auto", "custom"] | None = None
    replication_factor: int | None = Field(None, ge=1)
    write_consistency_factor: int | None = Field(None, ge=1)
    on_disk_payload: bool | None = None
    metadata: dict[str, Any] | None = None
    embedding_model: str | None = Field(None, min_length=1)
    deletion_policy: DeletionPolicy = "delete_if_empty"
    adopt: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if "" in self.vectors:
            raise ValueError(f"a vector of {self.name} has no name; name it, for example 'dense'")
        both = sorted(self.vectors.keys() & (self.sparse_vectors or {}).keys())
        if both:
            raise ValueError(
                f"{self.name} declares {both[0]!r} as a dense and as a sparse vector; give one another name"
            )
        reserved = sorted(RESERVED_METADATA & (self.metadata or {}).keys())
        if reserved:
            raise ValueError(f"metadata key {reserved[0]!r} of {self.name} is written by this tool; take it out")
        if (dim := _dimension_in(self.name)) is not None:
            checked = {"dense": self.vectors["dense"]} if "dense" in self.vectors else self.vectors
            for vector, spec in checked.items():
                if spec.size != dim:
                    raise ValueError(
                        f"the name {self.name} says {dim} dimensions, but the size of its vector "
                        f"{vector!r} is {spec.size}; they must be equal"
                    )
        return self

    def creation(self, owner: dict[str, str] | None = None) -> dict[str, Any]:
        """The body of Qdrant's create-collection request; `owner` is added to the metadata."""
        body = self.model_dump(
            mode="json",
            exclude_none=True,
            exclude={"name", "metadata", "embedding_model", "deletion_policy", "adopt"},
        )
        for part in (body, *body["vectors"].values()):
            if part.get("quantization_config", {}).get("disabled"):
                del part["quantization_config"]
        metadata = self.stored_metadata(owner)
        return {**body, "metadata": metadata} if metadata else body

    def stored_metadata(self, owner: dict[str, str] | None = None) -> dict[str, Any]:
        """The metadata that the collection carries on the server: declared keys, the embedding model, the
        owner's keys.
        """
        model = {"embedding_model": self.embedding_model} if self.embedding_model else {}
        return {**(self.metadata or {}), **model, **(owner or {})}

    def next_version(self) -> str:
        """The name to declare when something cannot be changed in place: `cm_text_1024_v1` gives
        `cm_text_1024_v2`.
        """
        return next_version(self.name)


def _dimension_in(name: str) -> int | None:
    """The dimension that a name of the convention says, whatever its type; None for another name."""
    try:
        return CollectionName.parse(name, types=name.split("_")[1:2]).dim
    except InvalidNameError:
        return None


def next_version(name: str) -> str:
    """The name of the next version of a collection; `_v2` is appended to a name that has no version."""
    match = re.match(r"^(.*_v)([0-9]+)$", name)
    return f"{match[1]}{int(match[2]) + 1}" if match else f"{name}_v2"
