"""The Pulumi CLI: found, downloaded or built, and kept by version under the user's cache directory.

Ways, in this order; the first that works is taken and named:

1. `pulumi` on PATH, when its version suits (`MINIMUM` or newer of the same major version);
2. the cache, `${XDG_CACHE_HOME:-~/.cache}/comemory/pulumi/<version>/bin/pulumi`;
3. Pulumi's own release archive from get.pulumi.com, checked against the release's SHA-256 list;
4. a build from the Go module, pinned with all its dependencies in `tools/pulumi-cli/go.mod` and `go.sum`.

The archive also holds the language plugin `pulumi-language-python`; a build does not, because that plugin is in no
Go module. `language_plugin` says which it is; without it the program runs inline through the Automation API.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from pathlib import Path

VERSION = "3.274.1"
MINIMUM = (3, 272, 0)  # that of the pinned SDK
MODULE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
MODULE_FOLDER = Path(__file__).resolve().parent / "pulumi-cli"
RELEASES = "https://get.pulumi.com/releases/sdk"
CONNECT_SECONDS = 5.0
PROGRESS_SECONDS = 15.0

Say = Callable[[str], None]


class CliError(Exception):
    """One way to the CLI, or all of them, did not work; the text says why and what to do."""


def say_to_stderr(text: str) -> None:
    """Print one line of progress at once."""
    print(f"    {text}", file=sys.stderr, flush=True)


def cache_folder() -> Path:
    """Where versions of the CLI are kept for every checkout of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "comemory" / "pulumi"


