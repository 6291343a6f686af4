"""What `comemory doctor` looks at: each check says what it found and, when it is not well, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal
from uuid import uuid4

from qdrant_client import models

from comemory.access import Principal, read_filter
from comemory.catalog import PAYLOAD_INDEXES
from comemory.drift import IndexMissing, IndexRebuild, compare_indexes
from comemory.filters import filter_keys
from comemory.indexes import IndexSpec
from comemory.live import LiveCollection
from comemory.retention import any_expired_filter
from ops.errors import OpsError, Unauthorized
from ops.jobs.base import looked_after, utc_now
from ops.session import Session
from ops.settings import Settings

OLDEST = (1, 16)
"""The oldest Qdrant that is supported: collections have metadata since then."""

NEWEST_TESTED = (1, 19)
CLOCK_WARNING = 5.0
"""Seconds that two clocks may differ; the server tells its own to the second only."""

CLOCK_FAILURE = 300.0
"""Seconds of difference from which points are deleted noticeably too early or too late."""

ACCESS: Final = filter_keys(
    read_filter(Principal.agent("t_any", "agt_any", team_ids=("team_any",), role_ids=("role_any",)))
)
"""What every query of an agent filters on, and the types of index that can answer."""

COUNTED: Final = frozenset({"tenant_id", "ttl_days"})
"""What the jobs count by; the server counts by an index only, in strict mode or not."""

_NAMED_AS_OURS = re.compile(r"cm_([a-z0-9]+)_[1-9]\d*_v[1-9]\d*")

Verdict = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; `advice` says what to do when it is not well."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def examine(settings: Settings, session: Session, *, now: Callable[[], datetime] = utc_now) -> Iterator[Check]:
    """All checks, in the order in which to mend what they find; without a connection only the first."""
    try:
        version = session.version()
    except OpsError as error:
        yield Check(
            "connection",
            "failed",
            str(error),
            "Check qdrant.url, and that the server runs and is reached from here.",
        )
        return
    yield Check("connection", "ok", f"{settings.qdrant.url} answers")
    yield _version(version)
    yield _clock(session, now)
    try:
        there = session.collections()
        names = looked_after(session, settings.collections)
    except OpsError as error:
        yield Check(
            "key: read", "failed", str(error), "Put a valid key in the file that qdrant.api_key_file names."
        )
        return
    yield Check("key: read", "ok", "collections can be listed")
    yield _write(session, names)
    if not names:
        yield Check(
            "collections", "warning", "no collection is looked after",
            "Declare one and run `pulumi up`, or name yours in collections.include.",
        )  # fmt: skip
        return
    yield Check("collections", "ok", f"{len(names)} looked after: {', '.join(names)}")
    yield from _left_alone(settings, there)
    for name in names:
        yield from _collection(settings, session, name)


def _left_alone(settings: Settings, there: list[str]) -> Iterator[Check]:
    """Collections named as ours, that no job looks at because nobody told it their type."""
    types = settings.collections.types
    if settings.collections.include:
        return
    for name in there:
        found = _NAMED_AS_OURS.fullmatch(name)
        if found and found[1] not in types and name not in settings.collections.exclude:
            yield Check(
                name, "warning", f"not looked after: its type {found[1]} is none of collections.types",
                f"Add {found[1]} to collections.types, or {name} to collections.exclude.",
            )  # fmt: skip


def _version(version: str) -> Check:
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    least = ".".join(map(str, OLDEST))
    if len(numbers) < 2:
        return Check("version", "warning", f"'{version}' is no version", f"Use Qdrant {least} or newer.")
    if numbers < OLDEST:
        return Check("version", "failed", f"Qdrant {version} is too old", f"Upgrade to {least} or newer.")
    if numbers > NEWEST_TESTED:
        newest = ".".join(map(str, NEWEST_TESTED))
        return Check(
            "version", "warning", f"Qdrant {version} is newer than the newest tested, {newest}",
            "Look at the release notes, and at a dry run of each job, before relying on it.",
        )  # fmt: skip
    return Check("version", "ok", f"Qdrant {version}")


def _clock(session: Session, now: Callable[[], datetime]) -> Check:
    before = now()
    try:
        there = session.date()
    except OpsError as error:
        return Check("clock", "warning", str(error), "Run the doctor again.")
    if there is None:
        return Check("clock", "warning", "the server does not tell its time", "Check that both machines use NTP.")
    middle = before + (now() - before) / 2
    skew = (middle - there).total_seconds()
    # The header is cut to the second, so half a second is expected.
    if abs(skew - 0.5) <= CLOCK_WARNING:
        return Check("clock", "ok", f"this machine and the server differ by less than {CLOCK_WARNING:.0f} s")
    found = f"this machine is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the server"
    verdict: Verdict = "failed" if abs(skew) > CLOCK_FAILURE else "warning"
    return Check("clock", verdict, found, "Retention goes by this machine's clock: set both by NTP.")


def _write(session: Session, names: list[str]) -> Check:
    """A deletion of a point that does not exist needs the right to delete, and changes nothing."""
    if not names:
        return Check("key: write", "warning", "not checked: there is no collection to try it on", "See below.")
    nobody = models.Filter(must=[models.HasIdCondition(has_id=[str(uuid4())])])
    try:
        session.delete(names[0], nobody)
    except Unauthorized as error:
        return Check(
            "key: write", "failed", str(error),
            "Jobs that delete need a key that may write; a read-only key is enough for audit, census and dry runs.",
        )  # fmt: skip
    except OpsError as error:
        return Check("key: write", "warning", str(error), "Mend this, then run the doctor again.")
    return Check("key: write", "ok", f"points of {names[0]} can be deleted")


def _collection(settings: Settings, session: Session, name: str) -> Iterator[Check]:
    try:
        live = LiveCollection.from_rest(name, session.collection(name))
    except OpsError as error:
        yield Check(name, "failed", str(error), "Mend this, then run the doctor again.")
        return
    strict = live.settings.get("strict_mode_config") or {}
    wrong = [c for c in compare_indexes(live, PAYLOAD_INDEXES) if isinstance(c, IndexMissing | IndexRebuild)]
    for change in wrong:
        there = _type_there(change)
        broken = _broken(change.spec, there, strict, settings)
        yield Check(
            f"{name}: indexes",
            "failed" if broken else "warning",
            change.text.removeprefix(f"{name}: "),
            f"Run `pulumi up`, which builds it; until then {broken or _meanwhile(change.spec, there, strict)}.",
        )
    if not wrong:
        yield Check(f"{name}: indexes", "ok", f"all {len(PAYLOAD_INDEXES)} payload indexes are there")
    if strict.get("enabled"):
        yield Check(f"{name}: strict mode", "ok", "on")
    else:
        yield Check(
            f"{name}: strict mode", "warning", "off: one unindexed filter can slow the server for everybody",
            "Set strict_mode_config.enabled in the declaration of the collection and run `pulumi up`.",
        )  # fmt: skip
    if live.status != "green":
        yield Check(
            f"{name}: status", "warning", f"it is {live.status}",
            "Yellow passes by itself while the server optimizes; at red, read the server's log.",
        )  # fmt: skip


def _type_there(change: IndexMissing | IndexRebuild) -> str | None:
    if isinstance(change, IndexMissing):
        return None
    return next((live for key, live, _ in change.differences if key == "type"), change.spec.type)


def _broken(spec: IndexSpec, there: str | None, strict: dict[str, Any], settings: Settings) -> str | None:
    """What does not work at all without this index, with one of another type `there`; None where all of it does."""
    retention = filter_keys(any_expired_filter(datetime.now(UTC), (1,), exempt_tags=settings.ttl.exempt_tags))
    reads, writes = (_refuses(strict, kind) for kind in ("retrieve", "update"))
    if reads and there not in ACCESS.get(spec.field, {there}):
        return "strict mode refuses every query by the access filter"
    if spec.field in COUNTED and there != spec.type:
        return "the server refuses to count by it, so that jobs fail"
    if (reads or writes) and there not in retention.get(spec.field, {there}):
        return "strict mode refuses the filter of retention, so that nothing expires"
    return None


def _meanwhile(spec: IndexSpec, there: str | None, strict: dict[str, Any]) -> str:
    if there == spec.type:
        return "it answers as it is"
    return "filters on it are " + ("refused by strict mode" if _refuses(strict, "retrieve") else "slow")


def _refuses(strict: dict[str, Any], kind: str) -> bool:
    """Whether the server refuses filters on what has no index; it does only where it was told so."""
    return bool(strict.get("enabled")) and strict.get(f"unindexed_filtering_{kind}") is False
