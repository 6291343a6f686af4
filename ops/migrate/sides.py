"""The two servers of a migration, and how the vectors of a source collection stand in a target."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from comemory.live import LiveCollection
from comemory.migration.mapping import Layout
from comemory.migration.record import Unmappable
from comemory.migration.rules import Rule, RuleSet
from comemory.migration.vectors import VectorMap, VectorMismatch, lay_out
from ops.errors import CollectionGone, OpsError
from ops.jobs.base import Progress
from ops.jobs.limits import Limits
from ops.migrate.source import SourceSession
from ops.session import Session

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
        same = self.source.url == self.target.url
        mine: list[str] = []
        others: list[str] = []
        for name in names:
            rules = self.rules.of_collection(name)
            goes_to = {rule.target or self.rules.target for rule in self.rules.all()}
            (mine if rules and not (same and name in goes_to) else others).append(name)
        if self.only is not None:
            if self.only not in mine:
                why = "no rule is about it" if self.only in names else "it is not on the source"
                raise OpsError(f"--collection: '{self.only}' cannot be migrated: {why}.")
            return [self.only], []
        return mine, others

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
