"""Aliases: a request's actions happen all together or not at all."""

from __future__ import annotations

from typing import Any

from qdrant_client.http import models

from embedded.errors import NotFound, WrongInput
from embedded.routes.base import Call, Route


def _rows(aliases: dict[str, str], collection: str | None = None) -> dict[str, Any]:
    return {
        "aliases": [
            {"alias_name": alias, "collection_name": name}
            for alias, name in sorted(aliases.items())
            if collection is None or name == collection
        ]
    }


def _all(call: Call) -> dict[str, Any]:
    return _rows({alias: name for alias, name in call.store.aliases.items() if call.rights.to(name)})


def _of_collection(call: Call) -> dict[str, Any]:
    return _rows(call.store.aliases, call.collection().name)


def _change(call: Call) -> bool:
    request = call.parse(models.ChangeAliasesOperation, "AliasOperations")
    call.manage()
    with call.store.lock:
        aliases = dict(call.store.aliases)
        for action in request.actions:
            if isinstance(action, models.CreateAliasOperation):
                _create(call, aliases, action.create_alias)
            elif isinstance(action, models.DeleteAliasOperation):
                aliases.pop(action.delete_alias.alias_name, None)
            else:
                _rename(call, aliases, action.rename_alias)
        if aliases != call.store.aliases:
            call.store.set_aliases(aliases)
    return True


def _free(call: Call, alias: str) -> None:
    if alias in call.store.collections:
        raise WrongInput(f"Collection `{alias}` already exists!", status=409)


def _create(call: Call, aliases: dict[str, str], action: models.CreateAlias) -> None:
    if action.collection_name not in call.store.collections:
        raise NotFound.collection(action.collection_name)
    _free(call, action.alias_name)
    aliases[action.alias_name] = action.collection_name


def _rename(call: Call, aliases: dict[str, str], action: models.RenameAlias) -> None:
    if action.old_alias_name not in aliases:
        raise NotFound(f"Alias {action.old_alias_name} does not exists!")
    _free(call, action.new_alias_name)
    aliases[action.new_alias_name] = aliases.pop(action.old_alias_name)


ROUTES = [
    Route("GET", "/aliases", _all),
    Route("GET", "/collections/{name}/aliases", _of_collection),
    Route("POST", "/collections/aliases", _change),
]
