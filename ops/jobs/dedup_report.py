"""The file that a dry run of `dedup` writes for a person to review, and a later run is given.

JSON lines. The first says what the file is; each other line is one group of copies:

    {"format": 1, "kind": "comemory-dedup", "created": "2026-06-01T00:00:00Z"}
    {"collection": "cm_text_1024_v1", "tenant": "t_acme", "scope": "memory", "policy": "content",
     "survivor": 7, "copies": [9, "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"]}

It holds ids and reasons, no content and no fingerprints. A reviewer may delete lines, or ids from `copies`.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson

from ops.errors import OpsError
from ops.session import PointId

FORMAT = 1
KIND = "comemory-dedup"


@dataclass(frozen=True, slots=True)
class Entry:
    """One group: which point stays and which are its copies, as the dry run decided."""

    collection: str
    survivor: PointId
    copies: tuple[PointId, ...]
    tenant: str = ""
    scope: str = ""
    policy: str = ""


class ReportWriter:
    """Writes the file, readable by its owner only; it takes its name when the run ends. Without a path, nothing.

    Raises:
        OpsError: the file cannot be written.
    """

    def __init__(self, path: Path | None, created: datetime) -> None:
        self._path = path
        self._created = created
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ReportWriter:
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                opened = os.open(_partial(self._path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            except OSError as error:
                raise OpsError(f"Cannot write the report {self._path}: {error.strerror}.") from None
            self._file = os.fdopen(opened, "wb")
            self._line({"format": FORMAT, "kind": KIND, "created": self._created})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None or self._path is None:
            return
        self._file.close()
        if kind is None:
            _partial(self._path).replace(self._path)
        else:
            with contextlib.suppress(OSError):
                _partial(self._path).unlink()

    def add(self, entry: Entry) -> None:
        """Write one group."""
        if self._file is not None:
            self._line(
                {
                    "collection": entry.collection,
                    "tenant": entry.tenant,
                    "scope": entry.scope,
                    "policy": entry.policy,
                    "survivor": entry.survivor,
                    "copies": list(entry.copies),
                }
            )

    def _line(self, value: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z))


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def read_report(path: Path) -> dict[str, list[Entry]]:
    """The groups of a file, by collection.

    Raises:
        OpsError: the file cannot be read, is not such a report, or is of another version; names the line.
    """
    found: defaultdict[str, list[Entry]] = defaultdict(list)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise OpsError(f"Cannot read the report {path}: {error.strerror}.") from None
    header = _decoded(lines[0]) if lines else None
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise OpsError(f"{path} is not a report of `dedup`: its first line does not say so.")
    if type(header.get("format")) is not int or header["format"] != FORMAT:
        raise OpsError(f"{path} has format {header.get('format')!r}; this version reads {FORMAT}. Make it anew.")
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            entry = _entry(_decoded(line))
            if entry is None:
                raise OpsError(
                    f"{path}, line {number}: expected a group with `collection`, `survivor` and `copies`, "
                    "which are ids of points; "
                    "nothing was deleted."
                )
            found[entry.collection].append(entry)
    return dict(found)


def _decoded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _entry(stored: Any) -> Entry | None:
    if not isinstance(stored, dict):
        return None
    collection, survivor, copies = stored.get("collection"), stored.get("survivor"), stored.get("copies")
    if not isinstance(collection, str) or not isinstance(copies, list):
        return None
    ids = [_point_id(one) for one in (survivor, *copies)]
    known = [one for one in ids if one is not None]
    return Entry(collection, known[0], tuple(known[1:])) if len(known) == len(ids) else None


def _point_id(value: object) -> PointId | None:
    """An id as the server writes it, since a person may have written it otherwise; None for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 2**64 else None
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return str(uuid.UUID(value))
    return None
