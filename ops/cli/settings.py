"""`comemory settings check` and `comemory settings show`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import typer
import yaml
from pydantic import BaseModel

from ops.cli import output
from ops.cli.options import AsJson, SettingsFile
from ops.files import check_files
from ops.settings import ENVIRONMENT_PREFIX
from ops.settings_source import load

app = typer.Typer(no_args_is_help=True, help="Check and show the settings.")


@app.command()
def check(settings_file: SettingsFile = None) -> None:
    """Say whether the settings and the files they name can be used, and what is wrong if not (exit code 2)."""
    check_files(load(settings_file))
    output.console().print("The settings can be used.", markup=False)


@app.command()
def show(settings_file: SettingsFile = None, as_json: AsJson = False) -> None:
    """Print every setting with its value and where that is from: the default, the file or the environment.

    Secrets are masked.
    """
    settings = load(settings_file)
    if settings_file is None and (named := os.environ.get("COMEMORY_SETTINGS")):
        settings_file = Path(named)
    values = {} if settings_file is None else yaml.safe_load(settings_file.read_text(encoding="utf-8")) or {}
    rows = [
        {"key": ".".join(path), "value": value, "from": _source(path, values)} for path, value in leaves(settings)
    ]
    if as_json:
        output.print_json(rows)
    else:
        cells = [(row["key"], _shown(row["value"]), row["from"]) for row in rows]
        output.table(("setting", "value", "from"), cells)


def leaves(model: BaseModel, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every value that is no section, with its path, as plain JSON; secrets are masked."""
    found: list[tuple[tuple[str, ...], Any]] = []
    plain = model.model_dump(mode="json")
    for name in type(model).model_fields:
        value = getattr(model, name)
        found += leaves(value, (*path, name)) if isinstance(value, BaseModel) else [((*path, name), plain[name])]
    return found


def _source(path: tuple[str, ...], values: Any) -> str:
    own = f"{ENVIRONMENT_PREFIX}{'__'.join(path)}".upper()
    sections = {f"{ENVIRONMENT_PREFIX}{'__'.join(path[:length])}".upper() for length in range(1, len(path))}
    for name in (name.upper() for name in os.environ):
        if name == own or name in sections or name.startswith(f"{own}__"):
            return "environment"
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return "default"
        values = values[key]
    return "file"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
