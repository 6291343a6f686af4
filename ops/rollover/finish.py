"""The end of a rollover: the copies lose their markers, and are the new collection's own points from then on."""

from __future__ import annotations

from urllib.parse import quote

from comemory.rollover import MARKER
from ops.jobs.ahead import ahead
from ops.jobs.base import Context, Progress, collection_errors, reporting
from ops.report import JobReport, Row
from ops.rollover.pair import Pair


def finish(context: Context, pair: Pair, *, batch: int = 500) -> JobReport:
    """Take the markers of this rollover away; the row says how many points have, or had, one.

    A marker is the only thing removed, so what an application writes meanwhile stays.
    """
    with reporting("rollover finish", context) as report, collection_errors(pair.new, report):
        found = 0
        total = pair.session.count(pair.new)
        done = 0
        for page in ahead(pair.session.scroll(pair.new, payload=[MARKER], page=pair.page(batch))):
            if (stopped := context.budget.exhausted()) is not None:
                report.stopped = stopped
                break
            ids = [
                point["id"] for point in page
                if isinstance(marker := (point["payload"] or {}).get(MARKER), dict) and marker.get("of") == pair.old
            ]  # fmt: skip
            if ids and not context.dry_run:
                context.budget.next_batch(len(ids))
                path = f"/collections/{quote(pair.new, safe='')}/points/payload/delete?wait=true"
                pair.session.request("POST", path, {"keys": [MARKER], "points": ids}, collection=pair.new)
                report.handled += len(ids)
                report.batches += 1
                context.budget.spend(len(ids))
            found += len(ids)
            done += len(page)
            context.progress(Progress(pair.new, "finishing", done, max(total, done)))
        if found:
            report.rows.append(Row(pair.new, "", "", found, "marker removed"))
    return report
