"""Removing copies: reads what decides of the points that share a fingerprint, decides, and deletes in batches.

A batch is deleted in three steps that follow each other at once: the survivors are read again and must be what they
were, the copies are deleted by their ids AND what made them copies (`ops.jobs.holding`), and what is still there is
read, since it was changed in between and is not counted. So a copy goes only while its survivor is there, and
deleting never shortens what is kept.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from qdrant_client import models

from comemory.duplicates import (
    DECIDING_FIELDS,
    Candidate,
    Copies,
    DuplicatePolicy,
    Identity,
    access_domain,
    find_copies,
    policy_for,
)
from comemory.filters import Condition, either, every, matches, matches_any
from comemory.payload import SCHEMA_VERSION
from comemory.times import LATEST
from ops import logs
from ops.jobs.base import Context, Progress
from ops.jobs.dedup_report import Entry, ReportWriter
from ops.jobs.groups import PointGroups
from ops.jobs.holding import Domain, Holding
from ops.jobs.limits import Limits, parts
from ops.report import JobReport, Row
from ops.session import PointId

EXAMPLES = 3
"""Ids shown per row."""

CHUNK = 4000
"""Points that are read and decided on together; more are first sorted by what makes them copies."""

BYTES_PER_READ = 1_000_000
"""About how large an answer with the deciding fields may be: a payload with 10,000 readers is 200 kB."""

Whose = tuple[str, str]
"""Tenant and scope."""

_Pair = tuple[Candidate, Candidate]
"""A survivor and one of its copies."""


@dataclass(slots=True)
class _Member:
    """A point that was read."""

    candidate: Candidate
    digest: bytes
    content: bytes
    whose: Whose
    fields: Mapping[str, Any]
    """Those fields by which its deletion is held, beside the access domain, which is its survivor's."""
    readers: int
    """How many ids its lists of readers hold."""
    longest: int
    """How many ids the longest of these holds."""
    domain: Domain | None
    """The access domain, of a survivor that was read again: with 10,000 readers it is too large to be kept."""


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

BESIDE = 20
"""Conditions of a deletion beside those of the access domain and one for each vector, at most."""