def version_of(binary: Path) -> str | None:
    """Ask a CLI for its version ("3.274.1"); None when it does not run or does not know."""
    try:
        answer = subprocess.run(
            [binary, "version"],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.fullmatch(r"v?(\d+\.\d+\.\d+)\S*", answer.stdout.strip())
    return match.group(1) if match and answer.returncode == 0 else None


def suits(version: str | None) -> bool:
    """Tell whether a version is of the SDK's major version and no older than the SDK."""
    if version is None:
        return False
    parts = tuple(int(part) for part in version.split("."))
    return parts[0] == MINIMUM[0] and parts >= MINIMUM


def find(say: Say | None = None) -> Path | None:
    """The CLI on PATH or in the cache, without fetching anything; None when neither holds one that suits."""
    on_path = shutil.which("pulumi")
    if on_path:
        version = version_of(Path(on_path))
        if suits(version):
            return Path(on_path)
        if say:
            wanted = ".".join(map(str, MINIMUM))
            say(f"{on_path} is version {version or 'unknown'}; {wanted} or newer is needed, so it is passed over")
    cached = _cached()
    return cached if version_of(cached) == VERSION else None


def language_plugin(cli: Path) -> Path | None:
    """The executable that runs Python programs for the ordinary `pulumi up`; None where only the CLI is there."""
    beside = cli.resolve().parent / "pulumi-language-python"
    if os.access(beside, os.X_OK):
        return beside
    on_path = shutil.which("pulumi-language-python")
    return Path(on_path) if on_path else None


def ensure(say: Say = say_to_stderr) -> Path:
    """Find the CLI or get it: the release archive first, then a build.

    Two runs at once do not fetch twice: the second waits for the first. Nothing is taken for whole before it has
    run and named its version. Raises CliError with the reason of every way that failed.
    """
    found = find(say)
    if found:
        return found
    say(f"Pulumi CLI {VERSION} is not on this machine yet")
    with _lock(say):
        cached = _cached()
        if version_of(cached) == VERSION:
            return cached
        failures: list[str] = []
        for name, way in (("release archive", download), ("build from the Go module", build)):
            try:
                with _workshop() as folder:
                    way(folder, say)
                    got = _install(folder)
            except CliError as error:
                failures.append(f"{name}: {error}")
                say(failures[-1])
            else:
                say(f"took the {name}: {got}")
                return got
    raise CliError(
        f"The Pulumi CLI is missing and could not be had. {' | '.join(failures)}\n"
        f"What to do: install Pulumi (https://www.pulumi.com/docs/install/) or Go 1.26 (https://go.dev/dl/), "
        "and run the same command again."
    )


def download(folder: Path, say: Say) -> None:
    """Put Pulumi's release of VERSION into `folder`/bin, after its SHA-256 agreed with the release's list."""
    name = f"pulumi-v{VERSION}-{_platform()}.tar.gz"
    say(f"trying Pulumi's own release: {RELEASES}/{name}")
    with _open(f"{RELEASES}/pulumi-{VERSION}-checksums.txt") as stream:
        pairs = [line.split() for line in stream.read().decode().splitlines()]
    expected = {pair[1].lstrip("*"): pair[0] for pair in pairs if len(pair) == 2}.get(name)
    if expected is None:
        raise CliError(f"the release's list of checksums does not name {name}")
    archive = folder / name
    digest = hashlib.sha256()
    with _open(f"{RELEASES}/{name}") as stream, archive.open("wb") as out:
        total = int(stream.headers.get("Content-Length") or 0)
        got, told = 0, time.monotonic()
        while chunk := _read(stream):
            digest.update(chunk)
            out.write(chunk)
            got += len(chunk)
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                say(f"downloaded {got >> 20} of {total >> 20 or '?'} MiB")
    if digest.hexdigest() != expected.lower():
        raise CliError(f"{name} has SHA-256 {digest.hexdigest()}, the release says {expected}; it was not used")
    _unpack(archive, folder / "bin")
    archive.unlink()


def build(folder: Path, say: Say) -> None:
    """Build the CLI from its Go module into `folder`/bin, telling time and packages as it goes."""
    go = shutil.which("go")
    if go is None:
        raise CliError("there is no `go` on PATH; install Go 1.26 or newer from https://go.dev/dl/")
    say(f"building {MODULE} v{VERSION}: 5 to 10 minutes on two cores the first time, about 120 MB when done")
    module = folder / "module"
    shutil.copytree(MODULE_FOLDER, module)
    say("fetching the modules it is made of")
    _go([go, "mod", "download"], module, say, what="fetching modules")
    target = folder / "bin" / "pulumi"
    flags = f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{VERSION}"
    _go([go, "build", "-v", "-mod=readonly", "-buildvcs=false", "-ldflags", flags, "-o", str(target), MODULE],
        module, say, what="compiling")  # fmt: skip
    shutil.rmtree(module)


def _go(command: list[str], folder: Path, say: Say, *, what: str) -> None:
    """Run one go command; every line it writes counts as progress, the last lines are the reason when it fails."""
    started = time.monotonic()
    lines: list[str] = []
    environment = {**os.environ, "GOWORK": "off"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
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
                count = f", {len(lines)} packages done" if what == "compiling" else ""
                say(f"{what}: {minutes} min {seconds:02d} s{count}")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    reader.join(timeout=10)
    if code != 0:
        reason = " ".join(line.strip() for line in lines[-5:]) or f"exit code {code}"
        raise CliError(f"`go {command[1]}` failed: {reason}")


def _cached() -> Path:
    return cache_folder() / VERSION / "bin" / "pulumi"


@contextlib.contextmanager
def _lock(say: Say) -> Iterator[None]:
    """Hold the cache's lock; the kernel lets it go when the process dies, however it dies."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / ".lock").open("w")
    except OSError as error:
        raise CliError(
            f"the cache folder {folder} cannot be used ({error.strerror}); set XDG_CACHE_HOME"
        ) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is getting the Pulumi CLI; waiting for it")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _workshop() -> Iterator[Path]:
    """A folder beside the final one to work in; what an interrupted run left there is removed first."""
    for left in cache_folder().glob("unfinished-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="unfinished-", dir=cache_folder()))
    folder.chmod(0o755)
    try:
        (folder / "bin").mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _install(folder: Path) -> Path:
    """Move a finished folder to its final name in one step, once its CLI has run and named the right version."""
    version = version_of(folder / "bin" / "pulumi")
    if version != VERSION:
        raise CliError(f"what came of it says version {version or 'nothing'}, not {VERSION}; it was not kept")
    final = cache_folder() / VERSION
    if final.exists():
        shutil.rmtree(final)
    folder.rename(final)
    return _cached()


def _platform() -> str:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform)
    if not machine or not system:
        raise CliError(f"Pulumi releases no archive for {sys.platform} on {platform.machine()}")
    return f"{system}-{machine}"


def _open(url: str) -> HTTPResponse:
    try:
        answer: HTTPResponse = urllib.request.urlopen(url, timeout=CONNECT_SECONDS)
    except urllib.error.HTTPError as error:
        raise CliError(f"{url} cannot be fetched (HTTP {error.code})") from error
    except OSError as error:
        raise CliError(f"{url} cannot be fetched ({getattr(error, 'reason', None) or error})") from error
    return answer


def _read(stream: HTTPResponse) -> bytes:
    try:
        return stream.read(1 << 20)
    except OSError as error:
        raise CliError(f"the download broke off ({error})") from error


def _unpack(archive: Path, target: Path) -> None:
    """Take the plain files directly under the archive's folder `pulumi/`, and nothing else."""
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = Path(member.name).parts
            source = (
                tar.extractfile(member) if member.isfile() and len(parts) == 2 and parts[0] == "pulumi" else None
            )
            if source:
                file = target / parts[1]
                with source, file.open("wb") as out:
                    shutil.copyfileobj(source, out)
                file.chmod(0o755)


if __name__ == "__main__":
    try:
        print(ensure())
    except CliError as error:
        sys.exit(str(error))
