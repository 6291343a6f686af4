"""Files that are there whole or not at all, also after a power cut, and the lock on the folder."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import orjson


class FolderError(Exception):
    """The folder cannot be used; the message says why and what to do."""


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Replace a file by the JSON of `value` in one step."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as stream:
        stream.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def read_json(path: Path) -> Any:
    """The JSON in a file."""
    return orjson.loads(path.read_bytes())


def free_bytes(folder: Path) -> int:
    """How much room the file system of a folder has for this process."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def size_of(folder: Path) -> int:
    """How much room the files in a folder take; those with holes less than their length."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))


_MARKER = "embedded-endpoint.json"
_FORMAT = {"format": 1, "written_by": "Co-Memory Ops, embedded Qdrant endpoint"}


class FolderLock:
    """Exclusive use of a data folder by this process, until the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        marker = folder / _MARKER
        if folder.exists() and not folder.is_dir():
            raise FolderError(f"{folder} is not a folder: name another with --path")
        if folder.is_dir() and not marker.exists() and any(p.name != "lock" for p in folder.iterdir()):
            raise FolderError(
                f"{folder} holds files and no {_MARKER}: it was not made by this program and is left alone. "
                "Name a new or an empty folder with --path"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._stream = (folder / "lock").open("a+")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._stream.seek(0)
            owner = self._stream.read().strip() or "unknown"
            self._stream.close()
            raise FolderError(
                f"{folder} is in use by another endpoint (process {owner}): "
                "stop it, or name another folder with --path"
            ) from error
        self._stream.truncate(0)
        self._stream.write(str(os.getpid()))
        self._stream.flush()
        if marker.exists():
            found = read_json(marker).get("format")
            if found != _FORMAT["format"]:
                self.release()
                raise FolderError(f"{folder} has format {found}; this version reads format {_FORMAT['format']}")
        else:
            write_json(marker, _FORMAT)

    def release(self) -> None:
        """Give the folder free."""
        self._stream.close()


class Counter:
    """A number in a mapped file: it outlives the process without a system call for each step."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(struct.pack("<Q", 0))
        with path.open("r+b") as stream:
            self._map = mmap.mmap(stream.fileno(), 8)
        self._value: int = struct.unpack("<Q", self._map[:8])[0]

    @property
    def value(self) -> int:
        """The number as it stands."""
        return self._value

    def next(self) -> int:
        """The number as it stands, which is then one more."""
        value = self._value
        self._value = value + 1
        self._map[:8] = struct.pack("<Q", self._value)
        return value

    def close(self) -> None:
        """Unmap the file."""
        self._map.close()
