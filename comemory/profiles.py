"""Tuning profiles: sets of values with a reason, which explicit values override one by one.

`multitenant`: many tenants in one collection, each query within one tenant. No graph over the whole collection
(`m=0`) but one per tenant (`payload_m=16` with `is_tenant` on `tenant_id`), vectors and payload on disk,
one-byte quantized vectors in memory, and strict mode so that a filter on an unindexed key is refused and not a
full scan. See https://qdrant.tech/documentation/guides/multiple-partitions/ .

`small`: up to some 100,000 points, few tenants: an ordinary graph, everything in memory, strict about
unindexed filters all the same.

`explicit`: nothing; every value is the server's default unless it is given.
"""

from __future__ import annotations

from typing import Any, Literal

from comemory.catalog import CollectionSpec, Distance

ProfileName = Literal["multitenant", "small", "explicit"]

_STRICT = {"enabled": True, "unindexed_filtering_retrieve": False, "unindexed_filtering_update": False}

PROFILES: dict[ProfileName, dict[str, Any]] = {
    "multitenant": {
        "vector": {"on_disk": True},
        "collection": {
            "hnsw_config": {"m": 0, "payload_m": 16},
            "quantization_config": {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}},
            "on_disk_payload": True,
            "strict_mode_config": _STRICT,
        },
    },
    "small": {
        "vector": {},
        "collection": {
            "hnsw_config": {"m": 16, "ef_construct": 100},
            "on_disk_payload": False,
            "strict_mode_config": _STRICT,
        },
    },
    "explicit": {"vector": {}, "collection": {}},
}
"""Per profile: what it sets on each dense vector and on the collection."""


def _overridden(base: dict[str, Any], explicit: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in explicit.items():
        old = merged.get(key)
        # A quantization is one choice: merging two of them key by key would declare both.
        if key != "quantization_config" and isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _overridden(old, value)
        elif value is not None:
            merged[key] = value
    return merged


def declare(
    name: str,
    *,
    size: int,
    distance: Distance = "Cosine",
    profile: ProfileName = "multitenant",
    vector: dict[str, Any] | None = None,
    **explicit: Any,
) -> CollectionSpec:
    """Declare a collection with one vector named `dense`, tuned by a profile.

    `vector` overrides values of the dense vector, `explicit` values of the collection (keys of
    `CollectionSpec`; further entries of
    `vectors` are added). Nested values override key by key, a quantization as a whole.
    Raises `pydantic.ValidationError` as `CollectionSpec` does, `ValueError` for an unknown profile.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile {profile!r} is unknown; choose one of: {', '.join(PROFILES)}")
    chosen = PROFILES[profile]
    dense = _overridden({"size": size, "distance": distance, **chosen["vector"]}, vector or {})
    return CollectionSpec.model_validate(
        _overridden({"name": name, "vectors": {"dense": dense}, **chosen["collection"]}, explicit)
    )
