"""Passes over both collections: what is missing is copied, what changed is brought over, what is gone is removed.

A pass reads both sides in the order of ids, decides on each id, and writes page by page. It may end anywhere: what
it wrote says of itself what it was made of, so the next pass needs to know nothing of it. Passes follow each other
until one finds nothing to do.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from comemory.migration.vectors import canonical
from comemory.rollover import Old, Step, decide, digest
from ops.budget import Budget
from ops.jobs.ahead import ahead
from ops.jobs.base import Progress
from ops.jobs.members import Whose
from ops.jobs.tally import Tally, whose
from ops.rollover.counts import Counts, counted_under
from ops.rollover.embedding import Embedder
from ops.rollover.join import Both, joined
from ops.rollover.pair import Pair
from ops.rollover.state import Listed, Listing, State
from ops.rollover.writes import Writes

SAVE_SECONDS = 1.0
NO_TEXT, HELD_BACK = "left: no text to embed", "left: more removals than --max-removals"

Tallies = defaultdict[str, defaultdict[Whose, Tally]]


def _tallies() -> Tallies:
    return defaultdict(lambda: defaultdict(Tally))


@dataclass(slots=True)
class Found:
    """What one pass found.

    `steps` has what it did, or would do, and why it left the rest alone, by the words of `Step` and the reasons for
    what is left; `own` by how much the new collection differs from the old one by what applications wrote or
    deleted there, by tenant and scope; `whole` that it went through everything from the first id on.
    """

    steps: Tallies = field(default_factory=_tallies)
    own: Counts = field(default_factory=Counter)
    points: int = 0
    batches: int = 0
    whole: bool = False

    def count(self, *steps: str) -> int:
        """How many points these steps are about."""
        return sum(tally.count for step in steps for tally in self.steps.get(step, {}).values())

    @property
    def changes(self) -> int:
        """How many points it wrote or would write."""
        return self.count(*(step for step in Step if step.writes))

    @property
    def left(self) -> int:
        """How many points ought to have been written and could not be."""
        return self.count(NO_TEXT, HELD_BACK)

    @property
    def nil(self) -> bool:
        """Whether both sides were found to agree, but for what applications wrote to the new one."""
        return self.whole and not self.changes and not self.left


@dataclass(slots=True)
class Rollover:
    """A rollover and how it is done.

    Args:
        pair: the two collections.
        state: its folder.
        budget: speed, and the wish to stop.
        embedder: makes vectors where they are not copied; not needed where nothing is written.
        batch: points of one page and one upsert, at most.
        most_removals: more copies than so many are not removed by all passes together.
        dry_run: nothing is written.
        switched: whether applications use the new collection by now.
        progress: told after each batch.
        log: gets every pass, also one that an error ends.
    """

    pair: Pair
    state: State
    budget: Budget
    embedder: Embedder | None = None
    batch: int = 500
    most_removals: int = 1000
    dry_run: bool = False
    switched: bool = False
    progress: Callable[[Progress], None] = lambda _: None
    log: list[Found] = field(default_factory=list)
    save_seconds: float = SAVE_SECONDS
    clock: Callable[[], float] = time.monotonic

    def passes(self, most: int) -> Iterator[Found]:
        """Passes until one finds nothing, at most so many; the first goes on where the last run ended.

        One that did not begin with the first id proves nothing, and is followed by another.
        """
        for _ in range(most):
            found = Pass(self, start=self.state.next).work()
            yield found
            if found.nil or self.budget.exhausted():
                return

    def look(self) -> Found:
        """A pass that writes nothing."""
        return Pass(self, reading=True).work()


class Pass:
    """One pass.

    Args:
        start: the id to begin with; None: the first one.
        reading: nothing is written.
    """

    def __init__(self, work: Rollover, *, start: int | str | None = None, reading: bool = False) -> None:
        self._work, self._pair, self._start = work, work.pair, start
        self._writing = not (reading or work.dry_run)
        self._found = Found()
        self._removed = sum(found.count(Step.REMOVE) for found in work.log)
        work.log.append(self._found)
        self._listed: Listed | None = None
        self._listing: Listing | None = None
        self._saved = work.clock()

    def work(self) -> Found:
        """Go through both collections."""
        work, pair, found = self._work, self._pair, self._found
        total = pair.session.count(pair.old)
        step = "comparing" if not self._writing else "catching up" if self._start is None else "going on"
        with ExitStack() as stack:
            if work.switched:
                self._listed = stack.enter_context(closing(work.state.listed()))
            elif self._writing and self._start is None:
                self._listing = work.state.listing()
                stack.callback(self._end_listing, self._listing)
            for page in self._pages(stack):
                if work.budget.exhausted():
                    self._save(page[0].id, at_once=True)
                    break
                self._page(page)
                work.progress(Progress(pair.new, step, found.points, max(total, found.points)))
                self._save(page[-1].id)
            else:
                found.whole = self._start is None
                if self._writing:
                    work.state.save()
        return found

    def _end_listing(self, listing: Listing) -> None:
        listing.close(whole=self._found.whole)

    def _save(self, at: int | str, *, at_once: bool = False) -> None:
        now = self._work.clock()
        if self._writing and (at_once or now - self._saved >= self._work.save_seconds):
            self._work.state.save(at=at)
            self._saved = now

    def _pages(self, stack: ExitStack) -> Iterator[list[Both]]:
        """The ids of both sides, a page of them at a time, read ahead of what is worked on."""
        pair, page = self._pair, self._pair.page(self._work.batch)
        sides: list[Iterator[list[dict[str, Any]]]] = []
        for name, vectors in ((pair.old, pair.read), (pair.new, False)):
            pages = pair.session.scroll(name, payload=True, vector=vectors, page=page, start=self._start)
            read = ahead(pages)
            stack.callback(read.close)  # type: ignore[attr-defined]  # a generator
            sides.append(read)
        some: list[Both] = []
        for both in joined(*sides):
            some.append(both)
            if len(some) == page:
                yield some
                some = []
        if some:
            yield some

    def _page(self, page: Sequence[Both]) -> None:
        pair, found = self._pair, self._found
        writes, done = Writes(pair), []
        due: list[tuple[Step, Both, Old]] = []
        for both in page:
            old = None if both.old is None else Old(both.id, both.old["payload"] or {}, self._made_of(both.old))
            new = None if both.new is None else both.new["payload"] or {}
            deleted = new is None and self._listed is not None and self._listed.has(both.id)
            step = decide(old, new, both.id, pair.old, deleted=deleted)
            why = self._held_back(step, both)
            if self._listing is not None and old is not None and why is None:
                self._listing.add(both.id)
            if why is None and step is Step.REMOVE:
                writes.add(step, both, old, None)
            elif why is None and step.writes and old is not None:
                due.append((step, both, old))
            done.append((why or step, both))
        if self._writing:
            self._write(writes, due)
        for named, both in done:
            self._count(named, both)
        found.points += sum(both.old is not None for both in page)
        found.batches += 1

    def _write(self, writes: Writes, due: Sequence[tuple[Step, Both, Old]]) -> None:
        made = self._vectors(due)
        for step, both, old in due:
            writes.add(step, both, old, made.get(both.id))
        self._work.budget.next_batch(writes.count)
        writes.send()
        if self._work.switched and writes.inserted:
            self._work.state.copied_late(writes.inserted)
        self._work.budget.spend(writes.count)

    def _vectors(self, due: Sequence[tuple[Step, Both, Old]]) -> dict[int | str, dict[str, Any]]:
        """The vectors of those copies that get any."""
        pair = self._pair
        points = [both.old for step, both, _ in due if step in (Step.COPY, Step.WHOLE) and both.old is not None]
        vectors = {point["id"]: pair.vectors.apply(point.get("vector")) for point in points}
        if pair.made is not None and points:
            assert self._work.embedder is not None  # noqa: S101 (a run that writes has one)
            texts = [str(text_of(point["payload"], pair.text)) for point in points]
            for point, vector in zip(points, self._work.embedder.vectors(texts), strict=True):
                vectors[point["id"]][pair.made] = vector
        return vectors

    def _held_back(self, step: Step, both: Both) -> str | None:
        """Why what is due is not done, if it is not."""
        if step in (Step.COPY, Step.WHOLE) and self._pair.made is not None and both.old is not None:
            return NO_TEXT if text_of(both.old["payload"], self._pair.text) is None else None
        if step is not Step.REMOVE:
            return None
        self._removed += 1
        return HELD_BACK if self._removed > self._work.most_removals else None

    def _made_of(self, point: Mapping[str, Any]) -> str:
        """Digest of what the copy's vectors are made of."""
        pair, made = self._pair, hashlib.sha256()
        for name, vector in sorted(pair.vectors.apply(point.get("vector")).items()):
            made.update(repr((name, canonical(vector))).encode())
        if pair.made is None:
            return made.hexdigest()[:32]
        text = text_of(point["payload"], pair.text)
        return digest([pair.made, dict(pair.embedding or {}), text, made.hexdigest()])

    def _count(self, step: str, both: Both) -> None:
        point = both.old or both.new or {}
        self._found.steps[step][whose(point["payload"] or {})].add(point)
        if step in _OWN and both.new is not None:
            self._found.own.update(counted_under(both.new["payload"] or {}))
        if both.old is not None and step in (*_OWN, Step.DELETED):
            self._found.own.subtract(counted_under(both.old["payload"] or {}))


_OWN = frozenset({Step.TOUCHED, Step.ORPHAN, Step.OWN, Step.OTHER_READERS})


def text_of(payload: Mapping[str, Any] | None, name: str) -> str | None:
    """The content of a point; None where there is none, or only blanks."""
    value: Any = payload
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) and value.strip() else None
