"""The alias that applications use, from the old collection to the new one and back."""

from __future__ import annotations

from dataclasses import replace

from ops.errors import OpsError
from ops.report import JobReport
from ops.rollover.catch_up import Rollover
from ops.rollover.run import PASSES, catch_up, check, look, reported, unsettled
from ops.rollover.state import State
from ops.session import Session
from ops.settings import Settings


def find_alias(session: Session, old: str, new: str, named: str | None) -> str:
    """The alias to switch: the one named, or the only one that either collection has.

    Raises:
        OpsError: it does not exist or names a third collection, or there is no one to choose.
    """
    aliases = session.aliases()
    if named is not None:
        there = aliases.get(named)
        if there is None:
            raise OpsError(
                f"There is no alias '{named}' at {session.url}, and a rollover makes none. Give '{old}' the alias "
                "in its entry under `comemory:collections` of the stack (`alias: ...`), and run `pulumi up`."
            )
        if there not in (old, new):
            raise OpsError(f"The alias '{named}' names {there}, neither {old} nor {new}; it is left alone.")
        return named
    found = sorted(alias for alias, name in aliases.items() if name == old)
    found = found or sorted(alias for alias, name in aliases.items() if name == new)
    if len(found) != 1:
        which = f"has several ({', '.join(found)})" if found else "has none"
        raise OpsError(f"Which alias applications use is not known: '{old}' {which}. Name it with --alias.")
    return found[0]


def is_switched(session: Session, old: str, new: str, recorded: str | None) -> bool:
    """Whether applications use the new collection by now: the recorded alias does, or any does and none the old.

    Where the recorded alias is gone and none names the old collection, they are taken to use the new one: else what
    was deleted there would be copied again.

    Args:
        session: of the server.
        old: collection.
        new: collection.
        recorded: the alias that a switch was begun for.

    Raises:
        OpsError: the recorded alias names a third collection.
    """
    aliases = session.aliases()
    if recorded is not None and recorded in aliases:
        if aliases[recorded] not in (old, new):
            raise OpsError(
                f"The alias '{recorded}' that was switched to {new} names {aliases[recorded]} by now: this "
                "rollover is over. Nothing was done."
            )
        return aliases[recorded] == new
    named = set(aliases.values())
    return old not in named and (recorded is not None or new in named)


def prepare(work: Rollover, settings: Settings, *, passes: int = PASSES) -> JobReport:
    """Catch up and check, before the alias is switched; in a dry run only look."""
    with reported("rollover switch", work, settings) as report:
        catch_up(work, report, passes)
        if report.stopped is None:
            check(work, work.log[-1], report)
    return report


def switch(work: Rollover, settings: Settings, alias: str, *, passes: int = PASSES) -> JobReport:
    """Point the alias to the new collection by one request, and bring over what reached the old one until then.

    Raises:
        OpsError: the alias names a third collection by now, or is gone.
    """
    find_alias(work.pair.session, work.pair.old, work.pair.new, alias)
    work.state.forget_late()
    work.state.switch(alias)
    point(work.pair.session, alias, work.pair.new)
    return after(work, settings, passes=passes)


def after(work: Rollover, settings: Settings, *, passes: int = PASSES) -> JobReport:
    """Passes after the switch: what was written to the old collection late is brought over.

    From now on a point that the new collection lacks was deleted there, if the old one had it at the switch.
    """
    late = replace(work, switched=True, log=[])
    with reported("rollover switch", late, settings) as report:
        for _ in late.passes(passes):
            pass
        unsettled(late, report)
    return report


def look_back(work: Rollover, settings: Settings) -> JobReport:
    """What the new collection has and the old one has not, before the alias goes back."""
    with reported("rollover back", work, settings, dry_run=True) as report:
        look(work, report)
    return report


def back(session: Session, state: State, alias: str, old: str, new: str) -> None:
    """Point the alias to the old collection by one request; neither collection is changed.

    Raises:
        OpsError: the alias names a third collection by now, or is gone.
    """
    find_alias(session, old, new, alias)
    point(session, alias, old)
    state.switch(None)


def point(session: Session, alias: str, collection: str) -> None:
    """Point an alias that exists to a collection, in one step: no reader meets a moment without it."""
    actions = [
        {"delete_alias": {"alias_name": alias}},
        {"create_alias": {"alias_name": alias, "collection_name": collection}},
    ]
    session.request("POST", "/collections/aliases", {"actions": actions}, collection=collection)
