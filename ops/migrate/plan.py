"""The plan: a look at every point of every collection that a rule is about, and at nothing but payloads."""

from __future__ import annotations

from typing import Any

from comemory.migration.survey import Survey
from ops.errors import OpsError, Stopped
from ops.jobs.ahead import ahead
from ops.jobs.base import Progress
from ops.migrate.sides import BLOCKING, Sides


def make_plan(sides: Sides) -> dict[str, Any]:
    """What a run would do, as it is kept and shown.

    `collections` has a `Survey` each, and in `blocked` the sentence that says why none of it can be migrated (null:
    it can); `others` names the collections of the source that no rule is about, `aliases` what a rule names
    although it is only another name of one of these.

    Raises:
        OpsError: there is nothing to migrate.
        Stopped: it was asked to stop.
    """
    names, others = sides.collections()
    aliases = sides.aliases()
    if not names:
        there = ", ".join(others) or "none"
        said = "".join(f" {alias} is an alias of {name}: name that." for alias, name in aliases.items())
        raise OpsError(f"No rule is about any collection of {sides.source.url}, which has: {there}.{said}")
    return {"collections": [_survey(sides, name) for name in names], "others": others, "aliases": aliases}


def _survey(sides: Sides, name: str) -> dict[str, Any]:
    survey = Survey(sides.rules, name, sides.layout(name))
    total = sides.source.count(name)
    for page in ahead(sides.pages(name, vectors=False)):
        for point in page:
            survey.add(point["id"], point["payload"])  # type: ignore[arg-type]
        sides.progress(Progress(name, "looking", survey.points, max(total, survey.points)))
        if sides.stop.is_set():
            raise Stopped("The plan was ended before every point was looked at; nothing was kept of it.")
    survey.finish()
    blocked = [
        example.partition(": ")[2]
        for code, examples in survey.examples.items() if code in BLOCKING
        for example in examples[:1]
    ]  # fmt: skip
    return {**survey.to_json(), "blocked": "; ".join(blocked) or None}
