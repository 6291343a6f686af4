"""A lock of a run that was killed is taken away; a lock that may be held is not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.locks import forget_dead

HERE = socket.gethostname()


def locked(state: Path, content: Any) -> Path:
    folder = state / ".pulumi" / "locks" / "organization" / "comemory" / "local"
    folder.mkdir(parents=True)
    lock = folder / "a.json"
    lock.write_text(content if isinstance(content, str) else json.dumps(content))
    lock.with_name("a.json.attrs").write_text("{}")
    return lock


def test_the_lock_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    lock = locked(tmp_path, {"pid": process.pid, "hostname": HERE})
    assert forget_dead(tmp_path) == 1
    assert list(lock.parent.iterdir()) == []
    assert forget_dead(tmp_path) == 0


@pytest.mark.parametrize(
    "content",
    [
        {"pid": os.getpid(), "hostname": HERE},
        {"pid": 1, "hostname": HERE},
        {"pid": 999_999_999, "hostname": f"not-{HERE}"},
        {"pid": 999_999_999},
        {"pid": "x", "hostname": HERE},
        "",
        "[]",
    ],
)
def test_a_lock_that_may_be_held_stays(tmp_path: Path, content: Any) -> None:
    lock = locked(tmp_path, content)
    assert forget_dead(tmp_path) == 0
    assert lock.exists()


def test_a_state_without_locks_has_none(tmp_path: Path) -> None:
    assert forget_dead(tmp_path / "nothing") == 0
