"""Exporting what a tenant, or one owner in it, stored: a JSON line for each point that an erasure would delete."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comemory.tenancy import Belonging, Subject
from ops.errors import CollectionGone, Stopped
from ops.jobs.ahead import ahead
from ops.jobs.base import Context, Progress, reporting
from ops.jobs.limits import Limits
from ops.jobs.tally import Tally
from ops.migrate.copy import after_id
from ops.report import JobReport, Problem, Row
from ops.tenant.export_file import ExportFile, IdDigest
from ops.tenant.look import FIELDS, hides_points
from ops.tenant.look import PAGE as PAGE_OF_IDS
from ops.tenant.places import chosen, places

FORMAT = 1
PAGE = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an export is asked for."""

    subject: Subject
    collections: tuple[str, ...] = ()
    """Names or aliases; none: all that hold memory."""
    vectors: bool = False

    def asked(self, url: str) -> dict[str, Any]:
        """All that decides about the file."""
        return {
            "format": FORMAT, "url": url, "tenant": self.subject.tenant, "owner": self.subject.owner,
            "collections": sorted(self.collections), "vectors": self.vectors,
        }  # fmt: skip


@dataclass(slots=True)
class _Now:
    """A collection as it was when its last point had been written."""

    own: int = 0
    shared: Tally = field(default_factory=Tally)
    ids: IdDigest = field(default_factory=IdDigest)


def export(context: Context, wanted: Wanted, output: Path, *, page: int = PAGE) -> tuple[JobReport, bool]:
    """Write the file, or go on with one that was begun; the report, and whether it went on.

    The rows are the points in the file by collection, tenant and scope. `details` holds the manifest, under
    `export`, once the file is complete.

    Raises:
        SettingsError: the file is there, was begun for something else, or a collection is not on the server.
    """
    session = context.session
    file = ExportFile(output, wanted.asked(session.url))
    try:
        names = chosen(session, context.settings.collections, wanted.collections)
        began = context.now().isoformat().replace("+00:00", "Z")
        resumed = file.open({"started": began, "collections": list(names)})
        with reporting("tenant export", context) as report:
            run = _Export(context, wanted, file, report, page)
            try:
                run.work()
                report.details["export"] = run.finish()
            except Stopped:
                report.stopped = context.budget.exhausted()
            finally:
                run.fill()
        return report, resumed
    finally:
        file.close()


class _Export:
    def __init__(self, context: Context, wanted: Wanted, file: ExportFile, report: JobReport, page: int) -> None:
        self.context, self.wanted, self.file, self.report, self.page = context, wanted, file, report, page
        self.session, self.subject = context.session, wanted.subject
        self.names: list[str] = file.kept["collections"]
        self.now: dict[str, _Now] = {}

    def work(self) -> None:
        # Of the collections before the last one written to, all is in the file.
        reached = 0 if self.file.last is None else self.names.index(self.file.last[0])
        for place, name in enumerate(self.names):
            try:
                if place >= reached:
                    self._write(name)
                self._compare(name)
                self.report.collections += 1
            except CollectionGone as gone:
                self._tell(name, str(gone))
        there = () if self.wanted.collections else places(self.session, self.context.settings.collections).memory
        for name in there:
            if name not in self.names:
                self._tell(name, f"'{name}' was made after the export began; it is not in the file.")

    def _write(self, name: str) -> None:
        """Append the points that are not in the file yet, in order of id."""
        last = self.file.last
        start = after_id(last[1]) if last is not None and last[0] == name else None
        if start is None and last is not None and last[0] == name:
            return
        page = Limits.of(self.session.collection(name)).page(self.page)
        done = self.file.counts[name].total()
        total = self.session.count(name, self.subject.own_filter())
        pages = self.session.scroll(
            name, self.subject.any_filter(), payload=True, vector=self.wanted.vectors, page=page, start=start
        )
        for points in ahead(pages):
            self._go_on()
            self.file.write(
                {"collection": name, "id": point["id"], "payload": point["payload"]}
                | ({"vector": point.get("vector")} if self.wanted.vectors else {})
                for point in points
                if self.subject.belonging(point["payload"]) is Belonging.OWN
            )
            self.report.batches += 1
            done = self.file.counts[name].total()
            self.context.progress(Progress(name, "exporting", done, max(done, total)))

    def _compare(self, name: str) -> None:
        """See whether the file has the points that are there now, and tell of what it cannot have."""
        now = self.now[name] = _Now()
        info = self.session.collection(name)
        page = Limits.of(info).page(PAGE_OF_IDS)
        for points in ahead(self.session.scroll(name, self.subject.any_filter(), payload=FIELDS, page=page)):
            self._go_on()
            for point in points:
                if self.subject.belonging(point["payload"]) is Belonging.OWN:
                    now.own += 1
                    now.ids.add(point["id"])
                else:
                    now.shared.add(point)
        if hides_points(info):
            self._tell(
                name,
                f"'{name}' hides points from every reader until they are optimized (`prevent_unoptimized`); these "
                "are not in the file.",
            )
        written = self.file.counts[name].total()
        if now.ids != self.file.ids[name]:
            self._tell(
                name,
                f"Points of '{name}' were written or deleted meanwhile: {written:,} are in the file, each as it "
                f"was when it was read, and {now.own:,} are there now.",
            )
        if now.shared.count:
            self._tell(
                name,
                f"{now.shared.count:,} of the points in '{name}' name {self.subject} in a list of several values, "
                f"such as {', '.join(now.shared.examples)}: not in the file.",
            )

    def _go_on(self) -> None:
        if self.context.budget.exhausted() is not None:
            raise Stopped("The export was ended; the same command goes on with it.")

    def _tell(self, collection: str, message: str) -> None:
        self.report.problems.append(Problem(collection, message))

    def finish(self) -> dict[str, Any]:
        """Put the file in its place, with its manifest."""
        return self.file.finish(
            {
                **self.wanted.asked(self.session.url),
                "started": self.file.kept["started"],
                "finished": self.context.now().isoformat().replace("+00:00", "Z"),
                "points": [
                    {
                        "collection": name,
                        "count": self.file.counts[name].total(),
                        "scopes": {scope: count for (_, scope), count in sorted(self.file.counts[name].items())},
                        "there_at_the_end": None if (now := self.now.get(name)) is None else now.own,
                        "left_out": None if now is None else now.shared.count,
                    }
                    for name in self.names
                ],
                "notes": [problem.message for problem in self.report.problems],
            }
        )

    def fill(self) -> None:
        """Put what is in the file into the report, also when the rest fails."""
        for name, counts in self.file.counts.items():
            self.report.rows += [
                Row(name, *key, count, "exported") for key, count in sorted(counts.items()) if count
            ]
        self.report.handled = self.file.lines
        self.report.skipped = sum(now.shared.count for now in self.now.values())
