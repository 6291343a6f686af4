"""The two servers of a migration, and how the vectors of a source collection stand in a target."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from comemory.live import LiveCollection
from comemory.migration.mapping import Layout
from comemory.migration.record import Unmappable
from comemory.migration.rules import Rule, RuleSet
from comemory.migration.vectors import VectorMap, VectorMismatch, lay_out
from ops.errors import CollectionGone, OpsError
from ops.jobs.base import Progress
from ops.jobs.limits import Limits
from ops.migrate.source import SourceSession
from ops.report import Problem
from ops.session import Session

_WORD = re.compile(r"\{(\w*)\}")
MISMATCH, NO_TARGET = "vectors.mismatch", "target.missing"
BLOCKING = frozenset({MISMATCH, NO_TARGET})
"""Reasons that concern a collection as a whole: it is not migrated, and none of its points is quarantined."""


@dataclass(slots=True)
class Sides:
    """Where the points come from and go to, and what a run is told besides.

    Args:
        source: can only read.
        target: writes.
        rules: whose the points become.
        batch: points of one page and one upsert, at most.
        only: one collection of the source; None is all that a rule is about.
        stop: set it to end at the next batch boundary.
        progress: told after each batch.
    """

    source: SourceSession
    target: Session
    rules: RuleSet
    batch: int = 500
    only: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Callable[[Progress], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    _live: dict[tuple[str, str], LiveCollection] = field(default_factory=dict)

    def collections(self) -> tuple[list[str], list[str]]:
        """The collections to migrate and, of the rest on the source, those that no rule is about.

        A collection that is a target on the same server is never a source, whatever the patterns match.

        Raises:
            OpsError: the one selected is not there, or no rule is about it.
        """
        names = self.source.collections()
        targets = self._targets(names) if same_server(self.source.url, self.target.url) else frozenset()
        mine = [name for name in names if name not in targets and self.rules.of_collection(name)]
        if self.only is not None:
            if self.only not in mine:
                why = "it is not on the source"
                if self.only in names:
                    why = "points go to it" if self.only in targets else "no rule is about it"
                elif (behind := self.source.aliases().get(self.only)) is not None:
                    why = f"it is an alias of '{behind}'; name that, here and in the rules"
                raise OpsError(f"--collection: '{self.only}' cannot be migrated: {why}.")
            return [self.only], []
        return mine, [name for name in names if name not in mine]

    def _targets(self, names: list[str]) -> frozenset[str]:
        """The collections, of these, that points may go to; an alias counts as what it names."""
        aliases = self.target.aliases()
        found: set[str] = set()
        for rule in self.rules.all():
            template = rule.target if rule.target is not None else self.rules.target or ""
            matched = [one.groupdict() for name in names if (one := re.fullmatch(rule.collections, name))]
            for groups in matched or [{}]:
                # What stands in the points may be anything.
                pattern = "".join(
                    (re.escape(groups[part] or "") if part in groups else ".*") if place % 2 else re.escape(part)
                    for place, part in enumerate(_WORD.split(template))
                )
                found |= {name for name in (*names, *aliases) if re.fullmatch(pattern, name)}
        return frozenset(aliases.get(name, name) for name in found)

    def aliases(self) -> dict[str, str]:
        """The source's aliases that a rule is about although it is not about the collection behind them."""
        return {
            alias: name for alias, name in sorted(self.source.aliases().items())
            if self.rules.of_collection(alias) and not self.rules.of_collection(name)
        }  # fmt: skip

    def unplanned(self, plan: Mapping[str, Any]) -> list[Problem]:
        """A problem for each collection that is on the source and was not when the plan was made."""
        if self.only is not None:
            return []
        planned = {one["collection"] for one in plan["collections"]}
        why = "is on the source and not in the plan; make the plan anew (`comemory migrate plan`)"
        return [Problem(name, f"{name} {why}.") for name in self.collections()[0] if name not in planned]

    def layout(self, collection: str) -> Layout:
        """Where the vectors of a source collection go, found once per rule and target."""
        found: dict[tuple[str, str], VectorMap | Unmappable] = {}

        def of(rule: Rule, target: str) -> VectorMap:
            key = (rule.name, target)
            if key not in found:
                found[key] = self._lay_out(collection, rule, target)
            known = found[key]
            if isinstance(known, Unmappable):
                raise known
            return known

        return of

    def _lay_out(self, collection: str, rule: Rule, target: str) -> VectorMap | Unmappable:
        try:
            theirs = self._described(self.target, target)
        except CollectionGone:
            return Unmappable(NO_TARGET, f"there is no collection {target!r} on the target; `pulumi up` creates it")
        model = rule.embedding_model or self.rules.embedding_model
        try:
            return lay_out(self._described(self.source, collection), theirs, names=rule.vectors, model=model)
        except VectorMismatch as fault:
            return Unmappable(MISMATCH, str(fault))

    def _described(self, session: Session, name: str) -> LiveCollection:
        key = (session.url, name)
        if key not in self._live:
            self._live[key] = LiveCollection.from_rest(name, session.collection(name))
        return self._live[key]

    def pages(
        self, collection: str, *, vectors: bool, start: int | str | None = None
    ) -> Iterator[list[dict[str, object]]]:
        """The source's points from `start`, page by page."""
        page = Limits.of(self.source.collection(collection)).page(self.batch)
        return self.source.scroll(collection, payload=True, vector=vectors, page=page, start=start)


def same_server(one: str, other: str) -> bool:
    """Whether two addresses are one as far as can be told from them."""
    return _address(one) == _address(other)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    loopback = host in {"localhost", "::1"} or host.startswith("127.")
    return "localhost" if loopback else host, parts.port or (443 if parts.scheme == "https" else 80)
