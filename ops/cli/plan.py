"""`comemory plan`: what is declared against what is on the server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from comemory.declaration import Declared
from comemory.live import LiveCollection
from ops.cli import output
from ops.cli.options import AsJson, Collection, SettingsFile, read_settings
from ops.declared import drift, read_declared, undeclared
from ops.errors import SettingsError
from ops.jobs.base import looked_after
from ops.jobs.registry import connect
from ops.session import Session
from ops.settings import Settings

DeclaredFile = Annotated[
    Path | None,
    typer.Option(
        "--declared", metavar="FILE", help="A YAML list of collections, or Pulumi.<stack>.yaml; else the settings'."
    ),
]
PlanExitCode = Annotated[
    bool,
    typer.Option("--exit-code", help="Exit with 0 when nothing differs, 2 when something does, 1 on an error."),
]


def plan(
    *,
    settings_file: SettingsFile = None,
    declared_file: DeclaredFile = None,
    collection: Collection = None,
    as_json: AsJson = False,
    exit_code: PlanExitCode = False,
) -> None:
    """Compare declared collections with the server's, and change nothing; `pulumi up` applies the difference."""
    try:
        settings = read_settings(settings_file)
        changes, others = _changes(settings, declared_file, collection)
    except SettingsError as error:
        # As with terraform, 2 means that something differs, so a wrong setting has to be another number.
        output.tell(f"comemory: {error}")
        raise typer.Exit(1 if exit_code else 2) from None
    if as_json:
        output.print_json({"format": 1, "changes": changes, "undeclared": others})
    else:
        for change in changes:
            output.console().print(change["text"], markup=False, soft_wrap=True)
        for name in others:
            output.console().print(f"{name}: is not declared (left alone)", markup=False, soft_wrap=True)
        differs = f"{len(changes)} difference{'' if len(changes) == 1 else 's'}"
        output.console().print(f"plan: {differs}; `pulumi up` applies them" if changes else "plan: no difference")
    raise typer.Exit(2 if exit_code and changes else 0)


def _changes(settings: Settings, file: Path | None, only: str | None) -> tuple[list[dict[str, Any]], list[str]]:
    file = file or settings.collections.declared
    if file is None:
        raise SettingsError(
            "Nothing is declared: give --declared FILE (such as Pulumi.<stack>.yaml) or set collections.declared."
        )
    declared = read_declared(file)
    if only is not None:
        declared = tuple(one for one in declared if only in (one.spec.name, one.alias))
        if not declared:
            raise SettingsError(f"--collection: '{only}' is not declared in {file}.")
    with connect(settings) as session:
        names, aliases = session.collections(), session.aliases()
        ours = [] if only is not None else looked_after(session, settings.collections)
        changes = [change for one in declared for change in _of_one(one, session, names, aliases)]
    return changes, undeclared(declared, ours)


def _of_one(one: Declared, session: Session, names: list[str], aliases: dict[str, str]) -> list[dict[str, Any]]:
    name = one.spec.name
    if name not in names:
        return [_change(name, "collection_missing", f"{name}: is not on the server (created)")]
    live = LiveCollection.from_rest(name, session.collection(name))
    found = [_change(name, _kind(type(change).__name__), change.text) for change in drift(one, live)]
    if one.alias is not None and aliases.get(one.alias) != name:
        target = aliases.get(one.alias)
        is_now = "does not exist" if target is None else f"names {target}"
        found.append(_change(name, "alias_wrong", f"{name}: alias {one.alias} {is_now} (made to name {name})"))
    return found


def _change(collection: str, kind: str, text: str) -> dict[str, Any]:
    return {"collection": collection, "kind": kind, "text": text}


def _kind(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
