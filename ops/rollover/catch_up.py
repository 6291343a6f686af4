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
from comemory.rollover import Marker, Old, Step, decide, digest
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
    def idle(self) -> bool:
        """Whether it went through everything and found nothing to write, so that another would not, either."""
        return self.whole and not self.changes

    @property
    def nil(self) -> bool:
        """Whether both sides were found to agree, but for what applications wrote to the new one."""
        return self.idle and not self.left


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
        """Passes until one writes nothing, at most so many; the first goes on where the last run ended.

        One that did not begin with the first id proves nothing, and is followed by another.
        """
        for _ in range(most):
            found = Pass(self, start=self.state.next).work()
            yield found
            if found.idle or self.budget.exhausted():
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
        late: list[int | str] = []
        for both in page:
            new = None if both.new is None else both.new["payload"] or {}
            old, no_text = self._old(both, new)
            listed = both.old is not None and self._listed is not None and self._listed.has(both.id)
            step = decide(old, new, both.id, pair.old, deleted=listed)
            why = self._held_back(step, no_text=no_text)
            if old is not None and new is not None and self._listed is not None and not listed:
                late.append(both.id)
            if self._listing is not None and old is not None and (new is not None or why is None):
                self._listing.add(both.id)
            if why is None and step is Step.REMOVE:
                writes.add(step, both, old, None)
            elif why is None and step.writes and old is not None:
                due.append((step, both, old))
            done.append((why or step, both))
        if self._writing:
            self._write(writes, due, late)
        for named, both in done:
            self._count(named, both)
        found.points += sum(both.old is not None for both in page)
        found.batches += 1

    def _write(self, writes: Writes, due: Sequence[tuple[Step, Both, Old]], late: list[int | str]) -> None:
        """Send it; `late` are in both collections and not in the list of the switch: a killed process could not
        say that it copied them, or applications wrote both."""
        made = self._vectors(due)
        for step, both, old in due:
            writes.add(step, both, old, made.get(both.id))
        self._work.budget.next_batch(writes.count)
        writes.send()
        if self._work.switched:
            late += writes.inserted
        if late:
            self._work.state.copied_late(late)
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

    def _old(self, both: Both, new: Mapping[str, Any] | None) -> tuple[Old | None, bool]:
        """The old point, and whether its copy lacks the vectors it should have, there being no text for them.

        The copy that such a point has already counts as made of it, so that its payload still follows: above all,
        who reads it.
        """
        if both.old is None:
            return None, False
        payload, made_of = both.old["payload"] or {}, self._made_of(both.old)
        if self._pair.made is None or text_of(payload, self._pair.text) is not None:
            return Old(both.id, payload, made_of), False
        marker = None if new is None else Marker.read(new)
        if marker is None or marker.of != self._pair.old:
            return Old(both.id, payload, made_of), True
        return Old(both.id, payload, marker.vectors), made_of != marker.vectors

    def _held_back(self, step: Step, *, no_text: bool) -> str | None:
        """Why what is due is not done, if it is not."""
        if no_text and step in (Step.COPY, Step.SAME):
            return NO_TEXT
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
