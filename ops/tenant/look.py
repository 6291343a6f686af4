"""Going through every point of a collection, not by an index, to count what is a subject's and what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from comemory.tenancy import Belonging, Subject
from ops.errors import IndexRequired, OpsError, Stopped
from ops.jobs.ahead import ahead
from ops.jobs.base import Context, Progress
from ops.jobs.limits import Limits
from ops.jobs.members import Whose
from ops.jobs.tally import Tally, one_value, whose

FIELDS = ("tenant_id", "owner_id", "scope", "created_at")
"""What is read of a point: what decides, and what the report says of it."""
PAGE = 5000
MOST_ALIKE = 20
"""Tenants that look alike, told of one collection."""


@dataclass(slots=True)
class Look:
    """One collection at one time."""

    own: dict[Whose, Tally] = field(default_factory=dict)
    shared: Tally = field(default_factory=Tally)
    others: int = 0
    """Points of all other tenants and owners together, those that are shared included."""
    alike: Counter[str] = field(default_factory=Counter)
    """Points by a `tenant_id` that a person could take for the subject's."""
    named: int | None = None
    """Points of others that name the owner; None where no index can tell."""

    @property
    def count(self) -> int:
        """How many points are the subject's own."""
        return sum(tally.count for tally in self.own.values())

    def counts(self) -> Counter[Whose]:
        """Own points by tenant and scope."""
        return Counter({key: tally.count for key, tally in self.own.items()})


def hides_points(info: Mapping[str, Any]) -> bool:
    """Whether the server may have points of a collection that neither a scroll nor a count shows.

    Source: Qdrant's optimizer setting `prevent_unoptimized`, of 1.17.1 and newer.
    """
    return bool((info["config"].get("optimizer_config") or {}).get("prevent_unoptimized"))


def look(context: Context, subject: Subject, name: str, step: str) -> Look:
    """Read the deciding fields of every point of a collection.

    Raises:
        Stopped: the run was asked to stop; half a look tells nothing.
        OpsError: the server refused it, or hides points of this collection.
    """
    session = context.session
    found = Look()
    alike: dict[object, bool] = {}
    info = session.collection(name)
    if hides_points(info):
        raise OpsError(
            f"Collection '{name}' hides points from every reader until they are optimized (`prevent_unoptimized`), "
            "so nobody could say what is left. Switch it off, wait until the collection is green, and run again."
        )
    page = Limits.of(info).page(PAGE)
    done, total = 0, session.count(name)
    for points in ahead(session.scroll(name, payload=FIELDS, page=page)):
        done += len(points)
        context.progress(Progress(name, step, done, max(done, total)))
        if context.budget.exhausted() is not None:
            raise Stopped("The run was ended before every point was looked at.")
        for point in points:
            belonging = subject.belonging(point["payload"])
            if belonging is Belonging.OWN:
                found.own.setdefault(whose(point["payload"]), Tally()).add(point)
                continue
            found.others += 1
            if belonging is Belonging.SHARED:
                found.shared.add(point)
                continue
            tenant = one_value((point["payload"] or {}).get("tenant_id"))
            if isinstance(tenant, str | int | float):
                if tenant not in alike:
                    alike = alike if len(alike) < 100_000 else {}
                    alike[tenant] = subject.looks_alike(tenant)
                if alike[tenant] and (str(tenant) in found.alike or len(found.alike) < MOST_ALIKE):
                    found.alike[str(tenant)] += 1
    naming = subject.named_filter()
    if naming is not None:
        try:
            found.named = session.count(name, naming)
        except IndexRequired:
            found.named = None
    return found
