"""Removing copies: which points that share a fingerprint are looked at together, the decision, and the batches.

`ops.jobs.members` reads what decides, and `ops.jobs.copy_deletion` deletes a batch.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

from comemory.duplicates import (
    Candidate,
    Copies,
    DuplicatePolicy,
    find_copies,
    policy_for,
)
from comemory.times import LATEST
from ops import logs
from ops.jobs.base import Context, Progress
from ops.jobs.copy_deletion import CopyDeletion, Pair
from ops.jobs.dedup_report import Entry, ReportWriter
from ops.jobs.groups import PointGroups
from ops.jobs.limits import Limits, parts
from ops.jobs.members import CHUNK, Member, MemberReader, Whose
from ops.report import JobReport, Row
from ops.session import PointId

EXAMPLES = 3
"""Ids shown per row."""


@dataclass(slots=True)
class _Tally:
    count: int = 0
    oldest: datetime | None = None
    examples: list[str] = field(default_factory=list)

    def add(self, candidate: Candidate) -> None:
        self.count += 1
        if candidate.created != LATEST and (self.oldest is None or candidate.created < self.oldest):
            self.oldest = candidate.created
        if len(self.examples) < EXAMPLES:
            self.examples.append(str(candidate.id))


MOST_READERS = 50_000
"""About how many ids the lists of readers of one batch hold together."""


class Removal:
    """Removes copies from one collection, and adds to the report what it did."""

    def __init__(
        self,
        context: Context,
        report: JobReport,
        writer: ReportWriter,
        name: str,
        *,
        info: Mapping[str, Any],
        policies: Mapping[str, DuplicatePolicy],
    ) -> None:
        self._context, self._report, self._writer, self._name = context, report, writer, name
        self._settings = context.settings.dedup
        self._policies = policies
        self._limits = Limits.of(info)
        rules: dict[str, Any] = {"policies": policies, "exempt_tags": self._settings.exempt_tags}
        self._reader = MemberReader(context.session, name, info=info, **rules)
        self._deletion = CopyDeletion(context.session, name, self._reader, limits=self._limits, **rules)
        self._tallies: dict[tuple[str, str, str], _Tally] = {}
        self._skipped: Counter[str] = Counter()
        self._content: Counter[Whose] = Counter()
        self._notes: dict[str, Any] = {}
        self._log = logs.get(job="dedup", collection=name, dry_run=context.dry_run)

    def note(self, **values: Any) -> None:
        """Add to the details of the report."""
        self._notes |= values

    def removed(self) -> Counter[str]:
        """How many points of each tenant were removed."""
        removed: Counter[str] = Counter()
        for (tenant, _, _), tally in self._tallies.items():
            removed[tenant] += tally.count
        return removed

    def record(self) -> None:
        """Put what was done so far into the report."""
        for (tenant, scope, policy), tally in self._tallies.items():
            self._report.rows.append(
                Row(self._name, tenant, scope, tally.count, policy, tally.oldest, tuple(tally.examples))
            )
        skipped = +(self._skipped + self._deletion.skipped)
        self._report.skipped += skipped.total()
        details = self._notes | {"skipped": dict(sorted(skipped.items()))}
        if self._context.dry_run:
            details["content_would_remove"] = [
                {"tenant": tenant, "scope": scope, "count": count}
                for (tenant, scope), count in sorted(self._content.items())
            ]
        self._report.details[self._name] = details

    # --- which points are looked at together -----------------------------------------------------------------

    def remove(self, groups: PointGroups) -> None:
        """Remove the copies among points that share a fingerprint."""
        # Of two readers one waits for the server while the other works on what it said.
        with ThreadPoolExecutor(2, thread_name_prefix="dedup-ahead") as ahead:
            reading: deque[Future[list[Member]]] = deque()
            for ids in self._chunks(groups):
                reading.append(ahead.submit(self._reader.read, ids))
                if len(reading) > 2:
                    self._decide(reading.popleft().result())
            while reading and not self._stopped():
                self._decide(reading.popleft().result())

    def _chunks(self, groups: PointGroups) -> Iterator[list[PointId]]:
        """Ids of whole groups, so many that they are worth a request; the largest groups are dealt with at once."""
        waiting: list[PointId] = []
        for places in groups.shared():
            if self._stopped():
                return
            if len(places) > CHUNK:
                self._many(groups, places)
                continue
            if len(waiting) + len(places) > CHUNK:
                yield waiting
                waiting = []
            waiting += groups.ids(places)
        if waiting:
            yield waiting

    def _many(self, groups: PointGroups, places: Sequence[int]) -> None:
        """A fingerprint of very many points: sorted by all that makes copies, then group by group."""
        exact = PointGroups()
        content: dict[bytes, tuple[int, Whose]] = {}
        for some in parts(places, CHUNK):
            if self._stopped():
                return
            members = self._reader.read(groups.ids(some))
            exact.add((int.from_bytes(member.digest[:8], "big"), member.candidate.id) for member in members)
            if self._context.dry_run:
                for member in members:
                    if not member.candidate.exempt:
                        content[member.content] = (content.get(member.content, (0, None))[0] + 1, member.whose)
        for count, whose in content.values():
            self._content[whose] += count - 1
        for same in exact.shared():
            kept: list[PointId] = []
            for some in parts(same, CHUNK - 1):
                if self._stopped():
                    return
                # The survivor of those before stands against those that follow: the order is total, so the last
                # one is the survivor of all.
                members = self._reader.read([*kept, *exact.ids(some)])
                kept = [copies.survivor.id for copies in self._decide(members, preview=False)]

    def _decide(self, read: Iterable[Member], *, preview: bool = True) -> list[Copies]:
        members = {member.candidate.id: member for member in read}
        found = find_copies((member.digest, member.candidate) for member in members.values())
        if self._context.dry_run and preview:
            for copies in find_copies((member.content, member.candidate) for member in members.values()):
                if copies.victims:
                    self._content[members[copies.survivor.id].whose] += len(copies.victims)
        self._apply(found, members)
        return found

    def remove_listed(self, entries: Sequence[Entry]) -> None:
        """Remove the copies that a report lists, if they still are copies of the survivor it names."""
        waiting: list[Entry] = []
        size = 0
        for entry in entries:
            for some in parts(entry.copies, CHUNK - 1):
                if size + len(some) + 1 > CHUNK:
                    self._listed(waiting)
                    waiting, size = [], 0
                waiting.append(Entry(entry.collection, entry.survivor, tuple(some)))
                size += len(some) + 1
            if self._stopped():
                return
        self._listed(waiting)

    def _listed(self, entries: Sequence[Entry]) -> None:
        ids = dict.fromkeys(one for entry in entries for one in (entry.survivor, *entry.copies))
        members = {member.candidate.id: member for member in self._reader.read(list(ids))}
        found = []
        for entry in entries:
            survivor = members.get(entry.survivor)
            listed = [
                members[one] for one in dict.fromkeys(entry.copies) if one in members and one != entry.survivor
            ]
            if survivor is None:
                self._skipped["survivor_changed"] += len(listed)
                continue
            if not self._selected(survivor):
                self._skipped["not_selected"] += len(listed)
                continue
            still = [
                one.candidate
                for one in listed
                if one.digest == survivor.digest and survivor.candidate.rank < one.candidate.rank
            ]
            self._skipped["changed"] += len(listed) - len(still)
            going = tuple(one for one in still if not one.exempt)
            found.append(Copies(survivor.candidate, going, tuple(one for one in still if one.exempt)))
        self._apply(found, members)

    def _selected(self, member: Member) -> bool:
        """Whether the run is about its tenant and scope; copies have the same ones."""
        selection = self._context.selection
        return all(
            wanted in (None, is_so)
            for wanted, is_so in zip((selection.tenant, selection.scope), member.whose, strict=True)
        )

    # --- applying --------------------------------------------------------------------------------------------

    def _stopped(self) -> bool:
        if self._report.stopped is None:
            self._report.stopped = self._context.budget.exhausted()
        return self._report.stopped is not None

    def _apply(self, found: Iterable[Copies], members: Mapping[PointId, Member]) -> None:
        """Delete the victims, batch by batch, while the budget lasts."""
        waiting = []
        for copies in found:
            self._skipped["exempt"] += len(copies.exempt)
            longest = members[copies.survivor.id].longest
            if self._limits.ids(longest) < longest:
                # No condition may list them all, so nothing could hold the deletion to them.
                self._skipped["too_many_readers"] += len(copies.victims)
                continue
            waiting += [(copies.survivor, victim) for victim in copies.victims]
        # What is alike, and of about the same time, needs fewer conditions together.
        waiting.sort(key=lambda pair: (members[pair[1].id].whose, pair[1].created))
        most = size = self._limits.ids(self._settings.batch)
        place = 0
        while place < len(waiting):
            allowed = self._context.budget.next_batch(min(size, len(waiting) - place))
            if not allowed:
                self._report.stopped = self._context.budget.exhausted()
                return
            some = waiting[place : place + allowed]
            readers = accumulate(members[survivor.id].readers for survivor, _ in some)
            some = some[: max(1, sum(sofar <= MOST_READERS for sofar in readers))]
            taken = self._batch(some, members)
            size = min(most, 2 * taken)
            place += taken

    def _batch(self, pairs: Sequence[Pair], members: Mapping[PointId, Member]) -> int:
        """Delete the victims of as many of these pairs as one filter can hold; how many those are."""
        began = time.monotonic()
        gone, taken = (list(pairs), len(pairs)) if self._context.dry_run else self._deletion.delete(pairs, members)
        entries: dict[PointId, list[PointId]] = {}
        for survivor, victim in gone:
            member = members[victim.id]
            policy = policy_for(member.whose[1], self._policies)
            self._tallies.setdefault((*member.whose, policy.value), _Tally()).add(victim)
            entries.setdefault(survivor.id, []).append(victim.id)
        for survivor_id, copies in entries.items():
            whose = members[survivor_id].whose
            self._writer.add(
                Entry(self._name, survivor_id, tuple(copies), *whose, policy_for(whose[1], self._policies).value)
            )
        self._report.batches += 1
        if not self._context.dry_run:
            self._report.handled += len(gone)
        self._context.budget.spend(len(gone), wait=not self._context.dry_run)
        done = sum(tally.count for tally in self._tallies.values())
        self._context.progress(Progress(self._name, "removing copies", done))
        self._log.info("batch", points=len(gone), seconds=round(time.monotonic() - began, 3))
        return taken
