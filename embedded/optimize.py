"""Merging segments, dropping deleted points and building HNSW graphs, as a server does in the background.

The engine holds the interpreter lock for as long as that takes, which would stop every request. So it is done on a
copy of the shard, in a process of its own, while the shard serves on; writes meanwhile are remembered, applied to
the copy, and the copy takes the shard's place. Until it has, the shard in place is the one that counts.
"""

from __future__ import annotations

import ctypes
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import orjson
import qdrant_edge as engine

from embedded import settings
from embedded.files import sync_folder

SHARD = "shard"
_COPIES = "shard-copy-"
_REPLACED = "shard-replaced"
_DONE = "shard-done"
_ROOT = Path(__file__).resolve().parent.parent
_PR_SET_PDEATHSIG = 1


def recover(folder: Path) -> None:
    """Undo a replacement that a crash cut short: what was in place has every acknowledged write."""
    if (folder / _REPLACED).exists():
        shutil.rmtree(folder / SHARD, ignore_errors=True)
        (folder / _REPLACED).rename(folder / SHARD)
        sync_folder(folder)
    for left in (*folder.glob(f"{_COPIES}*"), folder / _DONE):
        shutil.rmtree(left, ignore_errors=True)


class Copy:
    """A copy of a collection's shard on its way to replace it."""

    def __init__(self, folder: Path) -> None:
        """Copy the flushed shard; the caller keeps writers out."""
        self._folder = folder
        self._path = folder / f"{_COPIES}{uuid.uuid4().hex}"
        self._worker: subprocess.Popen[bytes] | None = None
        self._stopped = False
        shutil.copytree(folder / SHARD, self._path)

    def optimize(self, config: dict[str, Any]) -> bool:
        """Optimize it with the collection's settings, in another process; whether it is better than before."""
        command = [sys.executable, "-m", "embedded.optimize", str(self._path)]
        with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
            self._worker = worker
            if self._stopped:
                worker.kill()
            answer, _ = worker.communicate(orjson.dumps(config))
        if worker.returncode and not self._stopped:
            raise RuntimeError(
                f"the optimizing process ended with {worker.returncode}; its own words are in the log"
            )
        return answer.strip() == b"changed"

    def stop(self) -> None:
        """Give up: the process ends at once."""
        self._stopped = True
        if self._worker is not None:
            self._worker.kill()

    def discard(self) -> None:
        """Remove it, unless it is in place."""
        shutil.rmtree(self._path, ignore_errors=True)

    def put_in_place(self, missed: list[engine.UpdateOperation]) -> engine.EdgeShard:
        """Load it in the place of the (closed) shard and apply what it missed; the shard that serves now."""
        folder = self._folder
        (folder / SHARD).rename(folder / _REPLACED)
        try:
            self._path.rename(folder / SHARD)
            sync_folder(folder)
            shard = engine.EdgeShard.load(str(folder / SHARD))
            for operation in missed:
                try:
                    shard.update(operation)
                except Exception:  # noqa: S112 (it was refused the first time as well, and counted)
                    continue
            shard.flush()
        except BaseException:
            recover(folder)  # else the next write would go to a copy that the next start throws away
            raise
        (folder / _REPLACED).rename(folder / _DONE)
        sync_folder(folder)
        shutil.rmtree(folder / _DONE, ignore_errors=True)
        return shard


def _end_with_parent() -> None:
    """Where the system can (Linux), end this process when the endpoint ends, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    """Optimize the shard named on the command line with the settings on the standard input."""
    _end_with_parent()
    config = orjson.loads(sys.stdin.buffer.read())
    shard = engine.EdgeShard.load(sys.argv[1], settings.edge_config(config))
    changed = shard.optimize()
    shard.flush()
    shard.close()
    sys.stdout.write("changed\n" if changed else "unchanged\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
