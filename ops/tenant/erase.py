"""Erasing a tenant, or one owner in it, from every collection that holds memory.

Four steps: every point of these collections is looked at and counted; a line of the record is written; what is the
subject's own goes batch by batch, each deleted by its ids AND what makes it the subject's, so that a point which
was given to another since it was read stays; and every point is looked at again. What was written meanwhile is
erased by a further round, of which there are few: who goes on writing has to be stopped first.

An erasure that was cut short has deleted whole batches and nothing else; the next one goes on.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from qdrant_client import models

from comemory.tenancy import Belonging, Subject
from ops import logs
from ops.errors import CollectionGone, OpsError, Stopped
from ops.jobs.base import Context, Progress, reporting
from ops.jobs.limits import Limits
from ops.jobs.members import Whose
from ops.jobs.tally import Tally, counts_table, whose
from ops.report import JobReport, Problem, merge_rows
from ops.tenant.log import BEGUN, ENDED, ErasureLog, who
from ops.tenant.look import FIELDS, PAGE, Look, look
from ops.tenant.places import Places, places

JOB = "tenant erase"
ROUNDS = 3
"""How often what was written meanwhile is erased, too, before the run gives up."""

ABOUT = "erasure"
"""The key of the report's details that is about the whole run; the others are collections."""


def erase(context: Context, subject: Subject, log: ErasureLog | None = None) -> JobReport:
    """Erase the subject's points, or in a dry run say what would go.

    The rows are the points erased by collection, tenant and scope: in a dry run those that would be. `details`
    holds, per collection, `before` and `after` (the subject's points by tenant and scope; null where it was not
    looked at then), `others` (all other points, `before` and `after`), `shared` (left alone, since they
    name others, too), `named` (points of others that name the owner, null: not known), `looks_alike` (points by
    tenant) and `changed` (given to another before their batch); and under `erasure` what is about the whole:
    `tenant`, `owner`, `proven` (that nothing is left), `left`, `not_searched` and `log`.

    Args:
        log: the record; asked for unless it is a dry run.
    """
    with reporting(JOB, context) as report:
        run = _Erasure(context, subject, report)
        try:
            run.survey()
            if not context.dry_run:
                if log is None:
                    raise OpsError("Nothing is erased without a record of it.")
                run.recorded(log)
        except Stopped:
            report.stopped = context.budget.exhausted()
        finally:
            run.fill()
    return report


