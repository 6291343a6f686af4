"""The named principals of the sample, from `data/principals.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from comemory.access import Principal

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Person:
    """Somebody who asks: the name that `--as` takes, what it is, and the principal the library knows."""

    name: str
    about: str
    principal: Principal


@cache
def people() -> dict[str, Person]:
    """Every named principal, by name, in the order of the file."""
    with (DATA / "principals.toml").open("rb") as file:
        entries = tomllib.load(file)
    found = {}
    for name, entry in entries.items():
        owner_kind, owner_id = entry["owner"].split(":", 1)
        found[name] = Person(
            name,
            entry["about"],
            Principal(
                tenant_id=entry["tenant_id"],
                owner_kind=owner_kind,
                owner_id=owner_id,
                team_ids=tuple(entry.get("team_ids", ())),
                agent_ids=tuple(entry.get("agent_ids", ())),
                role_ids=tuple(entry.get("role_ids", ())),
            ),
        )
    return found


def person(name: str) -> Person:
    """Look up one of them; raises `LookupError` with the names there are."""
    try:
        return people()[name]
    except KeyError:
        raise LookupError(f"the sample knows nobody named {name!r}; there are: {', '.join(people())}") from None
