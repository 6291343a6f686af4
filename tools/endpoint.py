"""The laptop endpoint in the background: started, found again, stopped; its data lies under `.local/`."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tools.errors import StepError

START_SECONDS = 60.0
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Running:
    """An endpoint of this checkout that runs."""

    url: str
    pid: int


class LocalEndpoint:
    """The endpoint whose data, log and process number lie in one folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self.data = folder / "data"
        self.log = folder / "endpoint.log"
        self._pid = folder / "endpoint.pid"
        self._ready = folder / "endpoint.url"

    def running(self) -> Running | None:
        """The endpoint if it runs, whoever started it in this checkout."""
        # The endpoint writes its own number into its folder: a start that was cut short left no other trace.
        for file in (self._pid, self.data / "lock"):
            try:
                pid, url = int(file.read_text()), self._ready.read_text().strip()
            except (OSError, ValueError):
                continue
            if url and self._is_ours(pid):
                return Running(url, pid)
        return None

    def start(self, port: int, *, port_given: bool) -> tuple[Running, bool]:
        """Start it, or find it running; the second value tells whether it was started now.

        Raises StepError, saying what to do, when the port is taken or the endpoint does not come up.
        """
        running = self.running()
        if running:
            if port_given and urlsplit(running.url).port != port:
                raise StepError(
                    f"the endpoint of this checkout runs already at {running.url}; run `make stop` to move it "
                    f"to port {port}, or leave COMEMORY_PORT away"
                )
            return running, False
        _require_free(port)
        self.data.mkdir(parents=True, exist_ok=True)
        self._ready.unlink(missing_ok=True)
        # Keys in this shell are meant for a server that QDRANT_URL names; the endpoint on loopback asks for none.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("QDRANT_")}
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "embedded", "--path", self.data, "--port", str(port),
                 "--ready-file", self._ready],
                cwd=self._root, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._pid.write_text(str(process.pid))
        deadline = time.monotonic() + START_SECONDS
        while not self._ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                self._pid.unlink(missing_ok=True)
                last = self.log.read_text(errors="replace").strip().splitlines()[-3:]
                raise StepError(f"the endpoint did not start; the end of {self.log} says: {' '.join(last)}")
            time.sleep(0.05)
        return Running(self._ready.read_text().strip(), process.pid), True

    def stop(self) -> Running | None:
        """Stop it; None when it did not run. Every acknowledged write stays on disk."""
        running = self.running()
        if running:
            os.kill(running.pid, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while self._is_ours(running.pid):
                if time.monotonic() > deadline:
                    raise StepError(f"the endpoint (process {running.pid}) does not end; see {self.log}")
                time.sleep(0.05)
        self._pid.unlink(missing_ok=True)
        self._ready.unlink(missing_ok=True)
        return running

    def _is_ours(self, pid: int) -> bool:
        """Tell whether a process number still belongs to this endpoint: numbers are used again after a restart."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # a child of this process that has ended is only gone once it is asked for
        if proc := _proc_command(pid):
            return "embedded" in proc and str(self.data) in proc
        return False


def _proc_command(pid: int) -> list[str]:
    file = Path(f"/proc/{pid}/cmdline")
    if file.parent.parent.joinpath("self").exists():
        with contextlib.suppress(OSError):
            return file.read_bytes().decode(errors="replace").split("\0")
        return []
    ps = shutil.which("ps") or "/bin/ps"
    answer = subprocess.run([ps, "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)
    return answer.stdout.split()


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.settimeout(2)
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            return
    other = f"COMEMORY_PORT={port + 10} make up"
    version = _qdrant_version(port)
    if version:
        raise StepError(
            f"port {port} is taken by a Qdrant {version} that this checkout did not start. To use that one: "
            f"QDRANT_URL=http://127.0.0.1:{port} make up. To have one beside it: {other}"
        )
    raise StepError(f"port {port} is taken by another program. Choose another port: {other}")


def _qdrant_version(port: int) -> str | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/")
        answer = json.loads(connection.getresponse().read(65536))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    if not isinstance(answer, dict) or "qdrant" not in str(answer.get("title")):
        return None
    return str(answer.get("version"))