class _Erasure:
    def __init__(self, context: Context, subject: Subject, report: JobReport) -> None:
        self.context, self.subject, self.report = context, subject, report
        self.session = context.session
        self.places = Places((), ())
        self.before: dict[str, Look] = {}
        self.after: dict[str, Look] | None = None
        self.erased: dict[str, dict[Whose, Tally]] = {}
        self.changed: Counter[str] = Counter()
        self.elsewhere: dict[str, int | None] = {}
        self.left: int | None = None
        self.record: str | None = None
        self.log = logs.get(job=JOB, dry_run=context.dry_run)

    # --- looking ---------------------------------------------------------------------------------------------

    def survey(self) -> None:
        """Count what is there; an error here ends the run before anything is deleted."""
        self.places = places(self.session, self.context.settings.collections)
        self.before = self._look("looking")
        for name in self.before:
            with self._unless_gone(name):
                # In strict mode what is filtered by has to be indexed: better known before anything is deleted.
                self.session.count(name, self.subject.own_filter())
        for name in self.places.others:
            self.elsewhere[name] = self._elsewhere(name)
        if self.context.dry_run:
            self.report.collections = len(self.before)

    def _look(self, step: str) -> dict[str, Look]:
        found = {}
        for name in self.places.memory:
            with self._unless_gone(name):
                found[name] = look(self.context, self.subject, name, step)
        return found

    def _elsewhere(self, name: str) -> int | None:
        """How many points of a collection that is not memory name the subject; None: its points do not say."""
        try:
            if "tenant_id" not in (self.session.collection(name).get("payload_schema") or {}):
                return None
            return self.session.count(name, self.subject.any_filter())
        except OpsError:
            return None

    @contextmanager
    def _unless_gone(self, name: str) -> Iterator[None]:
        """A collection that is deleted meanwhile is told of, and the others go on; any other error ends the run."""
        try:
            yield
        except CollectionGone as gone:
            self._tell(name, str(gone))

    def _tell(self, collection: str, message: str) -> None:
        problem = Problem(collection, message)
        if problem not in self.report.problems:
            self.report.problems.append(problem)

    # --- erasing ---------------------------------------------------------------------------------------------

    def recorded(self, log: ErasureLog) -> None:
        """Erase, between two lines of the record."""
        run = str(uuid.uuid4())
        asked = {
            "run": run, **who(), "url": self.session.url,
            "tenant": self.subject.tenant, "owner": self.subject.owner,
        }  # fmt: skip
        log.append(
            {
                "time": _time(self.context), "event": BEGUN, **asked,
                "collections": list(self.places.memory), "not_searched": list(self.places.others),
                "found": {name: found.count for name, found in self.before.items()},
                "others": {name: found.others for name, found in self.before.items()},
            }
        )  # fmt: skip
        self.record = str(log.path)
        error = "ended by an error that is a defect of the program"
        try:
            self._rounds()
            error = ""
        except Stopped:
            error = "asked to stop"
            raise
        except OpsError as raised:
            error = str(raised)
            raise
        finally:
            ended = {
                "time": _time(self.context), "event": ENDED, **asked,
                "erased": {name: _sum(tallies) for name, tallies in self.erased.items()},
                "left": self.left, "proven": self.left == 0, "error": error or None,
                "others": None if self.after is None else {n: found.others for n, found in self.after.items()},
            }  # fmt: skip
            try:
                log.append(ended)
            except OpsError as failed:
                self._tell("", str(failed))

    def _rounds(self) -> None:
        for name in self.before:
            with self._unless_gone(name):
                self._try_to_delete(name)
        for _ in range(ROUNDS):
            for name in self.places.memory:
                with self._unless_gone(name):
                    self._erase(name)
            # Others may have made a collection meanwhile, such as the next version of one.
            self.places = places(self.session, self.context.settings.collections)
            self.after = self._look("looking again")
            self._demand_all_seen()
            self.report.collections = len(self.after)
            self.left = sum(found.count for found in self.after.values())
            if self.left == 0:
                for name in self.after:
                    with self._unless_gone(name):
                        self.left += self._still(name)
            if self.left == 0:
                return
        raise OpsError(
            f"{self.left:,} of the points of {self.subject} are there after {ROUNDS} rounds: somebody goes on "
            "writing them. Take the writer's key away, then run again."
        )

    def _demand_all_seen(self) -> None:
        """That what was not looked at again is gone indeed: "not found" may be the answer of something in front."""
        unseen = set(self.places.memory) - (self.after or {}).keys()
        if there := sorted(unseen & set(self.session.collections())):
            raise OpsError(
                f"{', '.join(there)}: answered as if it did not exist, and is on the server. Nobody knows what is "
                "left in it; run again."
            )

    def _try_to_delete(self, name: str) -> None:
        """Find out, before anything goes, whether the key may delete here and strict mode takes the condition."""
        nobody = models.HasIdCondition(has_id=[str(uuid.uuid4())])
        self.session.delete(name, self.subject.own_filter(nobody))

    def _erase(self, name: str) -> None:
        """Delete what the index finds of the subject, page by page."""
        limits = Limits.of(self.session.collection(name))
        page = limits.ids(limits.page(self.context.settings.tenant.batch))
        tallies = self.erased.setdefault(name, {})
        waiting = self.before[name].count if name in self.before else 0
        for points in self.session.scroll(name, self.subject.any_filter(), payload=FIELDS, page=page):
            own = [point for point in points if self.subject.belonging(point["payload"]) is Belonging.OWN]
            if not self.context.budget.next_batch(max(1, len(own))):
                raise Stopped("The erasure was ended between two batches.")
            if own:
                self._batch(name, own, tallies)
                done = _sum(tallies)
                self.context.progress(Progress(name, "erasing", done, max(waiting, done)))

    def _batch(self, name: str, points: Sequence[Mapping[str, Any]], tallies: dict[Whose, Tally]) -> None:
        began = time.monotonic()
        ids = [point["id"] for point in points]
        self.session.delete(name, self.subject.own_filter(models.HasIdCondition(has_id=ids)))
        changed = {point["id"] for point in self.session.retrieve(name, ids)}
        for point in points:
            if point["id"] not in changed:
                tallies.setdefault(whose(point["payload"]), Tally()).add(point)
        gone = len(points) - len(changed)
        self.changed[name] += len(changed)
        self.report.batches += 1
        self.report.handled += gone
        self.context.budget.spend(gone)
        self.log.info(
            "batch", collection=name, points=gone, changed=len(changed), seconds=round(time.monotonic() - began, 3)
        )

    def _still(self, name: str) -> int:
        """How many the index finds after the look found none: what was written behind the look's back."""
        found = 0
        page = Limits.of(self.session.collection(name)).page(PAGE)
        for points in self.session.scroll(name, self.subject.any_filter(), payload=FIELDS, page=page):
            found += sum(self.subject.belonging(point["payload"]) is Belonging.OWN for point in points)
        return found

    # --- telling ---------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Put what was found and done so far into the report, also when the rest fails."""
        report, dry = self.report, self.context.dry_run
        own = {name: found.own for name, found in self.before.items()} if dry else self.erased
        reason = "tenant" if self.subject.owner is None else "owner"
        for name, tallies in own.items():
            report.rows += [tally.row(name, key, reason) for key, tally in tallies.items()]
        report.rows = merge_rows(report.rows)
        for name in {**self.before, **(self.after or {})}:
            self._fill_collection(name)
        for name, count in self.elsewhere.items():
            if count:
                self._tell(
                    name,
                    f"'{name}' is no collection of memory, so nothing is erased there, but {count:,} of its points "
                    f"name {self.subject}. Add it to collections.include if it is to be searched, too.",
                )
        report.details[ABOUT] = {
            "tenant": self.subject.tenant,
            "owner": self.subject.owner,
            "proven": self.left == 0,
            "left": self.left,
            "not_searched": list(self.places.others),
            "log": self.record,
        }

    def _fill_collection(self, name: str) -> None:
        before = self.before.get(name)
        after = None if self.after is None else self.after.get(name)
        last = after or before or Look()
        self.report.skipped += last.shared.count + self.changed[name]
        if last.shared.count:
            self._tell(
                name,
                f"{last.shared.count:,} of the points in '{name}' name {self.subject} in a list of several values, "
                f"such as {', '.join(last.shared.examples)}: left alone. Say whose each is, then run again.",
            )
        self.report.details[name] = {
            "before": None if before is None else counts_table(before.counts()),
            "after": None if after is None else counts_table(after.counts()),
            "others": {
                "before": None if before is None else before.others,
                "after": None if after is None else after.others,
            },
            "shared": last.shared.count,
            "named": last.named,
            "looks_alike": dict(sorted(last.alike.items())),
            "changed": self.changed[name],
        }


def _sum(tallies: Mapping[Whose, Tally]) -> int:
    return sum(tally.count for tally in tallies.values())


def _time(context: Context) -> str:
    return context.now().isoformat().replace("+00:00", "Z")
