"""Prometheus and promtool, for tests and pictures: found on PATH, or taken from Debian's package, not installed.

Ways, in this order; the first that works is taken:

1. both on PATH;
2. the cache, `${XDG_CACHE_HOME:-~/.cache}/comemory/prometheus/<version>/usr/bin/`;
3. Debian's package `prometheus`, downloaded by `apt-get` and unpacked by `dpkg` into the cache. It needs no rights
   beyond one's own; what it would install besides is for Prometheus' own pages and not needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import fetching
from tools.fetching import Say, ToolError, say_to_stderr

PACKAGE = "prometheus"
SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The two programs."""

    server: Path
    promtool: Path


def find() -> Prometheus | None:
    """The programs on PATH or in the cache, without fetching anything; None when neither has both."""
    server, promtool = shutil.which("prometheus"), shutil.which("promtool")
    if server and promtool:
        return Prometheus(Path(server), Path(promtool))
    return next((got for folder in _cached() if (got := _inside(folder)) is not None), None)


def ensure(say: Say = say_to_stderr) -> Prometheus:
    """Find the programs, or get them.

    Raises:
        ToolError: they are not here, and could not be had; the text says why, and what to do.
    """
    if (found := find()) is not None:
        return found
    cache = fetching.cache_folder(PACKAGE)
    with fetching.lock(cache, "Prometheus", say):
        if (found := find()) is not None:
            return found
        say("Prometheus is not on this machine yet; taking Debian's package")
        try:
            return _from_debian(cache)
        except ToolError as error:
            raise ToolError(
                f"Prometheus and promtool are missing and could not be had: {error}. "
                "Install them (on Debian: apt-get install prometheus; elsewhere https://prometheus.io/download/) "
                "so that `prometheus` and `promtool` are on PATH."
            ) from None


def version_of(program: Path) -> str | None:
    """Ask one of the programs for its version ("2.42.0"); None when it does not run."""
    try:
        said = subprocess.run([program, "--version"], check=False, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"version (\d+\.\d+\.\d+)", said.stdout + said.stderr)
    return match.group(1) if match and said.returncode == 0 else None


def _cached() -> list[Path]:
    """Versions in the cache, newest first."""
    folders = [path for path in fetching.cache_folder(PACKAGE).glob("[0-9]*") if path.is_dir()]
    return sorted(folders, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)], reverse=True)


def _inside(folder: Path) -> Prometheus | None:
    found = Prometheus(folder / "usr/bin/prometheus", folder / "usr/bin/promtool")
    works = version_of(found.server) is not None and version_of(found.promtool) is not None
    return found if works else None


def _from_debian(cache: Path) -> Prometheus:
    for needed in ("apt-get", "dpkg"):
        if shutil.which(needed) is None:
            raise ToolError(f"there is no `{needed}` here, so it is not a Debian")
    with fetching.workshop(cache) as folder:
        package = _download(folder)
        unpacked = folder / "unpacked"
        _run(["dpkg", "-x", package, unpacked], folder)
        got = _inside(unpacked)
        if got is None:
            raise ToolError(f"the programs of {package.name} do not run on this machine")
        final = cache / str(version_of(got.server))
        fetching.move_into_place(unpacked, final)
    return Prometheus(final / "usr/bin/prometheus", final / "usr/bin/promtool")


def _download(folder: Path) -> Path:
    """The package's file. Where apt has no list of packages, one is fetched into the folder first."""
    own = ["-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}"]
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    try:
        _run(["apt-get", "-q", "download", PACKAGE], folder)
    except ToolError:
        _run(["apt-get", "-q", *own, "update"], folder)
        _run(["apt-get", "-q", *own, "download", PACKAGE], folder)
    found = list(folder.glob(f"{PACKAGE}_*.deb"))
    if len(found) != 1:
        raise ToolError(f"`apt-get download {PACKAGE}` left {len(found)} packages, not one")
    return found[0]


def _run(command: Sequence[str | Path], folder: Path) -> None:
    try:
        said = subprocess.run(
            command, cwd=folder, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolError(f"`{command[0]}` did not end within {SECONDS:.0f} s") from None
    if said.returncode != 0:
        reason = " ".join((said.stderr or said.stdout).split())[-300:] or f"exit code {said.returncode}"
        raise ToolError(f"`{command[0]} {command[1]}` failed: {reason}")


if __name__ == "__main__":
    try:
        print(ensure().server)
    except ToolError as error:
        sys.exit(str(error))
