"""Building blocks of Qdrant filters, and a way to ask a filter which payload indexes it needs.

The blocks exist for two reasons: a rule reads like the sentence it stands for, and they are quick. A filter is
built per query, and pydantic's validation of `Filter` tries a dozen types of condition for each part, where
here the type is known; so the models are filled directly, as `BaseModel.model_construct` does, but without its
walk over the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel
from qdrant_client import models

Condition = models.Condition
_Model = TypeVar("_Model", bound=BaseModel)

_set = object.__setattr__
_NO_FIELD: Final[dict[str, Any]] = dict.fromkeys(models.FieldCondition.model_fields)
_NO_FILTER: Final[dict[str, Any]] = dict.fromkeys(models.Filter.model_fields)


def _filled(model: type[_Model], values: dict[str, Any], given: set[str]) -> _Model:
    made = model.__new__(model)
    _set(made, "__dict__", values)
    _set(made, "__pydantic_fields_set__", given)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


def matches(key: str, value: str | bool | int) -> models.FieldCondition:
    """Points whose `key` is `value`, or is a list that holds it."""
    match = _filled(models.MatchValue, {"value": value}, {"value"})
    return _filled(models.FieldCondition, {**_NO_FIELD, "key": key, "match": match}, {"key", "match"})


def matches_any(key: str, values: Sequence[str]) -> models.FieldCondition:
    """Points whose `key` is one of `values`, or is a list that holds one of them."""
    match = _filled(models.MatchAny, {"any": list(values)}, {"any"})
    return _filled(models.FieldCondition, {**_NO_FIELD, "key": key, "match": match}, {"key", "match"})


def is_empty(key: str) -> models.IsEmptyCondition:
    """Points where `key` is missing, null or the empty list."""
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=key))


def is_text(key: str) -> models.FieldCondition:
    """Points whose `key` is a string, or a list that holds one; any string is none of no values."""
    return models.FieldCondition(key=key, match=models.MatchExcept(**{"except": []}))


def at_most_one(key: str) -> models.FieldCondition:
    """Points whose `key` is not a list of several values."""
    return models.FieldCondition(key=key, values_count=models.ValuesCount(lte=1))


def every(*conditions: Condition) -> models.Filter:
    """Points that meet all `conditions`."""
    return _filled(models.Filter, {**_NO_FILTER, "must": list(conditions)}, {"must"})


def either(*conditions: Condition) -> models.Filter:
    """Points that meet at least one of `conditions`."""
    return _filled(models.Filter, {**_NO_FILTER, "should": list(conditions)}, {"should"})


ANY_INDEX: Final = frozenset({"keyword", "integer", "float", "bool", "datetime", "uuid", "text", "geo"})


def filter_keys(condition: models.Filter | Condition) -> dict[str, frozenset[str]]:
    """Every payload key that a filter asks about, with the types of payload index that can answer.

    A test holds this against the declared indexes: in strict mode a server refuses a filter on a key without one.
    """
    keys: dict[str, frozenset[str]] = {}
    for key, serving in _uses(condition):
        keys[key] = keys.get(key, ANY_INDEX) & serving
    return keys


def _uses(condition: object) -> Iterator[tuple[str, frozenset[str]]]:
    if isinstance(condition, models.Filter):
        for part in (condition.must, condition.should, condition.must_not):
            for inner in part if isinstance(part, list) else [part]:
                yield from _uses(inner)
        if condition.min_should:
            for inner in condition.min_should.conditions:
                yield from _uses(inner)
    elif isinstance(condition, models.NestedCondition):
        for key, serving in _uses(condition.nested.filter):
            yield f"{condition.nested.key}[].{key}", serving
    elif isinstance(condition, models.IsEmptyCondition):
        yield condition.is_empty.key, ANY_INDEX
    elif isinstance(condition, models.IsNullCondition):
        yield condition.is_null.key, ANY_INDEX
    elif isinstance(condition, models.FieldCondition):
        yield condition.key, _serving(condition)


def _serving(condition: models.FieldCondition) -> frozenset[str]:
    if isinstance(condition.range, models.DatetimeRange):
        return frozenset({"datetime"})
    if isinstance(condition.range, models.Range):
        return frozenset({"integer", "float"})
    wanted: object = None
    if isinstance(condition.match, models.MatchValue):
        wanted = condition.match.value
    elif isinstance(condition.match, models.MatchAny):
        wanted = next(iter(condition.match.any), "")
    elif isinstance(condition.match, models.MatchExcept):
        wanted = next(iter(condition.match.except_), "")
    elif condition.match is not None:
        return frozenset({"text"})
    if wanted is None:
        return frozenset({"geo"}) if condition.values_count is None else ANY_INDEX
    return frozenset({"bool" if isinstance(wanted, bool) else "integer" if isinstance(wanted, int) else "keyword"})
