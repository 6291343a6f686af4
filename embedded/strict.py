"""Strict mode: what a collection refuses so that no request costs more than its owner allows.

The texts are the server's. Limits that need a measure this endpoint does not take (rates, sizes in bytes, memory)
are kept and reported, and not enforced; `UNENFORCED` names them for the documentation and its test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from qdrant_client.http import models

from embedded.errors import BadRequest
from embedded.storage import Collection

UNENFORCED = (
    "max_timeout", "read_rate_limit", "write_rate_limit", "max_collection_vector_size_bytes",
    "max_collection_payload_size_bytes", "max_resident_memory_percent", "multivector_config", "sparse_config",
)  # fmt: skip
_ANY_INDEX = ("bool", "datetime", "float", "geo", "integer", "keyword", "keyword (with prefix: true)", "text",
              "text (with phrase_matching: true)", "uuid")  # fmt: skip


def _on(collection: Collection) -> dict[str, Any] | None:
    strict: dict[str, Any] = collection.strict
    return strict if strict.get("enabled") else None


def _exceeded(value: float, limit: float, name: str) -> BadRequest:
    return BadRequest(
        f'Limit exceeded {value} > {limit} for "{name}". Help: Reduce the "{name}" parameter to or below {limit}.'
    )


def check_limit(collection: Collection, limit: int | None, name: str = "limit") -> None:
    """Refuse a page or a result larger than `max_query_limit`."""
    strict = _on(collection)
    most = strict.get("max_query_limit") if strict else None
    if most is not None and limit is not None and limit > most:
        raise _exceeded(limit, most, name)


def check_params(collection: Collection, params: models.SearchParams | None) -> None:
    """Refuse search parameters beyond what the collection allows."""
    strict = _on(collection)
    if not strict or params is None:
        return
    most = strict.get("search_max_hnsw_ef")
    if most is not None and params.hnsw_ef is not None and params.hnsw_ef > most:
        raise _exceeded(params.hnsw_ef, most, "hnsw_ef")
    if params.exact and strict.get("search_allow_exact") is False:
        raise BadRequest('Exact search disabled. Help: Set "exact" to false.')
    most = strict.get("search_max_oversampling")
    oversampling = params.quantization.oversampling if params.quantization else None
    if most is not None and oversampling is not None and oversampling > most:
        raise _exceeded(oversampling, most, "oversampling")


def check_batch(collection: Collection, size: int, kind: str) -> None:
    """Refuse more points in one upsert, or more searches in one batch, than allowed."""
    strict = _on(collection)
    most = strict.get(f"{kind}_max_batchsize") if strict else None
    if most is not None and size > most:
        raise _exceeded(size, most, f"{kind} limit")


def check_points(collection: Collection, adding: int) -> None:
    """Refuse an upsert into a collection that is full."""
    strict = _on(collection)
    most = strict.get("max_points_count") if strict else None
    if most is not None and collection.read(lambda shard: shard.info()).points_count + adding > most:
        raise BadRequest(f"Max points count limit of {most} reached!")


def check_index_count(collection: Collection, field: str) -> None:
    """Refuse one index more than allowed."""
    strict = _on(collection)
    most = strict.get("max_payload_index_count") if strict else None
    schema = collection.index_schema()
    if most is not None and field not in schema and len(schema) >= most:
        raise BadRequest(f"Collection already has the maximum number of payload indices ({most})")


def check_filter(collection: Collection, condition: models.Filter | None, write: bool = False) -> None:
    """Refuse a filter on a field without a fitting index, with too many conditions, or with too long a list."""
    strict = _on(collection)
    if not strict or condition is None:
        return
    found = list(_conditions(condition))
    most = strict.get("filter_max_conditions")
    if most is not None and len(found) > most:
        raise _exceeded(len(found), most, "filter")
    longest = strict.get("condition_max_size")
    for item in found:
        size = _size(item)
        if longest is not None and size > longest:
            raise _exceeded(size, longest, "condition")
    if strict.get("unindexed_filtering_update" if write else "unindexed_filtering_retrieve", True) is not False:
        return
    schema = collection.index_schema()
    for prefix, item in _keyed(condition, ""):
        key, kinds = _required(item)
        path = f"{prefix}{key}"
        if kinds and not _indexed(schema.get(path), kinds):
            raise BadRequest(
                f'Index required but not found for "{path}" of one of the following types: [{", ".join(kinds)}]. '
                "Help: Create an index for this key or use a different filter."
            )


def _clauses(condition: models.Filter) -> Iterator[BaseModel]:
    groups: list[Any] = [condition.must, condition.should, condition.must_not]
    if condition.min_should is not None:
        groups.append(condition.min_should.conditions)
    for group in groups:
        if isinstance(group, list):
            yield from group
        elif group is not None:
            yield group


def _conditions(condition: models.Filter) -> Iterator[BaseModel]:
    for item in _clauses(condition):
        if isinstance(item, models.Filter):
            yield from _conditions(item)
        elif isinstance(item, models.NestedCondition):
            yield from _conditions(item.nested.filter)
        else:
            yield item


def _keyed(condition: models.Filter, prefix: str) -> Iterator[tuple[str, BaseModel]]:
    for item in _clauses(condition):
        if isinstance(item, models.Filter):
            yield from _keyed(item, prefix)
        elif isinstance(item, models.NestedCondition):
            key = item.nested.key.removesuffix("[]")
            yield from _keyed(item.nested.filter, f"{prefix}{key}[].")
        else:
            yield prefix, item


def _size(item: BaseModel) -> int:
    if isinstance(item, models.HasIdCondition):
        return len(item.has_id)
    if isinstance(item, models.FieldCondition):
        if isinstance(item.match, models.MatchAny):
            return len(item.match.any)
        if isinstance(item.match, models.MatchExcept):
            return len(item.match.except_)
    return 0


def _indexed(index: dict[str, Any] | None, kinds: tuple[str, ...]) -> bool:
    if index is None:
        return False
    kind = index["data_type"]
    params = index.get("params", {})
    if kind == "integer" and "integer" in kinds:
        return True
    if f"{kind} (with prefix: true)" in kinds and kind not in kinds:
        return bool(params.get("prefix"))
    if f"{kind} (with phrase_matching: true)" in kinds and kind not in kinds:
        return bool(params.get("phrase_matching"))
    return kind in kinds


def _is_uuid(value: object) -> bool:
    try:
        UUID(str(value))
    except ValueError:
        return False
    return True


def _values(values: list[Any]) -> tuple[str, ...]:
    if values and all(isinstance(v, bool) for v in values):
        return ("bool",)
    if values and all(isinstance(v, int) for v in values):
        return ("integer",)
    return ("keyword", "uuid") if values and all(_is_uuid(v) for v in values) else ("keyword",)


def _required(item: BaseModel) -> tuple[str, tuple[str, ...]]:  # noqa: PLR0911 (a table of cases)
    """The key of a condition and the kinds of index of which one must be there."""
    if isinstance(item, models.IsEmptyCondition):
        return item.is_empty.key, _ANY_INDEX
    if isinstance(item, models.IsNullCondition):
        return item.is_null.key, _ANY_INDEX
    if not isinstance(item, models.FieldCondition):
        return "", ()
    key, match, limits = item.key, item.match, item.range
    if isinstance(match, models.MatchValue):
        return key, _values([match.value])
    if isinstance(match, models.MatchAny):
        return key, _values(match.any)
    if isinstance(match, models.MatchExcept):
        return key, _values(match.except_)
    if isinstance(match, models.MatchText | models.MatchTextAny):
        return key, ("text",)
    if isinstance(match, models.MatchPhrase):
        return key, ("text (with phrase_matching: true)",)
    if isinstance(match, models.MatchPrefix):
        return key, ("keyword (with prefix: true)",)
    if isinstance(limits, models.DatetimeRange):
        return key, ("datetime",)
    if limits is not None:
        return key, ("float", "integer")
    if item.geo_bounding_box or item.geo_radius or item.geo_polygon:
        return key, ("geo",)
    return key, _ANY_INDEX
