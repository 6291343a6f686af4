"""Signals: no thread but the main one may get them, whichever library has started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import sys
from pathlib import Path
from ops.cli import main
sys.argv = ["comemory", "--version"]
try:
    main()
except SystemExit:
    pass
for task in Path("/proc/self/task").iterdir():
    status = dict(line.split(":\\t", 1) for line in (task / "status").read_text().splitlines() if ":\\t" in line)
    print(task.name == str(__import__("os").getpid()), int(status["SigBlk"], 16))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the threads' masks are read from /proc, which only Linux has")
def test_threads_of_libraries_never_get_an_ending_signal() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    said = subprocess.run(
        [sys.executable, "-c", ASK], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    ).stdout
    threads = [line.split() for line in said.splitlines() if line.startswith(("True", "False"))]
    ending = (1 << (signal.SIGTERM - 1)) | (1 << (signal.SIGINT - 1))
    assert [int(mask) & ending for main, mask in threads if main == "True"] == [0]
    assert all(int(mask) & ending == ending for main, mask in threads if main == "False")
    assert len(threads) > 1, "numpy has no thread of its own here; this test proves nothing"
