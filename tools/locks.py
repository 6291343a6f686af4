"""The locks that Pulumi leaves in a folder of state when it is killed; it does not take them away by itself."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path


def forget_dead(state: Path) -> int:
    """Remove the locks of processes of this machine that are gone; how many there were.

    What another machine, or a process that still runs, has locked stays locked.
    """
    removed = 0
    for lock in (state / ".pulumi" / "locks").rglob("*.json"):
        try:
            held = json.loads(lock.read_text())
            dead = held["hostname"] == socket.gethostname() and not _runs(int(held["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if dead:
            lock.unlink(missing_ok=True)
            lock.with_name(f"{lock.name}.attrs").unlink(missing_ok=True)
            removed += 1
    return removed


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
