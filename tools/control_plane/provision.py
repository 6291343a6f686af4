"""Finds each part of the control plane, or gets it; tells what it does and how long that takes.

Ways, in this order: PATH, where the version fits; the cache; the program's own release, where it has a list of
checksums (for the provider: the installer of Pulumi); a build from the Go module.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools import fetching, pulumi_cli
from tools.control_plane.parts import KWOK, PARTS, PULUMI_PROVIDER, Part
from tools.fetching import Say, ToolError, run_go, say_to_stderr


@dataclass(frozen=True)
class Toolbox:
    """Every program of the control plane by its name, and the files that kwok and the API server are given."""

    programs: Mapping[str, Path]
    kwok_files: Path

    def __getitem__(self, name: str) -> Path:
        return self.programs[name]


def find(say: Say | None = None) -> Toolbox | None:
    """What is on PATH, in the cache and among Pulumi's plugins, nothing fetched; None when a part is missing."""
    found = {part.name: _programs(part, say) for part in PARTS}
    if not all(found.values()) or not _has_files(KWOK):
        return None
    return Toolbox({name: path for part in found.values() for name, path in part.items()}, _final(KWOK))


def missing() -> list[str]:
    """The names of the parts that `find` does not find."""
    return [part.name for part in PARTS if not _programs(part) or not _has_files(part)]


def ensure(say: Say = say_to_stderr) -> Toolbox:
    """Find every part or build it, one after the other; raises ToolError with the reason when one cannot be had."""
    lacking = missing()
    if lacking:
        say(f"the control plane for the tests lacks {', '.join(lacking)}: each is fetched or built once, and kept;")
        say("building all of it takes about half an hour on two cores")
    for part in PARTS:
        if part.name in lacking:
            _ensure(part, say)
    toolbox = find(say)
    if toolbox is None:
        raise ToolError(f"{', '.join(missing())} cannot be used although it was just got; remove it from the cache")
    return toolbox


def _ensure(part: Part, say: Say) -> None:
    cache = fetching.cache_folder(part.name)
    with fetching.lock(cache, part.name, say):
        if _programs(part) and _has_files(part):
            return
        if part is PULUMI_PROVIDER and _install_plugin(part, say):
            return
        failures: list[str] = []
        for way in (_download, _build):
            if way is _download and part.release is None:
                continue
            try:
                with fetching.workshop(cache) as folder:
                    if not _programs(part, say):
                        way(part, folder, say)
                        _check(part, folder)
                    _copy_files(part, folder, say)
                    fetching.move_into_place(folder, _final(part))
                    break
            except ToolError as error:
                failures.append(str(error))
                say(failures[-1])
        else:
            raise ToolError(
                f"{part.name} {part.version} is missing and could not be had. {' | '.join(failures)}\n"
                f"What to do: put {' and '.join(part.packages)} of that version on PATH, or install Go 1.26 "
                "(https://go.dev/dl/), and run the same command again."
            )
    say(f"{part.name} {part.version} is ready: {_final(part)}")


def _install_plugin(part: Part, say: Say) -> bool:
    """Let Pulumi install its plugin where it keeps them; False when there is no CLI or no way to the plugin."""
    cli = pulumi_cli.find()
    if cli is None:
        return False
    say(f"trying `pulumi plugin install resource kubernetes {part.version}`")
    answer = subprocess.run(
        [cli, "plugin", "install", "resource", "kubernetes", part.version, "--non-interactive"],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
    )
    if answer.returncode == 0 and _programs(part):
        return True
    lines = (answer.stderr or answer.stdout).strip().splitlines()
    say(f"it did not: {lines[-1] if lines else f'exit code {answer.returncode}'}")
    return False


def _download(part: Part, folder: Path, say: Say) -> None:
    """Put the executables of the program's own release into `folder`/bin."""
    release = part.release
    assert release is not None  # noqa: S101 - asked before
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    for name in part.packages:
        words = {"system": sys.platform, "machine": machine, "name": name}
        file = folder / "bin" / name if release.folder is None else folder / "archive"
        fetching.download(release.url.format(**words), release.checksums.format(**words), file, say)
        if release.folder is None:
            file.chmod(0o755)
        else:
            fetching.unpack(file, release.folder.format(**words), folder / "bin")
            file.unlink()


def _build(part: Part, folder: Path, say: Say) -> None:
    """Build the part's executables into `folder`/bin."""
    started = time.monotonic()
    say(f"building {part.name} {part.version} from {part.module} ({part.about})")
    module = folder / "module"
    shutil.copytree(part.module_folder, module)
    run_go(["mod", "download"], module, say, what=f"{part.name}: fetching modules")
    if part.embedded:
        source = _module_source(part, module, say)
        for name, place in part.embedded.items():
            shutil.copyfile(source / place, module / name)
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in part.variables.items())])
    for executable, package in part.packages.items():
        run_go(
            ["build", "-v", "-mod=readonly", "-buildvcs=false", "-ldflags", flags,
             "-o", str(folder / "bin" / executable), package],
            module, say, what=f"{executable}: compiling",
        )  # fmt: skip
    shutil.rmtree(module)
    say(f"{part.name}: built in {time.monotonic() - started:.0f} s")


def _copy_files(part: Part, folder: Path, say: Say) -> None:
    """Copy the files that the part needs at run time from its module."""
    if not part.files:
        return
    source = _module_source(part, part.module_folder, say)
    for name, place in part.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / place, target)


def _module_source(part: Part, folder: Path, say: Say) -> Path:
    """The folder of the part's module in Go's module cache; fetched if it is not there, its sum checked."""
    lines = run_go(
        ["mod", "download", "-json", f"{part.module}@{part.module_version}"],
        folder, say, what=f"{part.name}: fetching {part.module}",
    )  # fmt: skip
    answer = json.loads("".join(lines[lines.index("{\n") :]))
    return Path(answer["Dir"])


def _programs(part: Part, say: Say | None = None) -> dict[str, Path]:
    """The part's executables: on PATH, else in the cache; empty when one is missing."""
    on_path = {name: Path(place) for name in part.packages if (place := shutil.which(name))}
    if len(on_path) == len(part.packages):
        unfit = [path for path in on_path.values() if not part.fits.search(_answer(part, path))]
        if not unfit:
            return on_path
        if say:
            say(f"{unfit[0]} is not of a version that fits {part.name} {part.version}, so it is passed over")
    folders = [_final(part) / "bin"]
    if part is PULUMI_PROVIDER:
        home = os.environ.get("PULUMI_HOME") or str(Path.home() / ".pulumi")
        folders.append(Path(home) / "plugins" / f"resource-kubernetes-v{part.version}")
    for folder in folders:
        if all(os.access(folder / name, os.X_OK) for name in part.packages):
            return {name: folder / name for name in part.packages}
    return {}


def _has_files(part: Part) -> bool:
    return all((_final(part) / name).is_file() for name in part.files)


def _check(part: Part, folder: Path) -> None:
    """Refuse what was built unless each executable runs and names the version."""
    for name in part.packages:
        answer = _answer(part, folder / "bin" / name)
        if not part.ours.search(answer):
            raise ToolError(
                f"what was built as {name} answers {answer[:200]!r}, not {part.version}; it was not kept"
            )


def _answer(part: Part, program: Path) -> str:
    try:
        answer = subprocess.run(
            [program, *part.ask], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return answer.stdout + answer.stderr


def _final(part: Part) -> Path:
    return fetching.cache_folder(part.name) / part.version
