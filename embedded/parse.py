"""A request's body as a model of `qdrant-client`, read as leniently and as strictly as a server reads it.

A server ignores fields it does not know, except in a filter, where an unknown clause would change what is selected.
The client's models forbid every unknown field, so a body that fails is pruned to what the model knows and tried
again.
"""

from __future__ import annotations

import re
import types
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError
from qdrant_client.http import models

from embedded.errors import FormatError, ValidationFailed

Model = TypeVar("Model", bound=BaseModel)
# A server reads no JSON that is nested more deeply, and the engine no payload.
MAX_DEPTH = 127
_CLAUSES = ("should", "min_should", "must", "must_not")
_SNAKE = re.compile(r"(?<!^)(?=[A-Z])")


def load_json(body: bytes) -> Any:
    """The JSON value of a body; an empty body is an empty object."""
    if not body:
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise FormatError(str(error)) from error
    # Most bodies have too few brackets to be nested too deeply, and are not walked through.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and too_deep(value, MAX_DEPTH):
        raise FormatError("recursion limit exceeded", body)
    return value


def are_numbers(values: list[Any]) -> bool:
    """Whether a list of JSON holds numbers only. A sum tells it eight times as fast as a look at each type."""
    try:
        sum(values)
    except TypeError:
        return False
    return True


def too_deep(value: Any, levels: int) -> bool:
    """Whether lists and maps are nested in `value` to more than so many levels."""
    if not isinstance(value, dict | list):
        return False
    if levels < 1:
        return True
    if isinstance(value, list) and are_numbers(value):
        return False
    return any(too_deep(item, levels - 1) for item in (value.values() if isinstance(value, dict) else value))


# How all but a few ids come; a deletion by ids names thousands.
_CANONICAL_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def point_id(value: object) -> int | str:
    """A point's id: an unsigned integer of 64 bits, or a UUID in any of its spellings."""
    if isinstance(value, str) and _CANONICAL_UUID.fullmatch(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    if isinstance(value, str):
        try:
            return str(UUID(value))
        except ValueError:
            pass
    if isinstance(value, UUID):
        return str(value)
    raise FormatError(
        f"value {value} is not a valid point ID, valid values are either an unsigned integer or a UUID"
    )


def _options(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Union or origin is types.UnionType:
        return [option for part in get_args(annotation) for option in _options(part)]
    return [annotation]


@cache
def _fields(model: type[BaseModel]) -> dict[str, tuple[list[Any], bool]]:
    return {
        field.alias or name: (_options(field.annotation), field.is_required())
        for name, field in model.model_fields.items()
    }


def _prune_model(model: type[BaseModel], data: dict[str, Any], body: bytes) -> dict[str, Any]:
    known = _fields(model)
    if model is models.Filter:
        for name in data:
            if name not in known:
                expected = ", ".join(f"`{clause}`" for clause in _CLAUSES)
                raise FormatError(f"unknown field `{name}`, expected one of {expected}", body)
    return {name: _prune(known[name][0], value, body) for name, value in data.items() if name in known}


def _prune(options: list[Any], value: Any, body: bytes) -> Any:
    if isinstance(value, dict):
        candidates = [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
        for candidate in candidates:
            required = {name for name, (_, needed) in _fields(candidate).items() if needed}
            if not required <= value.keys() or (
                not required and len(candidates) > 1 and not _shares(candidate, value)
            ):
                continue
            pruned = _prune_model(candidate, value, body)
            if len(candidates) == 1 or _fits(candidate, pruned):
                return pruned
        for option in options:
            if get_origin(option) is dict:
                inner = _options(get_args(option)[1])
                return {key: _prune(inner, item, body) for key, item in value.items()}
        if models.Filter in candidates:
            return _prune_model(models.Filter, value, body)
    if isinstance(value, list):
        inner = [part for o in options if get_origin(o) is list for part in _options(get_args(o)[0])]
        return [_prune(inner, item, body) for item in value] if inner else value
    return value


def _shares(model: type[BaseModel], value: dict[str, Any]) -> bool:
    return not value or bool(_fields(model).keys() & value.keys())


def _fits(model: type[BaseModel], value: dict[str, Any]) -> bool:
    try:
        model.model_validate(value)
    except ValidationError:
        return False
    return True


def parse(model: type[Model], data: Any, body: bytes, untagged: str = "") -> Model:
    """`data` as `model`; `untagged` is the server's name for the union that is reported if nothing fits."""
    try:
        parsed = model.model_validate(data)
    except ValidationError as first:
        if not isinstance(data, dict):
            raise FormatError(f"invalid type: expected {_SNAKE.sub(' ', model.__name__).lower()}", body) from first
        _check_times(data, body)
        try:
            parsed = model.model_validate(_prune_model(model, data, body))
        except ValidationError as error:
            raise FormatError(_explain(error, untagged), body) from error
    _check_conditions(parsed, _SNAKE.sub("_", model.__name__).lower())
    return parsed


def _explain(error: ValidationError, untagged: str) -> str:
    if untagged:
        return f"data did not match any variant of untagged enum {untagged}"
    detail = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in detail["loc"] if not str(part)[:1].isupper() and "[" not in str(part))
    if detail["type"] == "missing":
        return f"missing field `{place}`"
    return f"{place}: {detail['msg'][0].lower()}{detail['msg'][1:]}"


_TIME = re.compile(r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?\s*(Z|z|[+-]\d{2}:?\d{2})?$")


def _check_times(node: Any, body: bytes) -> None:
    if isinstance(node, dict):
        limits = node.get("range")
        if "key" in node and isinstance(limits, dict):
            for value in limits.values():
                if isinstance(value, str) and not _TIME.match(value):
                    raise FormatError(
                        f"'{value}' does not match accepted datetime format (RFC3339). "
                        "Example: 2014-01-01T00:00:00Z",
                        body,
                    )
        for value in node.values():
            _check_times(value, body)
    elif isinstance(node, list):
        for value in node:
            _check_times(value, body)


def _check_conditions(node: Any, path: str) -> None:
    if isinstance(node, models.FieldCondition):
        if all(value is None for name, value in node if name != "key"):
            raise ValidationFailed(
                f"{path}.__all__", "Validation error: At least one field condition must be specified [{}]"
            )
    elif isinstance(node, models.HasIdCondition):
        for value in node.has_id:
            point_id(value)
    elif isinstance(node, BaseModel):
        for name in type(node).model_fields:
            value = getattr(node, name)
            if isinstance(value, BaseModel | list):
                _check_conditions(value, f"{path}.{name}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            if not isinstance(value, BaseModel):
                return
            _check_conditions(value, f"{path}[{i}]")


def at_least(path: str, value: int | None, minimum: int) -> None:
    """Refuse a number below `minimum` as the server's validator does."""
    if value is not None and value < minimum:
        raise ValidationFailed(path, f"value {value} invalid, must be {minimum} or larger")
