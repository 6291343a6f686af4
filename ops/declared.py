"""The declared collections, read from the file that `collections.declared` names.

It is a YAML list of collections as in the stack's configuration, or that configuration itself
(`Pulumi.<stack>.yaml`, its list under `comemory:collections`), so that one file can serve both.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from comemory.declaration import CollectionSettings, Declared
from comemory.drift import Change, IndexUnexpected, compare
from comemory.live import LiveCollection
from ops.errors import SettingsError
from ops.yaml_file import read_yaml

STACK_KEY = "comemory:collections"
_LIST = TypeAdapter(list[CollectionSettings])


def read_declared(file: Path) -> tuple[Declared, ...]:
    """The collections that the file declares, in its order.

    Raises:
        SettingsError: the file cannot be read, or a key in it is wrong; the text names the key.
    """
    try:
        content = read_yaml(file, "file")
    except SettingsError as error:
        raise SettingsError(f"collections.declared: {error}") from None
    found: Any = content
    if isinstance(content, dict):
        config = content.get("config")
        found = config.get(STACK_KEY) if isinstance(config, dict) else None
    if not isinstance(found, list):
        raise SettingsError(
            f"collections.declared: {file} holds no list of collections, and none under config, {STACK_KEY}."
        )
    try:
        return tuple(Declared(one.spec(), one.all_indexes(), one.alias) for one in _LIST.validate_python(found))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise SettingsError(f"collections.declared: {file}: {where}: {fault['msg']}.") from None


def drift(declared: Declared, live: LiveCollection) -> list[Change]:
    """What of a declared collection is not so on the server; indexes that nobody declared are no drift."""
    return [c for c in compare(declared.spec, live, declared.indexes) if not isinstance(c, IndexUnexpected)]


def undeclared(declared: Iterable[Declared], names: Iterable[str]) -> list[str]:
    """Collections that are on the server and not declared, sorted."""
    return sorted(set(names) - {one.spec.name for one in declared})
