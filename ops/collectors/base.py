"""What a collector is: a name and one call that counts. `run` measures it, and keeps its failure its own."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from ops.errors import CollectionGone, OpsError
from ops.session import Session
from ops.settings import Settings
from ops.snapshot import CollectorRun, Sample


@dataclass(frozen=True, slots=True)
class Target:
    """What a collector looks at: one collection ("" for the whole server), at one moment."""

    session: Session
    settings: Settings
    collection: str
    now: datetime


class Collector(Protocol):
    """Counts one thing. It raises `OpsError` when it cannot; the others go on."""

    name: str

    def collect(self, target: Target) -> list[Sample]:
        """Count, with a number of requests that does not depend on how many tenants there are."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A wrapped run; `error` is what went wrong, as an exception of ours with a sentence."""

    run: CollectorRun
    error: OpsError | None = None


def run(
    collector: Collector,
    target: Target,
    previous: CollectorRun | None = None,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> Attempt:
    """Let a collector count, and measure it. After a failure the numbers are those of `previous`.

    Raises:
        CollectionGone: the collection is not there any more, so nothing is to be shown of it.
    """
    began = clock()
    old = previous or CollectorRun(collector.name, target.collection, 0.0, success=False)
    try:
        samples = tuple(collector.collect(target))
    except CollectionGone:
        raise
    except OpsError as error:
        return Attempt(replace(old, seconds=clock() - began, success=False), error)
    except Exception as error:  # one collector's defect must not take the others' numbers away
        # The text of an unknown error could hold content; where it was raised cannot.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        said = OpsError(
            f"Collector '{collector.name}' raised {type(error).__name__} at {where}; "
            "this is a defect of the program."
        )
        return Attempt(replace(old, seconds=clock() - began, success=False), said)
    return Attempt(CollectorRun(collector.name, target.collection, clock() - began, True, target.now, samples))