_LARGEST_INDEX = 2**63 - 1
"""The integer index holds 64 bits with a sign; a filter by anything larger is refused."""


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
        self._session, self._settings = context.session, context.settings.dedup
        self._policies = policies
        self._limits = Limits.of(info)
        params = info["config"]["params"]
        self._vectors = [*_vector_names(params.get("vectors")), *(params.get("sparse_vectors") or {})]
        self._uniform: bool | None = None
        self._read_size = 200
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
        skipped = +self._skipped
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
        with ThreadPoolExecutor(1, thread_name_prefix="dedup-ahead") as ahead:
            reading: Future[list[_Member]] | None = None
            for ids in self._chunks(groups):
                following = ahead.submit(self._members, ids)
                if reading is not None:
                    self._decide(reading.result())
                reading = following
            if reading is not None and not self._stopped():
                self._decide(reading.result())

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
            members = self._members(groups.ids(some))
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
                members = self._members([*kept, *exact.ids(some)])
                kept = [copies.survivor.id for copies in self._decide(members, preview=False)]

    def _decide(self, read: Iterable[_Member], *, preview: bool = True) -> list[Copies]:
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
        members = {member.candidate.id: member for member in self._members(list(ids))}
        found = []
        for entry in entries:
            survivor = members.get(entry.survivor)
            listed = [
                members[one] for one in dict.fromkeys(entry.copies) if one in members and one != entry.survivor
            ]
            if survivor is None:
                self._skipped["survivor_changed"] += len(listed)
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

    # --- reading ---------------------------------------------------------------------------------------------

    def _members(self, ids: Sequence[PointId], *, with_domain: bool = False) -> list[_Member]:
        """The points of these ids that may be copies of something."""
        found = []
        for points in self._points(ids):
            names = self._vector_names([point["id"] for point in points])
            for point in points:
                payload = point.get("payload") or {}
                vectors = names.get(point["id"], frozenset()) if names is not None else self._vectors
                identity = Identity.of(payload, vectors)
                if identity is None:
                    continue
                digest = identity.under(policy_for(payload["scope"], self._policies))
                if digest is None:
                    # Without a source it is nobody's copy; `content` would still take it for one.
                    digest = hashlib.blake2b(repr(point["id"]).encode(), digest_size=16, person=b"id").digest()
                domain, chunk = access_domain(payload) or (), payload.get("chunk")
                lists = [len(part) for part in domain if isinstance(part, frozenset)]
                found.append(
                    _Member(
                        candidate=Candidate.of(point["id"], payload, self._settings.exempt_tags),
                        digest=digest,
                        content=identity.content,
                        whose=(payload["tenant_id"], payload["scope"]),
                        fields={
                            "fingerprint": payload["fingerprint"],
                            "ttl_days": payload.get("ttl_days"),
                            "source_id": payload.get("source_id"),
                            "chunk_idx": chunk.get("chunk_idx") if isinstance(chunk, Mapping) else None,
                        },
                        readers=sum(lists),
                        longest=max(lists, default=0),
                        domain=domain if with_domain else None,
                    )
                )
        return found

    def _points(self, ids: Sequence[PointId]) -> Iterator[list[dict[str, Any]]]:
        """The points with the deciding fields, so many at a time that an answer is not too large."""
        place = 0
        while place < len(ids):
            some = ids[place : place + self._read_size]
            before = self._session.traffic.received
            points = self._session.retrieve(self._name, some, payload=DECIDING_FIELDS)
            per_point = max(1, (self._session.traffic.received - before) // len(some))
            self._read_size = max(1, min(2 * self._read_size, CHUNK, BYTES_PER_READ // per_point))
            place += len(some)
            yield points

    def _vector_names(self, ids: Sequence[PointId]) -> dict[PointId, frozenset[str]] | None:
        """Which vectors each point has; None where all points of the collection have all of them."""
        if self._uniform is None:
            without = [models.Filter(must_not=[_has(vector)]) for vector in self._vectors]
            self._uniform = not any(self._session.count(self._name, one) for one in without)
        if self._uniform:
            return None
        found: dict[PointId, frozenset[str]] = {}
        for some in parts(ids, self._limits.ids(self._limits.page(CHUNK))):
            for vector in self._vectors:
                having = every(models.HasIdCondition(has_id=list(some)), _has(vector))
                for page in self._session.scroll(self._name, having, page=len(some)):
                    for point in page:
                        found[point["id"]] = found.get(point["id"], frozenset()) | {vector}
        return found

    # --- applying --------------------------------------------------------------------------------------------

    def _stopped(self) -> bool:
        if self._report.stopped is None:
            self._report.stopped = self._context.budget.exhausted()
        return self._report.stopped is not None

    def _apply(self, found: Iterable[Copies], members: Mapping[PointId, _Member]) -> None:
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
        # What is alike needs fewer conditions together.
        waiting.sort(key=lambda pair: members[pair[1].id].whose)
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

    def _batch(self, pairs: Sequence[_Pair], members: Mapping[PointId, _Member]) -> int:
        """Delete the victims of as many of these pairs as one filter can hold; how many those are."""
        began = time.monotonic()
        gone, taken = (list(pairs), len(pairs)) if self._context.dry_run else self._delete(pairs, members)
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

    def _delete(self, pairs: Sequence[_Pair], members: Mapping[PointId, _Member]) -> tuple[list[_Pair], int]:
        """Delete the victims of those survivors that are what they were.

        Returns:
            The pairs whose victim is gone, and how many pairs, from the first, one filter could hold.
        """
        sound: list[_Pair] = []
        taken = 0

        def condition() -> models.Filter | None:
            # Asked before each try: a survivor may go while a busy server is waited for.
            nonlocal sound, taken
            ids = dict.fromkeys(survivor.id for survivor, _ in pairs)
            now = {member.candidate.id: member for member in self._members(list(ids), with_domain=True)}
            holding = Holding(self._room())
            sound, taken = [], 0
            for survivor, victim in pairs:
                seen = now.get(survivor.id)
                if (
                    seen is not None
                    and seen.digest == members[survivor.id].digest
                    and seen.candidate.rank < victim.rank
                ):
                    if not holding.add(victim.id, seen.domain or ()):
                        break
                    sound.append((seen.candidate, victim))
                taken += 1
            return self._condition(sound, members, holding) if sound else None

        self._session.delete(self._name, condition)
        self._skipped["survivor_changed"] += taken - len(sound)
        if not sound:
            return [], taken
        left = {point["id"] for point in self._session.retrieve(self._name, [victim.id for _, victim in sound])}
        self._skipped["changed"] += len(left)
        return [(survivor, victim) for survivor, victim in sound if victim.id not in left], taken

    def _room(self) -> int | None:
        """How many conditions the access domains of a batch may take."""
        most = self._limits.filter_max_conditions
        return None if most is None else most - BESIDE - len(self._vectors)

    def _condition(
        self, pairs: Sequence[_Pair], members: Mapping[PointId, _Member], holding: Holding
    ) -> models.Filter:
        """What has to hold of victims when they are deleted: what made them copies."""
        victims = [members[victim.id] for _, victim in pairs]
        # Where the survivor expires, a victim that was renewed since may outlive it, and must stay.
        lasting = [members[victim.id] for survivor, victim in pairs if survivor.expires is None]
        ending = [members[victim.id] for survivor, victim in pairs if survivor.expires is not None]
        must: list[Condition] = [
            matches("schema_version", SCHEMA_VERSION),
            matches_any("fingerprint", sorted({member.fields["fingerprint"] for member in victims})),
            *holding.conditions(),
            *self._same_place(victims),
        ]
        if self._uniform:
            must += [_has(vector) for vector in self._vectors]
        ways: list[Condition] = []
        if lasting:
            ways.append(_these(lasting))
        if ending:
            # The index cuts off what is below a microsecond.
            until = max(member.candidate.created for member in ending) + timedelta(microseconds=1)
            days = sorted({_days(member.fields["ttl_days"]) for member in ending})
            ways.append(
                every(
                    _these(ending),
                    models.FieldCondition(key="created_at", range=models.DatetimeRange(lt=until)),
                    models.FieldCondition(key="ttl_days", match=models.MatchAny(any=days)),
                )
            )
        must.append(ways[0] if len(ways) == 1 else either(*ways))
        exempt = self._settings.exempt_tags
        return models.Filter(must=must, must_not=[matches_any("tags", exempt)] if exempt else None)

    def _same_place(self, victims: Sequence[_Member]) -> list[Condition]:
        """That the victims whose place makes them copies are still there; none where there are none such."""
        policies = {member.candidate.id: policy_for(member.whose[1], self._policies) for member in victims}
        placed = [one for one in victims if policies[one.candidate.id] is DuplicatePolicy.SOURCE]
        if not placed:
            return []
        chunks = sorted({member.fields["chunk_idx"] for member in placed})
        indexes = [chunk for chunk in chunks if -_LARGEST_INDEX <= chunk <= _LARGEST_INDEX]
        there = every(
            _these(placed),
            matches_any("source_id", sorted({member.fields["source_id"] for member in placed})),
            models.FieldCondition(key="chunk.chunk_idx", match=models.MatchAny(any=indexes)),
        )
        if len(placed) == len(victims):
            return [there]
        others = [one for one in victims if policies[one.candidate.id] is not DuplicatePolicy.SOURCE]
        return [either(there, _these(others))]


def _days(ttl: Any) -> int:
    """The whole number that `ttl_days` holds, as it is or as the one item of a list."""
    return int(ttl[0] if isinstance(ttl, list) else ttl)


def _these(members: Sequence[_Member]) -> models.HasIdCondition:
    return models.HasIdCondition(has_id=[member.candidate.id for member in members])


def _has(vector: str) -> models.HasVectorCondition:
    return models.HasVectorCondition(has_vector=vector)


def _vector_names(vectors: Mapping[str, Any] | None) -> list[str]:
    """The names of dense vectors; an unnamed one has the empty name."""
    if not vectors:
        return []
    return [""] if "size" in vectors and "distance" in vectors else list(vectors)
