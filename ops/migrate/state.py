"""How far a migration has come, in files that a kill at any moment leaves usable.

`checkpoint.json` is replaced whole, after the points it speaks of are stored. `quarantine.jsonl` is only appended
to; the checkpoint says how long it was, and what stands behind that is cut off when a run goes on, to be written
again. Neither holds a key; both can hold content, so only their owner may read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from ops.errors import OpsError, SettingsError

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


class State:
    """The folder of one migration.

    Args:
        folder: made when it is missing.
        digest: what the migration is; files of another one are refused.
    """

    def __init__(self, folder: Path, digest: str) -> None:
        self.folder, self.digest = folder, digest
        self.collections: dict[str, Progress] = {}
        self._quarantine: IO[bytes] | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"--state: cannot make the folder {folder}: {error.strerror}.") from None

    # --- the plan ----------------------------------------------------------------------------------------------

    def plan(self) -> dict[str, Any] | None:
        """The plan that was made for this migration, or None."""
        found = self._read(PLAN)
        return found if found is not None and found.get("digest") == self.digest else None

    def keep_plan(self, plan: Mapping[str, Any]) -> None:
        """Write the plan."""
        self._replace(PLAN, {**plan, "format": FORMAT, "digest": self.digest})

    # --- the copy ----------------------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Take up the checkpoint; false where there is none, or the last run was done, and all begins anew.

        Raises:
            SettingsError: it belongs to other rules or another target.
        """
        found = self._read(CHECKPOINT)
        if found is not None and found.get("digest") != self.digest and not found.get("done"):
            raise SettingsError(
                f"{self.folder / CHECKPOINT} is of a migration with other rules or another target, which has not "
                "ended. Run that one again, name another --state, or remove the file to begin anew."
            )
        goes_on = found is not None and not found.get("done")
        kept = 0
        if found is not None and goes_on:
            self.collections = {name: Progress(**values) for name, values in found["collections"].items()}
            kept = int(found["quarantine_bytes"])
        self._open(kept)
        return goes_on

    def _open(self, length: int) -> None:
        path = self.folder / QUARANTINE
        path.touch(mode=0o600)
        self._quarantine = path.open("r+b")
        if self._quarantine.seek(0, os.SEEK_END) < length:
            raise SettingsError(f"{path} is shorter than the checkpoint says; remove {self.folder / CHECKPOINT}.")
        self._quarantine.truncate(length)
        self._quarantine.seek(length)

    def quarantine(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append points that have no place, with their reasons."""
        if self._quarantine is None:
            raise RuntimeError("resume() comes first")
        for line in lines:
            self._quarantine.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def save(self, *, done: bool = False) -> None:
        """Write the checkpoint; all that it speaks of is stored already."""
        if self._quarantine is None:
            raise RuntimeError("resume() comes first")
        self._quarantine.flush()
        os.fsync(self._quarantine.fileno())
        self._replace(
            CHECKPOINT,
            {
                "format": FORMAT,
                "digest": self.digest,
                "done": done,
                "quarantine_bytes": self._quarantine.tell(),
                "collections": {name: asdict(progress) for name, progress in self.collections.items()},
            },
        )

    def close(self) -> None:
        """Close the quarantine file."""
        if self._quarantine is not None:
            self._quarantine.close()

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

    def _replace(self, name: str, value: Mapping[str, Any]) -> None:
        path, partial = self.folder / name, self.folder / f"{name}.partial"
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
