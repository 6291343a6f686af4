"""How far a migration has come, in files that a kill at any moment leaves usable.

`checkpoint.json` is replaced whole, after the points it speaks of are stored. `quarantine.jsonl` is only appended
to; the checkpoint says how long it was, and what stands behind that is cut off when a run goes on, to be written
again. Neither holds a key; both can hold content, so only their owner may read them. One run at a time has them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson
from pydantic import TypeAdapter, ValidationError

from ops.errors import OpsError, SettingsError
from ops.json_file import replace_json

PLAN, CHECKPOINT, QUARANTINE = "plan.json", "checkpoint.json", "quarantine.jsonl"
FORMAT = 1


@dataclass(slots=True)
class Progress:
    """One collection: the id that the next page begins with, and what became of the points before it."""

    next_id: int | str | None = None
    done: bool = False
    read: int = 0
    mapped: int = 0
    left_out: int = 0
    rules: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)


_COLLECTIONS = TypeAdapter(dict[str, Progress])
_IN_A_PLAN = {"collection", "points", "shapes", "read_as", "mapped", "left_out", "rules", "refused", "blocked"}


class State:
    """The folder of one migration.

    Args:
        folder: made when it is missing.
        digest: what the migration is; files of another one are refused.
    """

    def __init__(self, folder: Path, digest: str) -> None:
        self.folder, self.digest = folder, digest
        self.collections: dict[str, Progress] = {}
        self.replacing = False
        self._quarantine: IO[bytes] | None = None
        self._broken: OpsError | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"--state: cannot make the folder {folder}: {error.strerror}.") from None

    # --- the plan ----------------------------------------------------------------------------------------------

    def plan(self) -> dict[str, Any] | None:
        """The plan that was made for this migration, or None."""
        found = self._read(PLAN)
        if found is None or found.get("digest") != self.digest:
            return None
        parts = found.get("collections")
        if not isinstance(parts, list) or not all(
            isinstance(one, dict) and one.keys() >= _IN_A_PLAN for one in parts
        ):
            raise OpsError(f"{self.folder / PLAN} is damaged; `comemory migrate plan` makes it anew.")
        return found

    def keep_plan(self, plan: Mapping[str, Any]) -> None:
        """Write the plan."""
        with self._writing(PLAN):
            replace_json(self.folder / PLAN, {**plan, "format": FORMAT, "digest": self.digest})

    # --- the copy ----------------------------------------------------------------------------------------------

    def resume(self, *, replacing: bool = False) -> bool:
        """Take up the checkpoint; false where there is none, or the last run was done, and all begins anew.

        Args:
            replacing: whether the run writes over points that are there; one that did not cannot be gone on with.

        Raises:
            SettingsError: it belongs to other rules or another target, or another run has the folder.
        """
        self.replacing = replacing
        self._lock()
        try:
            return self._take_up(replacing)
        except OpsError:
            self.close()
            raise

    def _take_up(self, replacing: bool) -> bool:
        found = self._read(CHECKPOINT)
        if found is None or found.get("done"):
            self._cut(0)
            return False
        if found.get("digest") != self.digest or bool(found.get("replacing")) != replacing:
            which = "other rules or another target" if found.get("digest") != self.digest else "another --replace"
            raise SettingsError(
                f"{self.folder / CHECKPOINT} is of a migration with {which}, which has not "
                "ended. Run that one again, name another --state, or remove the file to begin anew."
            )
        try:
            self.collections = _COLLECTIONS.validate_python(found.get("collections"))
            kept = TypeAdapter(int).validate_python(found.get("quarantine_bytes"))
        except ValidationError:
            raise OpsError(f"{self.folder / CHECKPOINT} is damaged; remove it to begin anew.") from None
        self._cut(kept)
        return True

    def _lock(self) -> None:
        path = self.folder / QUARANTINE
        with self._writing(QUARANTINE):
            opened = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.fchmod(opened.fileno(), 0o600)
            except BlockingIOError:
                opened.close()
                raise SettingsError(
                    f"--state: another run is at work in {self.folder}; wait for it, or name another folder."
                ) from None
        self._quarantine = opened

    def _cut(self, length: int) -> None:
        file, path = self._file(), self.folder / QUARANTINE
        if file.seek(0, os.SEEK_END) < length:
            raise SettingsError(f"{path} is shorter than the checkpoint says; remove {self.folder / CHECKPOINT}.")
        with self._writing(QUARANTINE):
            file.truncate(length)
            file.seek(length)

    def quarantine(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append points that have no place, with their reasons."""
        file = self._file()
        with self._writing(QUARANTINE):
            for line in lines:
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def save(self, *, done: bool = False) -> None:
        """Write the checkpoint; all that it speaks of is stored already."""
        file = self._file()
        with self._writing(QUARANTINE):
            file.flush()
            os.fsync(file.fileno())
        with self._writing(CHECKPOINT):
            replace_json(
                self.folder / CHECKPOINT,
                {
                    "format": FORMAT,
                    "digest": self.digest,
                    "done": done,
                    "replacing": self.replacing,
                    "quarantine_bytes": file.tell(),
                    "collections": {name: asdict(progress) for name, progress in self.collections.items()},
                },
            )

    def close(self) -> None:
        """Close the quarantine file; what did not get into it is written by the next run."""
        if self._quarantine is not None:
            try:
                self._quarantine.close()
            except OSError:
                if self._broken is None:
                    raise

    # --- files -------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        try:
            found = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OpsError(f"Cannot read {path}: {error.strerror}.") from None
        except orjson.JSONDecodeError:
            raise OpsError(f"{path} is no JSON; remove it to begin anew.") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise OpsError(f"{path} is of another version of this program; remove it to begin anew.")
        return found

    def _file(self) -> IO[bytes]:
        if self._quarantine is None:
            raise RuntimeError("resume() comes first")
        return self._quarantine

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Say which file could not be written. After that none is: what is half in it would get into the next."""
        if self._broken is not None:
            raise self._broken
        try:
            yield
        except OSError as error:
            self._broken = SettingsError(
                f"--state: cannot write {self.folder / name}: {error.strerror}. What was kept before "
                "holds; run it again when that is mended."
            )
            raise self._broken from None
