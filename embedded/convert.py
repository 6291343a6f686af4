"""From the models of `qdrant-client` to the classes of the engine and back, by name and signature.

Both are made from the same Rust types, so a field of one is an argument of the other under the same name. What
differs is listed in the tables below; a field that the engine has no argument for is refused by name, not dropped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date
from enum import Enum
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
import qdrant_edge as engine
from pydantic import BaseModel
from qdrant_client.http import models

from embedded.errors import Unsupported

_CLASS_NAMES = {
    "VectorParams": "EdgeVectorParams",
    "OptimizersConfigDiff": "EdgeOptimizersConfig",
    "HnswConfigDiff": "HnswIndexConfig",
    "Range": "RangeFloat",
    "DatetimeRange": "RangeDateTime",
    "DisabledStemmerParams": "DisabledStemmer",
    "Datatype": "VectorStorageDatatype",
    "Slice": "SliceCondition",
    "Nested": "NestedCondition",
    "NaiveFeedbackStrategyParams": "NaiveFeedbackStrategy",
    "IdfCorpusParams": "IdfParams",
}
# Fields that only tell one variant of a JSON union from another: the engine's class says it already.
_DISCRIMINATORS = frozenset({"type"})


def _plain(name: str) -> str:
    return name.strip("_").replace("_", "").lower()


def engine_name(model: type) -> str:
    """The name of the engine's class for a model or an enumeration of the client."""
    return _CLASS_NAMES.get(model.__name__, model.__name__)


@cache
def _signature(name: str) -> tuple[Callable[..., Any], dict[str, str]]:
    cls = getattr(engine, name)
    return cls, {parameter.strip("_"): parameter for parameter in inspect.signature(cls).parameters}


@cache
def _members(name: str) -> dict[str, Any]:
    cls = getattr(engine, name)
    return {_plain(member): getattr(cls, member) for member in dir(cls) if member[0].isupper()}


def _enumeration(value: Enum) -> Any:
    name = engine_name(type(value))
    if not hasattr(engine, name):
        raise Unsupported(f"{type(value).__name__} `{value.value}`")
    members = _members(name)
    if _plain(value.value) not in members:
        raise Unsupported(f"{type(value).__name__} `{value.value}`")
    return members[_plain(value.value)]


def to_engine(value: Any) -> Any:  # noqa: PLR0911 (a table of cases)
    """The engine's object for a parsed model, or for a list or a mapping of them.

    Raises `Unsupported` naming the model or the field for which the engine has nothing.
    """
    special = _SPECIAL.get(type(value))
    if special is not None:
        return special(value)
    if isinstance(value, Enum):
        return _enumeration(value)
    if isinstance(value, BaseModel):
        return build(engine_name(type(value)), value)
    if isinstance(value, list):
        return [to_engine(item) for item in value]
    if isinstance(value, dict):
        return {key: to_engine(item) for key, item in value.items()}
    if isinstance(value, date):  # datetime is a date
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value


def build(name: str, model: BaseModel, **more: Any) -> Any:
    """Call the engine's class `name` with the fields that are set in `model`, and with `more`."""
    if not hasattr(engine, name):
        raise Unsupported(type(model).__name__)
    cls, parameters = _signature(name)
    arguments: dict[str, Any] = dict(more)
    for field in type(model).model_fields:
        value = getattr(model, field)
        if value is None or field in more:
            continue
        parameter = parameters.get(field.strip("_"))
        if parameter is None:
            if field in _DISCRIMINATORS:
                continue
            raise Unsupported(f"`{field}` of {type(model).__name__}")
        arguments[parameter] = to_engine(value)
    return cls(**arguments)


def _filter(value: models.Filter) -> Any:
    def clause(conditions: Any) -> list[Any] | None:
        if conditions is None:
            return None
        return [to_engine(item) for item in (conditions if isinstance(conditions, list) else [conditions])]

    return engine.Filter(
        must=clause(value.must),
        should=clause(value.should),
        must_not=clause(value.must_not),
        min_should=None if value.min_should is None else to_engine(value.min_should),
    )


def _polygon(value: models.GeoPolygon) -> Any:
    interiors = None if value.interiors is None else [to_engine(line.points) for line in value.interiors]
    return engine.GeoPolygon(to_engine(value.exterior.points), interiors)


def _sparse_params(value: models.SparseVectorParams) -> Any:
    modifier = None if value.modifier in (None, models.Modifier.NONE) else to_engine(value.modifier)
    return build("EdgeSparseVectorParams", value.index or models.SparseIndexParams(), modifier=modifier)


def _stopwords(value: models.StopwordsSet) -> Any:
    languages = None if value.languages is None else {to_engine(item) for item in value.languages}
    return engine.StopwordsSet(languages, None if value.custom is None else set(value.custom))


def _match_value(value: models.MatchValue) -> Any:
    # The engine takes Python's bool for an integer (bool is a subclass of int), and numpy's for what it is.
    return engine.MatchValue(np.bool_(value.value) if isinstance(value.value, bool) else value.value)  # type: ignore[arg-type]


def _quantization(field: str) -> Callable[[Any], Any]:
    return lambda value: to_engine(getattr(value, field))


def _search_params(value: models.SearchParams) -> Any:
    scope = value.idf if isinstance(value.idf, models.IdfCorpusParams) else None
    return build("SearchParams", value, idf=None if scope is None else to_engine(scope))


_SPECIAL: dict[type, Callable[[Any], Any]] = {
    models.Filter: _filter,
    models.HasIdCondition: lambda c: engine.HasIdCondition({to_engine(i) for i in c.has_id}),
    models.HasVectorCondition: lambda c: engine.HasVectorCondition(c.has_vector),
    models.IsEmptyCondition: lambda c: engine.IsEmptyCondition(c.is_empty.key),
    models.IsNullCondition: lambda c: engine.IsNullCondition(c.is_null.key),
    models.NestedCondition: lambda c: to_engine(c.nested),
    models.SliceCondition: lambda c: to_engine(c.slice),
    models.MatchValue: _match_value,
    models.MatchExcept: lambda m: engine.MatchExcept(m.except_),
    models.GeoPolygon: _polygon,
    models.SparseVectorParams: _sparse_params,
    models.StopwordsSet: _stopwords,
    models.ScalarQuantization: _quantization("scalar"),
    models.ProductQuantization: _quantization("product"),
    models.BinaryQuantization: _quantization("binary"),
    models.TurboQuantization: _quantization("turbo"),
    models.PayloadSelectorInclude: lambda s: engine.PayloadSelector.Include(s.include),
    models.PayloadSelectorExclude: lambda s: engine.PayloadSelector.Exclude(s.exclude),
    models.SearchParams: _search_params,
}


def _snake(name: str) -> str:
    return "".join(
        f"_{letter.lower()}" if letter.isupper() and i else letter.lower() for i, letter in enumerate(name)
    )


def to_json(value: Any) -> Any:
    """The JSON of one of the engine's parameter objects: what is set in it, by name of argument."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return sorted((to_json(item) for item in value), key=str)
    text = str(value)
    name = type(value).__name__
    if name in {"SnowballParams", "DisabledStemmer"}:
        extra = {"language": to_json(value.language)} if name == "SnowballParams" else {}
        return {"type": "snowball" if extra else "none", **extra}
    if text.startswith(f"{name}."):
        return _snake(text.split(".", 1)[1])
    fields = {p: to_json(getattr(value, p)) for p in _signature(name)[1].values()}
    return {field: item for field, item in fields.items() if item is not None}
