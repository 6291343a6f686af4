"""The deep audit: every payload read and validated with the model; what is wrong is listed by id only."""

from __future__ import annotations

import contextlib
import os
from collections import Counter, defaultdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson

from comemory.audit import EmbeddingSpace, payload_problems
from comemory.live import LiveCollection
from ops.errors import OpsError
from ops.jobs.base import Context, Progress
from ops.report import JobReport, Row

PAGE = 1000
"""Payloads read by one request; the most that are in memory at once."""


class Quarantine:
    """A list of invalid points as JSON lines, readable by its owner only; nothing is written without a path.

    It takes its name when the run ends, so that a killed run leaves an older list whole.

    Raises:
        OpsError: the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Quarantine:
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                opened = os.open(self._partial(self._path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            except OSError as error:
                raise OpsError(f"Cannot write the quarantine list {self._path}: {error.strerror}.") from None
            self._file = os.fdopen(opened, "wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None or self._path is None:
            return
        self._file.close()
        partial = self._partial(self._path)
        if kind is None:
            partial.replace(self._path)
        else:
            with contextlib.suppress(OSError):
                partial.unlink()

    def add(self, collection: str, point: int | str, reasons: list[str]) -> None:
        """List a point."""
        if self._file is not None:
            line = {"collection": collection, "id": point, "reasons": reasons}
            self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    @staticmethod
    def _partial(path: Path) -> Path:
        return path.with_name(f"{path.name}.partial")


def validate(
    context: Context, report: JobReport, live: LiveCollection, space: EmbeddingSpace, quarantine: Quarantine
) -> None:
    """Read all points of one collection and add to the report what is wrong with their payloads."""
    samples, lenient = context.settings.audit.samples, context.settings.audit.lenient
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[str]] = defaultdict(list)
    total = context.session.count(live.name)
    done = 0
    for page in context.session.scroll(live.name, payload=True, page=PAGE):
        for point in page:
            payload = point.get("payload") or {}
            if not _selected(context, payload):
                continue
            report.details["points_checked"] += 1
            reasons = payload_problems(payload, space, lenient=lenient)
            if not reasons:
                continue
            report.details["points_invalid"] += 1
            quarantine.add(live.name, point["id"], reasons)
            tenant = payload.get("tenant_id")
            for reason in reasons:
                key = (tenant if isinstance(tenant, str) else "", reason)
                counts[key] += 1
                if len(examples[key]) < samples:
                    examples[key].append(str(point["id"]))
        done += len(page)
        report.batches += 1
        context.progress(Progress(live.name, "validating", done, total))
        if (why := context.budget.exhausted()) is not None:
            report.stopped = why
            break
    scope = context.selection.scope or ""
    report.rows += [
        Row(live.name, tenant, scope, count, reason, examples=tuple(examples[tenant, reason]))
        for (tenant, reason), count in counts.items()
    ]


def _selected(context: Context, payload: dict[str, Any]) -> bool:
    selection = context.selection
    return all(
        wanted is None or payload.get(key) == wanted
        for key, wanted in (("tenant_id", selection.tenant), ("scope", selection.scope))
    )
