"""Where the settings come from: a YAML file and the environment over it, with errors that name the key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import SettingsError as UnreadableVariable

from ops.errors import SettingsError
from ops.settings import ENVIRONMENT_PREFIX, Settings


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
        faults = "\n".join(f"  {_key(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_input=False))
        raise SettingsError(f"The settings in {where} are not usable:\n{faults}") from None
    except UnreadableVariable as error:
        raise SettingsError(f"The settings in the environment are not usable: {error}.") from None


def _refuse_unknown_variables() -> None:
    """A misspelt section in the environment would be ignored by the settings source; it is a fault all the same."""
    for name in os.environ:
        section, nested, _ = name.removeprefix(ENVIRONMENT_PREFIX).partition("__")
        if name.startswith(ENVIRONMENT_PREFIX) and nested and section.lower() not in Settings.model_fields:
            raise SettingsError(
                f"The environment variable {name} names no setting: there is no section '{section.lower()}'. "
                f"Sections are {', '.join(Settings.model_fields)}."
            )


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"Cannot read the settings file {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The settings file {path} is not text in UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise SettingsError(
            f"The settings file {path} is not YAML{line}: {getattr(error, 'problem', error)}."
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SettingsError(f"The settings file {path} must hold keys and values, not a {type(values).__name__}.")
    if odd := [key for key in values if not isinstance(key, str)]:
        raise SettingsError(f"The settings file {path} has the key {odd[0]!r}, which is no name of a setting.")
    return values


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "(all)"
