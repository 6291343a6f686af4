"""Between Pulumi's property values and plain JSON: unknown values of a preview, secrets, whole numbers.

Pulumi sends every number as a float, and during a preview a value that is not known yet as a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic
from pulumi.provider.experimental.property_value import PropertyValue, PropertyValueType
from pulumi.provider.experimental.provider import CheckFailure

Properties = Mapping[str, PropertyValue]


class Unknown:
    """A value that only the update will know."""

    def __repr__(self) -> str:
        return "(not known yet)"


UNKNOWN = Unknown()

UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How the engine writes a text that is not known yet; `unknown_text` sends it, as the SDK cannot send its own."""
_PLACEHOLDERS = frozenset(
    {
        UNKNOWN_TEXT,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
"""How the engine writes a value that is not known yet (pulumi/sdk/go/common/resource/plugin/rpc.go).

The SDK's `PropertyValue` hands them on as the texts that they look like.
"""


def plain(value: PropertyValue) -> Any:
    """The value as plain JSON; what is not known yet is `UNKNOWN`, secrets are opened."""
    if value.type is PropertyValueType.COMPUTED:
        return UNKNOWN
    inner: Any = value.value
    if isinstance(inner, str) and inner in _PLACEHOLDERS:
        return UNKNOWN
    if isinstance(inner, Mapping):
        return {key: plain(item) for key, item in inner.items()}
    if isinstance(inner, list | tuple):
        return [plain(item) for item in inner]
    if isinstance(inner, float) and inner.is_integer():
        return int(inner)
    return inner


def plain_map(properties: Properties) -> dict[str, Any]:
    """All properties as plain JSON; nulls are left out, as they declare nothing."""
    values = {key: plain(value) for key, value in properties.items() if not key.startswith("__")}
    return {key: value for key, value in values.items() if value is not None}


def to_property(value: Any) -> PropertyValue:
    """Plain JSON as a property value."""
    if isinstance(value, Mapping):
        return PropertyValue({str(key): to_property(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return PropertyValue([to_property(item) for item in value])
    if isinstance(value, int) and not isinstance(value, bool):
        return PropertyValue(float(value))
    return PropertyValue(value)


def unknown_text() -> PropertyValue:
    """A text that only the update will know, as a preview sends it to the engine."""
    return PropertyValue(UNKNOWN_TEXT)


def to_properties(values: Mapping[str, Any], secret_as: Properties | None = None) -> dict[str, PropertyValue]:
    """Plain JSON as properties; a key that holds a secret in `secret_as` is secret here too."""
    secret = {key for key, value in (secret_as or {}).items() if value.contains_secret()}
    return {
        key: to_property(value).with_secret(key in secret) for key, value in values.items() if value is not None
    }


def has_unknown(value: Any) -> bool:
    """Whether anything inside is not known yet."""
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return value is UNKNOWN


def without_unknown(values: Mapping[str, Any]) -> dict[str, Any]:
    """The top-level keys whose value is fully known."""
    return {key: value for key, value in values.items() if not has_unknown(value)}


def failures(error: pydantic.ValidationError) -> Iterator[CheckFailure]:
    """What is wrong with which property, without what is merely not known yet."""
    for problem in error.errors(include_url=False):
        if has_unknown(problem["input"]):
            continue
        reason = problem["msg"].removeprefix("Value error, ")
        if problem["type"] != "value_error" and not isinstance(problem["input"], Mapping):
            reason = f"{reason}, not {problem['input']!r}"
        if problem["type"] == "extra_forbidden":
            reason = "there is no such property"
        yield CheckFailure(property_path(problem["loc"]), reason)


def property_path(path: tuple[str | int, ...]) -> str:
    """A path as Pulumi writes it: `vectors.dense.size`, `metadata["a.b"]`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif re.fullmatch(r"\w+", key):
            text += f".{key}" if text else key
        else:
            text += f'["{key}"]'
    return text
