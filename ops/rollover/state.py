"""How far a rollover has come, in a folder of which a kill at any moment leaves something usable.

`rollover.json` says where the pass under way is, so that the next run goes on there, and which alias was switched.
`old-points` lists the ids that the old collection had when the last whole pass went through it. A point that is in
the list and not in the new collection after the switch was deleted there: nothing may bring it back.
`late-points` has the ids that were copied after the switch. None of the files holds content or a key.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import orjson

from ops.errors import OpsError, SettingsError
from ops.json_file import replace_json
from ops.lease import FileLease, Lease, NoLease
from ops.rollover.join import place
from ops.session import PointId

STATE, POINTS, LATE, LOCK = "rollover.json", "old-points", "late-points", "lock"
FORMAT = 1
_RECORD = struct.Struct(">BQQ")
_LOW = 2**64 - 1


class State:
    """The folder of one rollover, held by one process at a time.

    Args:
        folder: made when it is missing.
        url: the server.
        old: collection.
        new: collection.
        reading: it is only looked at, and neither made nor held.

    Raises:
        SettingsError: it is another rollover's, or another process works with it.
    """

    def __init__(self, folder: Path, url: str, old: str, new: str, *, reading: bool = False) -> None:
        self.folder = folder
        self._digest = hashlib.sha256("\n".join((url, old, new)).encode()).hexdigest()
        self._lock: Lease = NoLease() if reading else self._hold()
        found = self._read()
        self.next: PointId | None = found.get("next")
        self.switched: str | None = found.get("switched")
        self.anew: dict[str, str | None] | None = found.get("anew")
        """How vectors are made anew: the `field` of the text and the `model`; None: they are copied."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _hold(self) -> Lease:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"--state: cannot make the folder {self.folder}: {error.strerror}.") from None
        lock = FileLease(self.folder / LOCK)
        if not lock.hold():
            raise SettingsError(f"--state: another process works with {self.folder}; wait until it has ended.")
        return lock

    def _read(self) -> dict[str, Any]:
        path = self.folder / STATE
        try:
            found = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OpsError(f"Cannot read {path}: {error.strerror}.") from None
        except orjson.JSONDecodeError:
            raise OpsError(f"{path} is no JSON; name another --state.") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise OpsError(f"{path} is of another version of this program; name another --state.")
        if found.get("digest") != self._digest:
            raise SettingsError(f"{path} is of a rollover between other collections; name another --state.")
        if not _is_whole(found):
            raise OpsError(f"{path} is damaged; name another --state, or the one of a copy of this folder.")
        return found

    def save(self, *, at: PointId | None = None) -> None:
        """Write down that a pass has come so far (None: it is over); what came before is stored already."""
        self.next = at
        self._write()

    def embed(self, anew: Mapping[str, str | None] | None) -> None:
        """Write down how vectors are made."""
        self.anew = None if anew is None else dict(anew)
        self._write()

    def switch(self, alias: str | None) -> None:
        """Write down that the alias is about to be switched, or was switched back (None)."""
        self.switched = alias
        self._write()

    def _write(self) -> None:
        path = self.folder / STATE
        now = {"next": self.next, "switched": self.switched, "anew": self.anew}
        with _writing(path):
            replace_json(path, {"format": FORMAT, "digest": self._digest, **now})

    # --- which points the old collection had ---------------------------------------------------------------------

    def listing(self) -> Listing:
        """A new list of the old collection's points, in the place of the one before once it is whole."""
        return Listing(self.folder / POINTS)

    @property
    def has_list(self) -> bool:
        """Whether there is a list."""
        return (self.folder / POINTS).exists()

    def listed(self) -> Listed:
        """The points of the last whole list, and those copied after the switch.

        Raises:
            OpsError: there is no list.
        """
        path = self.folder / POINTS
        if not self.has_list:
            raise OpsError(
                f"{self.folder} has no list of the points that the old collection had at the switch. Without it a "
                "point that was deleted from the new collection since cannot be told from one that came late to "
                "the old one. Name the --state that the switch was made with."
            )
        late = self.folder / LATE
        return Listed(path, late.read_bytes() if late.exists() else b"")

    def copied_late(self, ids: Iterable[PointId]) -> None:
        """Add points that are in the new collection now."""
        path = self.folder / LATE
        opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with _writing(path), os.fdopen(os.open(path, opened, 0o600), "ab") as stream:
            size = os.fstat(stream.fileno()).st_size
            os.ftruncate(stream.fileno(), size - size % _RECORD.size)  # a kill can leave half a record at the end
            stream.write(b"".join(map(_record, ids)))
            stream.flush()
            os.fsync(stream.fileno())

    def forget_late(self) -> None:
        """Begin the list of late points anew."""
        (self.folder / LATE).unlink(missing_ok=True)


class Listing:
    """A list being written, id by id in the server's order."""

    def __init__(self, path: Path) -> None:
        self._path, self._partial = path, path.with_name(f"{path.name}.partial")
        with _writing(self._partial):
            descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._stream: IO[bytes] = os.fdopen(descriptor, "wb")

    def add(self, point_id: PointId) -> None:
        """The next id."""
        with _writing(self._partial):
            self._stream.write(_record(point_id))

    def close(self, *, whole: bool) -> None:
        """End it; it takes the place of the one before if it is whole."""
        with _writing(self._partial):
            try:
                if whole:
                    self._stream.flush()
                    os.fsync(self._stream.fileno())
            finally:
                self._stream.close()
            if whole:
                self._partial.replace(self._path)
            else:
                self._partial.unlink()


class Listed:
    """Which points are in a list, asked in the server's order."""

    def __init__(self, path: Path, late: bytes) -> None:
        if path.stat().st_size % _RECORD.size:
            raise OpsError(f"{path} is damaged: it does not end with a whole entry. Bring it back from a copy.")
        self._stream: IO[bytes] = path.open("rb")
        self._late = {late[at : at + _RECORD.size] for at in range(0, len(late), _RECORD.size)}
        self._now = self._stream.read(_RECORD.size)

    def has(self, point_id: PointId) -> bool:
        """Whether it is in the list; no id may come before one that was asked for already."""
        wanted = _record(point_id)
        while len(self._now) == _RECORD.size and self._now < wanted:
            self._now = self._stream.read(_RECORD.size)
        return self._now == wanted or wanted in self._late

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say what keeps a file from being written."""
    try:
        yield
    except OSError as error:
        raise OpsError(
            f"--state: cannot write {path}: {error.strerror}. What was kept before stays; run it again."
        ) from None


def _is_whole(found: Mapping[str, Any]) -> bool:
    """Whether the values are of the kinds that were written."""
    at, switched, anew = found.get("next"), found.get("switched"), found.get("anew")
    try:
        right = at is None or (type(at) in (int, str) and place(at) is not None)
    except ValueError:
        return False
    fields = anew is None or (
        isinstance(anew, dict) and isinstance(anew.get("field"), str)
        and anew.keys() == {"field", "model"} and isinstance(anew["model"], str | None)
    )  # fmt: skip
    return right and fields and isinstance(switched, str | None)


def _record(point_id: PointId) -> bytes:
    kind, number = place(point_id)
    return _RECORD.pack(kind, number >> 64, number & _LOW)
