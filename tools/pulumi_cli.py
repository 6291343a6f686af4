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

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools import fetching
from tools.fetching import Say, ToolError, run_go, say_to_stderr

VERSION = "3.274.1"
MINIMUM = (3, 272, 0)  # that of the pinned SDK
MODULE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
MODULE_FOLDER = Path(__file__).resolve().parent / "pulumi-cli"
RELEASES = "https://get.pulumi.com/releases/sdk"


def cache_folder() -> Path:
    """Where versions of the CLI are kept for every checkout of this user."""
    return fetching.cache_folder("pulumi")


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
    run and named its version. Raises ToolError with the reason of every way that failed.
    """
    found = find(say)
    if found:
        return found
    say(f"Pulumi CLI {VERSION} is not on this machine yet")
    with fetching.lock(cache_folder(), "the Pulumi CLI", say):
        cached = _cached()
        if version_of(cached) == VERSION:
            return cached
        failures: list[str] = []
        for name, way in (("release archive", download), ("build from the Go module", build)):
            try:
                with fetching.workshop(cache_folder()) as folder:
                    way(folder, say)
                    got = _install(folder)
            except ToolError as error:
                failures.append(f"{name}: {error}")
                say(failures[-1])
            else:
                say(f"took the {name}: {got}")
                return got
    raise ToolError(
        f"The Pulumi CLI is missing and could not be had. {' | '.join(failures)}\n"
        f"What to do: install Pulumi (https://www.pulumi.com/docs/install/) or Go 1.26 (https://go.dev/dl/), "
        "and run the same command again."
    )


def download(folder: Path, say: Say) -> None:
    """Put Pulumi's release of VERSION into `folder`/bin, after its SHA-256 agreed with the release's list."""
    name = f"pulumi-v{VERSION}-{_platform()}.tar.gz"
    archive = folder / name
    fetching.download(f"{RELEASES}/{name}", f"{RELEASES}/pulumi-{VERSION}-checksums.txt", archive, say)
    fetching.unpack(archive, "pulumi", folder / "bin")
    archive.unlink()


def build(folder: Path, say: Say) -> None:
    """Build the CLI from its Go module into `folder`/bin, telling time and packages as it goes."""
    fetching.go_command()
    say(f"building {MODULE} v{VERSION}: 5 to 10 minutes on two cores the first time, about 120 MB when done")
    module = folder / "module"
    shutil.copytree(MODULE_FOLDER, module)
    say("fetching the modules it is made of")
    run_go(["mod", "download"], module, say, what="fetching modules")
    target = folder / "bin" / "pulumi"
    flags = f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{VERSION}"
    run_go(
        ["build", "-v", "-mod=readonly", "-buildvcs=false", "-ldflags", flags, "-o", str(target), MODULE],
        module,
        say,
        what="compiling",
    )
    shutil.rmtree(module)


def _cached() -> Path:
    return cache_folder() / VERSION / "bin" / "pulumi"


def _install(folder: Path) -> Path:
    """Move a finished folder to its final name in one step, once its CLI has run and named the right version."""
    version = version_of(folder / "bin" / "pulumi")
    if version != VERSION:
        raise ToolError(f"what came of it says version {version or 'nothing'}, not {VERSION}; it was not kept")
    fetching.move_into_place(folder, cache_folder() / VERSION)
    return _cached()


def _platform() -> str:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform)
    if not machine or not system:
        raise ToolError(f"Pulumi releases no archive for {sys.platform} on {platform.machine()}")
    return f"{system}-{machine}"


if __name__ == "__main__":
    try:
        print(ensure())
    except ToolError as error:
        sys.exit(str(error))
