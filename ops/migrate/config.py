"""The file that a migration is described in: the rules, and where the points come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from comemory.migration.rules import RuleSet
from ops.errors import SettingsError
from ops.settings import QdrantSettings
from ops.yaml_file import read_yaml


@dataclass(frozen=True, slots=True)
class Migration:
    """What one file says. `source` is None where the points come from the target's own server."""

    rules: RuleSet
    source: QdrantSettings | None

    def digest(self, target: str) -> str:
        """Names all that decides what becomes of a point; a checkpoint of another one is not gone on with."""
        said = {"rules": self.rules.model_dump(mode="json"), "target": target, "format": 1}
        return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_migration(file: Path | None, **over: str | None) -> Migration:
    """Read a file of rules; without one, the built-in rules hold alone.

    Args:
        file: YAML with the keys of `RuleSet`, and `source` with those of the settings' section `qdrant`.
        over: values of the rule set that the command line gave (None: not given).

    Raises:
        SettingsError: naming the file and each key that is wrong.
    """
    values = {} if file is None else _read(file)
    source = values.pop("source", None)
    values |= {key: value for key, value in over.items() if value is not None}
    where = file or "the command line"
    if isinstance(source, dict) and "url" not in source:
        raise SettingsError(f"The rules of {where} are not usable:\n  source.url: is missing; whose key is it?")
    try:
        rules = RuleSet(**values)
        found = None if source is None else QdrantSettings.model_validate(source)
    except (ValidationError, TypeError) as error:
        if not isinstance(error, ValidationError):
            raise SettingsError(f"{where}: {error}.") from None
        faults = "\n".join(
            f"  {'.'.join(map(str, fault['loc'])) or '(all)'}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False)
        )
        raise SettingsError(f"The rules of {where} are not usable:\n{faults}") from None
    if not rules.all():
        raise SettingsError(f"{where} has no rules, and `builtin` is false; nothing would be migrated.")
    return Migration(rules, found)


def _read(file: Path) -> dict[str, Any]:
    values = read_yaml(file, "rules")
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise SettingsError(f"The rules {file} must hold keys and values.")
    return values
