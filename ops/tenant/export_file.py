"""The file of an export while it is made: what was written by a run that was killed is gone on with.

`FILE.partial` holds the lines, and is what tells how far a run came; `FILE.asked.json` says what was asked for.
The last whole line is found by reading, so that nothing has to be kept beside it, and what stands behind it is cut
off. `FILE` is there when it is complete, with `FILE.manifest.json`. All are for their owner's eyes only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

from ops.errors import OpsError, SettingsError
from ops.jobs.members import Whose
from ops.jobs.tally import whose
from ops.json_file import replace_json
from ops.session import PointId


class IdDigest:
    """Tells whether two passes over a collection, each in order of id, saw the same ids."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, point_id: PointId) -> None:
        """Take an id in."""
        self._digest.update(f"{point_id!r}\n".encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdDigest) and self._digest.digest() == other._digest.digest()

    __hash__ = None  # type: ignore[assignment]


class ExportFile:
    """The file at `path`, open for writing while in `with`.

    Args:
        path: where the complete file shall be.
        asked: what decides about its content; a begun file of something else is refused.

    Raises:
        SettingsError: the file is there already, is being written by another run, was begun with other options, or
            cannot be written.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path, self.asked = path, dict(asked)
        self.kept: dict[str, Any] = {}
        self.last: tuple[str, PointId] | None = None
        """The last point in the file: collection and id."""
        self.counts: defaultdict[str, Counter[Whose]] = defaultdict(Counter)
        self.ids: defaultdict[str, IdDigest] = defaultdict(IdDigest)
        self.lines = self.bytes = 0
        self._digest = hashlib.sha256()
        self._file: IO[bytes] | None = None

    @property
    def partial(self) -> Path:
        """The file while it is made."""
        return self.path.with_name(f"{self.path.name}.partial")

    @property
    def manifest(self) -> Path:
        """What is said about the complete file."""
        return self.path.with_name(f"{self.path.name}.manifest.json")

    @property
    def _options(self) -> Path:
        return self.path.with_name(f"{self.path.name}.asked.json")

    def open(self, fresh: Mapping[str, Any]) -> bool:
        """Begin the file, or go on with the one that was begun; whether it goes on.

        Args:
            fresh: kept beside what was asked for when the file is begun; `kept` has what was kept then.
        """
        try:
            self._refuse_complete()
            self._file = os.fdopen(os.open(self.partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = os.fstat(self._file.fileno())
            if not self.partial.exists() or not os.path.samestat(ours, self.partial.stat()):
                raise BlockingIOError  # noqa: TRY301 (another run has just put it in its place)
            self._refuse_complete()
            os.fchmod(self._file.fileno(), 0o600)
            begun = self._begun() if ours.st_size else None
            if begun is None:
                self._file.truncate(0)
                self.kept = dict(fresh)
                replace_json(self._options, {"asked": self.asked, "kept": self.kept})
            elif begun.get("asked") != self.asked:
                raise SettingsError(
                    f"--output: {self.partial} was begun with other options ({_difference(begun, self.asked)}). "
                    f"Give the same ones to go on with it, name another file, or remove {self._options}."
                )
            else:
                self.kept = begun["kept"]
                self._take_up()
        except BlockingIOError:
            raise SettingsError(f"--output: another run is writing {self.partial}.") from None
        except OSError as error:
            raise SettingsError(f"--output: cannot write {self.partial}: {error.strerror}.") from None
        return begun is not None

    def _refuse_complete(self) -> None:
        if self.path.exists():
            raise SettingsError(f"--output: {self.path} is there already; name another file, or remove it.")

    def _begun(self) -> dict[str, Any] | None:
        try:
            found = orjson.loads(self._options.read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError:
            raise SettingsError(f"{self._options} is no JSON; remove it to begin the export anew.") from None
        if not isinstance(found, dict) or not {"asked", "kept"} <= found.keys():
            raise SettingsError(f"{self._options} is not of an export; remove it, or name another --output.")
        return found

    def _take_up(self) -> None:
        """Count what is there, and cut off what is no whole line."""
        if self._file is None:
            raise RuntimeError("open() comes first")
        for line in self._file:
            try:
                point = orjson.loads(line) if line.endswith(b"\n") else None
            except orjson.JSONDecodeError:
                point = None
            if not isinstance(point, dict) or point.get("collection") not in self.kept["collections"]:
                break
            self._count(point, line)
        self._file.truncate(self.bytes)
        self._file.seek(self.bytes)

    def _count(self, point: Mapping[str, Any], line: bytes) -> None:
        collection = point["collection"]
        self.last = collection, point["id"]
        self.counts[collection][whose(point["payload"])] += 1
        self.ids[collection].add(point["id"])
        self.lines += 1
        self.bytes += len(line)
        self._digest.update(line)

    def write(self, points: Iterable[Mapping[str, Any]]) -> None:
        """Append a line for each point: `collection`, `id`, `payload` and perhaps `vector`.

        Raises:
            OpsError: the disk is full, or the like.
        """
        if self._file is None:
            raise RuntimeError("open() comes first")
        try:
            for point in points:
                line = orjson.dumps(point, option=orjson.OPT_APPEND_NEWLINE)
                self._file.write(line)
                self._count(point, line)
            self._file.flush()
        except OSError as error:
            raise OpsError(f"Cannot write {self.partial}: {error.strerror}. Run again to go on.") from None

    def finish(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Put the complete file in its place, the manifest before it; the manifest."""
        if self._file is None:
            raise RuntimeError("open() comes first")
        made = {**manifest, "lines": self.lines, "bytes": self.bytes, "sha256": self._digest.hexdigest()}
        try:
            os.fsync(self._file.fileno())
            replace_json(self.manifest, made)
            self.partial.replace(self.path)
            self._options.unlink()
        except OSError as error:
            raise OpsError(f"Cannot write {self.path}: {error.strerror}. Run again to go on.") from None
        return made

    def close(self) -> None:
        """Close it; another run may go on."""
        if self._file is not None:
            # What a full disk did not take is read again by the run that goes on.
            with contextlib.suppress(OSError):
                self._file.close()


def _difference(begun: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    before = begun["asked"]
    return ", ".join(f"{key}: {before.get(key)!r}" for key in asked if before.get(key) != asked[key])
