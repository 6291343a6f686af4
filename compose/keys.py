"""Makes the keys of compose.yaml where they are missing, each for the one user who may read it; `show` prints them.

They are in a volume, in no environment and in no command line. Only the standard library is used.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("KEYS_FOLDER", "/keys"))
ROOT, QDRANT, DAEMON, PROMETHEUS, GRAFANA = 0, 1000, 10001, 65534, 472
"""The users of the images."""

OWNERS = {"api-key": DAEMON, "read-only-key": PROMETHEUS, "grafana-password": GRAFANA}


def make() -> None:
    """Make what is missing. Keys that are there stay, so that a second start changes nothing."""
    for name, owner in OWNERS.items():
        if not (FOLDER / name).exists():
            _write(name, secrets.token_urlsafe(32), owner)
    api_key, read_only = ((FOLDER / name).read_text() for name in ("api-key", "read-only-key"))
    _write("qdrant.yaml", f"service:\n  api_key: {api_key}\n  read_only_api_key: {read_only}\n", QDRANT)


def show() -> None:
    """Print the keys, for who may start containers."""
    for name in OWNERS:
        sys.stdout.write(f"{name}: {(FOLDER / name).read_text()}\n")


def _write(name: str, content: str, owner: int) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    unfinished = FOLDER / f".{name}"
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w") as stream:
        stream.write(content)
    if os.geteuid() == ROOT:
        os.chown(unfinished, owner, owner)
    unfinished.replace(FOLDER / name)


if __name__ == "__main__":
    {"make": make, "show": show}[sys.argv[1] if len(sys.argv) > 1 else "make"]()
