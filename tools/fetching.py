"""What every tool that is fetched or built has in common: where it is kept, who may write there, how it is told.

A tool lives under `${XDG_CACHE_HOME:-~/.cache}/comemory/<tool>/<version>/`. It is made in a folder beside that one
and moved there in one step, by one run at a time, so that what is there is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPResponse
from pathlib import Path

CONNECT_SECONDS = 5.0
PROGRESS_SECONDS = 15.0

Say = Callable[[str], None]


class ToolError(Exception):
    """One way to a tool, or all of them, did not work; the text says why and what to do."""


def say_to_stderr(text: str) -> None:
    """Print one line of progress at once."""
    print(f"    {text}", file=sys.stderr, flush=True)


def cache_folder(tool: str) -> Path:
    """Where the versions of a tool are kept for every checkout of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "comemory" / tool


@contextlib.contextmanager
def lock(folder: Path, tool: str, say: Say) -> Iterator[None]:
    """Hold the lock of a tool's folder; the kernel lets it go when the process dies, however it dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / ".lock").open("w")
    except OSError as error:
        raise ToolError(
            f"the cache folder {folder} cannot be used ({error.strerror}); set XDG_CACHE_HOME"
        ) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is getting {tool}; waiting for it")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def workshop(cache: Path) -> Iterator[Path]:
    """A folder beside the final one to work in; what an interrupted run left there is removed first."""
    for left in cache.glob("unfinished-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="unfinished-", dir=cache))
    folder.chmod(0o755)
    try:
        (folder / "bin").mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move_into_place(folder: Path, final: Path) -> None:
    """Give a finished folder its final name in one step."""
    if final.exists():
        shutil.rmtree(final)
    folder.rename(final)


def go_command() -> str:
    """The `go` on PATH."""
    go = shutil.which("go")
    if go is None:
        raise ToolError("there is no `go` on PATH; install Go 1.26 or newer from https://go.dev/dl/")
    return go


def run_go(arguments: Sequence[str], folder: Path, say: Say, *, what: str) -> list[str]:
    """Run one go command, give its lines; each counts as progress, the last are the reason of a failure."""
    started = time.monotonic()
    lines: list[str] = []
    environment = {**os.environ, "GOWORK": "off"}
    process = subprocess.Popen(
        [go_command(), *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    assert process.stdout is not None  # noqa: S101 - PIPE was asked for
    reader = threading.Thread(target=lines.extend, args=(iter(process.stdout.readline, ""),), daemon=True)
    reader.start()
    try:
        while True:
            try:
                code = process.wait(timeout=PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                minutes, seconds = divmod(int(time.monotonic() - started), 60)
                count = f", {len(lines)} packages done" if arguments[0] == "build" else ""
                say(f"{what}: {minutes} min {seconds:02d} s{count}")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    reader.join(timeout=10)
    if code != 0:
        reason = " ".join(line.strip() for line in lines[-5:]) or f"exit code {code}"
        raise ToolError(f"`go {arguments[0]}` failed: {reason}")
    return lines


def open_url(url: str) -> HTTPResponse:
    """Open a file of a release."""
    try:
        answer: HTTPResponse = urllib.request.urlopen(url, timeout=CONNECT_SECONDS)
    except urllib.error.HTTPError as error:
        raise ToolError(f"{url} cannot be fetched (HTTP {error.code})") from error
    except OSError as error:
        raise ToolError(f"{url} cannot be fetched ({getattr(error, 'reason', None) or error})") from error
    return answer


def download(url: str, checksums: str, target: Path, say: Say) -> None:
    """Fetch a file of a release, unless its SHA-256 is not the one in the release's list of checksums.

    The list has lines of a sum and a name, or is one sum alone.
    """
    name = url.rsplit("/", 1)[1]
    say(f"trying the release: {url}")
    with open_url(checksums) as stream:
        lines = [line.split() for line in stream.read().decode(errors="replace").splitlines()]
    sums = {line[1].lstrip("*") if len(line) == 2 else name: line[0] for line in lines if len(line) in (1, 2)}
    if name not in sums:
        raise ToolError(f"the release's list of checksums does not name {name}")
    digest = hashlib.sha256()
    with open_url(url) as stream, target.open("wb") as out:
        total = int(stream.headers.get("Content-Length") or 0)
        got, told = 0, time.monotonic()
        while chunk := _read(stream):
            digest.update(chunk)
            out.write(chunk)
            got += len(chunk)
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                say(f"downloaded {got >> 20} of {total >> 20 or '?'} MiB")
    if digest.hexdigest() != sums[name].lower():
        raise ToolError(f"{name} has SHA-256 {digest.hexdigest()}, the release says {sums[name]}; it was not used")


def unpack(archive: Path, folder: str, target: Path) -> None:
    """Take the plain files directly under the archive's `folder`, and nothing else."""
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = Path(member.name).parts
            source = tar.extractfile(member) if member.isfile() and len(parts) == 2 and parts[0] == folder else None
            if source:
                file = target / parts[1]
                with source, file.open("wb") as out:
                    shutil.copyfileobj(source, out)
                file.chmod(0o755)


def _read(stream: HTTPResponse) -> bytes:
    try:
        return stream.read(1 << 20)
    except OSError as error:
        raise ToolError(f"the download broke off ({error})") from error
