"""The record of erasures: one JSON line when one begins and one when it ends, only ever appended.

Each line holds the SHA-256 of the one before, so that a line which was changed or taken out shows. Lines cut off
at the end do not: who needs that keeps the digest of the last line elsewhere. No line holds a payload or a key.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ops.errors import OpsError, SettingsError

FORMAT = 1
BEGUN, ENDED = "begun", "ended"


class ErasureLog:
    """The file; it is made, for its owner's eyes only, when it is missing.

    Raises:
        SettingsError: it cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(self._open())
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise SettingsError(
                f"tenant.log_file: cannot write {self.path}: {error.strerror}. Nothing is erased without a record."
            ) from None

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write a line, and return when it is on the disk.

        Raises:
            OpsError: it could not be written.
        """
        try:
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                written = _read(file)
                # A line that a crash cut short stays as it is, as a line of its own.
                cut = b"\n" if written and not written.endswith(b"\n") else b""
                last = written.splitlines()[-1] if written else None
                value = {"format": FORMAT, **entry, "previous": None if last is None else _digest(last)}
                line = cut + orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
                if os.write(file, line) != len(line):
                    raise OSError(0, "the disk is full")
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise OpsError(f"tenant.log_file: cannot write {self.path}: {error.strerror}.") from None


def who() -> dict[str, str]:
    """The user and the host that a run is on."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        user = str(os.getuid())
    return {"user": user, "host": socket.gethostname()}


@dataclass(slots=True)
class Verified:
    """What a look through the file found: `faults` name the lines that are not as they were written."""

    entries: int = 0
    last: str | None = None
    faults: list[str] = field(default_factory=list)
    unended: list[str] = field(default_factory=list)
    """Erasures that began and of whose end there is no line: under way, or killed."""


def verify(path: Path) -> Verified:
    """Go through the chain.

    Raises:
        OpsError: the file cannot be read.
    """
    path = path.expanduser()
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise OpsError(f"tenant.log_file: cannot read {path}: {error.strerror}.") from None
    found = Verified(len(lines))
    open_runs: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        try:
            entry = orjson.loads(line)
            run, event, previous = str(entry["run"]), entry["event"], entry["previous"]
        except (ValueError, KeyError, TypeError):
            found.faults.append(f"line {number} is no entry; a crash may have cut it short")
        else:
            if previous != found.last:
                found.faults.append(f"line {number} does not follow what stands before it")
            if event == BEGUN:
                open_runs[run] = f"line {number}: {entry.get('tenant')!r} begun at {entry.get('time')}"
            else:
                open_runs.pop(run, None)
        found.last = _digest(line)
    found.unended = list(open_runs.values())
    return found


def _read(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(os.dup(file), "rb") as stream:
        return stream.read()


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
