"""Where the settings come from: a YAML file and the environment over it, with errors that name the key."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError as UnreadableVariable

from ops.errors import SettingsError
from ops.settings import ENVIRONMENT_PREFIX, Settings
from ops.yaml_file import read_yaml


def load(path: Path | None = None) -> Settings:
    """Read the settings from a YAML file (or `COMEMORY_SETTINGS`, or none) and the environment.

    Raises:
        SettingsError: naming each key that is wrong, its value's fault, and the file it stands in.
    """
    if path is None and (named := os.environ.get("COMEMORY_SETTINGS")):
        path = Path(named)
    values = {} if path is None else _read_yaml(path)
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as error:
        where = f"{path} and the environment" if path else "the environment"
        faults = "\n".join(
            f"  {_key(fault['loc'])}: {_words(fault)}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise SettingsError(f"The settings in {where} are not usable:\n{faults}") from None
    except UnreadableVariable:
        raise SettingsError(
            "The settings in the environment are not usable: a list or a mapping is written as JSON, for example "
            f"{ENVIRONMENT_PREFIX}TTL__EXEMPT_TAGS='[\"legal_hold\"]'. Look at {', '.join(_nested_variables())}."
        ) from None


def _nested_variables() -> list[str]:
    return sorted(name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX) and "__" in name)


def _refuse_unknown_variables() -> None:
    """A misspelt name in the environment would be ignored by the settings source; it is a fault all the same."""
    for name in os.environ:
        if not name.startswith(ENVIRONMENT_PREFIX):
            continue
        rest = name.removeprefix(ENVIRONMENT_PREFIX).lower()
        section, nested, _ = rest.partition("__")
        if rest in Settings.model_fields:
            continue
        if nested and section not in Settings.model_fields:
            raise SettingsError(
                f"The environment variable {name} names no setting: there is no section '{section}'. "
                f"Sections are {', '.join(Settings.model_fields)}."
            )
        if not nested and (meant := _meant(rest)):
            raise SettingsError(
                f"The environment variable {name} names no setting; did you mean {ENVIRONMENT_PREFIX}{meant}? "
                "Two underscores stand between a section and its key."
            )


def _meant(rest: str) -> str | None:
    """The variable that one without a section was probably to be. Others may begin with the prefix for their own
    reasons: `COMEMORY_PORT`, or what Kubernetes says of a Service.
    """
    for section, field in Settings.model_fields.items():
        keys = _keys_of(field.annotation)
        if rest.startswith(f"{section}_") and keys:
            key = rest.removeprefix(f"{section}_")
            close = key if key in keys else _close(key, keys)
            return f"{section}__{close}".upper() if close else None
    return None if (close := _close(rest, Settings.model_fields)) is None else close.upper()


def _keys_of(kind: Any) -> Mapping[str, FieldInfo]:
    """The keys of a section; none where it is not one."""
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _close(name: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.8)), None)


def _words(fault: ErrorDetails) -> str:
    """What is wrong, in the words of this program rather than of the library that found it."""
    if fault["type"] == "extra_forbidden":
        names: Mapping[str, FieldInfo] = Settings.model_fields
        for part in fault["loc"][:-1]:
            names = _keys_of(names[str(part)].annotation) if str(part) in names else {}
        close = _close(str(fault["loc"][-1]), names)
        return "there is no such key" + (f"; did you mean {close}?" if close else "")
    return fault["msg"].removeprefix("Value error, ")


def _read_yaml(path: Path) -> dict[str, Any]:
    values = read_yaml(path, "settings file")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SettingsError(f"The settings file {path} must hold keys and values, not a {type(values).__name__}.")
    if odd := [key for key in values if not isinstance(key, str)]:
        raise SettingsError(f"The settings file {path} has the key {odd[0]!r}, which is no name of a setting.")
    return values


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "(all)"
