"""Up to when the duplicates of each collection are removed, so that a run need not look at everything again."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from ops.errors import OpsError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of a collection: done up to `until` under `policies`, when its tenants had so many points."""

    until: datetime
    tenants: Mapping[str, int]
    policies: Mapping[str, str]


class DedupState:
    """The marks of all collections, in memory or, where a path is given, in a file that is read each time.

    The file holds names of collections and tenants, counts and times. One that is broken or of another version is
    as good as none: the next run is a full one, and writes it anew.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._marks: dict[str, Mark] = {}

    def get(self, collection: str) -> Mark | None:
        """The mark of a collection, or None where there is none to go by."""
        with self._lock:
            return self._current().get(collection)

    def put(self, collection: str, mark: Mark) -> None:
        """Set the mark of a collection.

        Raises:
            OpsError: the file cannot be written.
        """
        with self._lock:
            self._marks = {**self._current(), collection: mark}
            if self._path is not None:
                _write(self._path, self._marks)

    def _current(self) -> dict[str, Mark]:
        return self._marks if self._path is None else _read(self._path)


def _read(path: Path) -> dict[str, Mark]:
    try:
        stored = orjson.loads(path.read_bytes())
        if stored["format"] != FORMAT:
            return {}
        return {name: _mark(mark) for name, mark in stored["collections"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _mark(stored: Mapping[str, Any]) -> Mark:
    until = datetime.fromisoformat(stored["until"])
    if until.tzinfo is None:
        raise ValueError("a time without a zone")
    tenants = {str(tenant): int(count) for tenant, count in stored["tenants"].items()}
    return Mark(until, tenants, {str(scope): str(policy) for scope, policy in stored["policies"].items()})


def _write(path: Path, marks: Mapping[str, Mark]) -> None:
    collections = {
        name: {"until": mark.until.isoformat(), "tenants": dict(mark.tenants), "policies": dict(mark.policies)}
        for name, mark in marks.items()
    }
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(orjson.dumps({"format": FORMAT, "collections": collections}))
        os.replace(partial, path)  # noqa: PTH105 (atomic, and says so)
    except OSError as error:
        raise OpsError(f"dedup.state_file: cannot write {path}: {error.strerror}.") from None
