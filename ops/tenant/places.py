"""Which collections hold memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ops.errors import SettingsError
from ops.jobs.base import looked_after
from ops.session import Session
from ops.settings import CollectionsSettings

PREFIX = "cm_"


@dataclass(frozen=True, slots=True)
class Places:
    """The server's collections, each once: aliases are none. `others` hold something else."""

    memory: tuple[str, ...]
    others: tuple[str, ...]


def places(session: Session, settings: CollectionsSettings) -> Places:
    """All collections on the server.

    Memory is in those named `cm_…`, whatever follows, declared or not, old version or new, also those that the
    settings exclude from the jobs; and in those that the settings include by name or alias.
    """
    ours = frozenset(looked_after(session, settings))
    names = session.collections()
    memory = tuple(name for name in names if name.startswith(PREFIX) or name in ours)
    return Places(memory, tuple(name for name in names if name not in memory))


def chosen(session: Session, settings: CollectionsSettings, wanted: Sequence[str]) -> tuple[str, ...]:
    """The collections that hold memory or, where some are asked for by name or alias, these; sorted, each once.

    Raises:
        SettingsError: one that is asked for is not on the server.
    """
    if not wanted:
        return places(session, settings).memory
    names, aliases = session.collections(), session.aliases()
    found = {aliases.get(name, name): name for name in wanted}
    for name, asked in found.items():
        if name not in names:
            raise SettingsError(f"--collection: '{asked}' is not on the server.")
    return tuple(sorted(found))
