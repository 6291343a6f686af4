"""Finding Prometheus, and taking it from Debian's package without installing it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import prometheus
from tools.fetching import ToolError


def program(folder: Path, name: str, version: str = "2.42.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{name}, version {version}+ds (branch: debian)'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH without Prometheus."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "cache/comemory/prometheus"


def test_both_on_path_are_taken_and_one_alone_is_not(cache: Path, tmp_path: Path) -> None:
    server = program(tmp_path / "bin", "prometheus")
    assert prometheus.find() is None
    promtool = program(tmp_path / "bin", "promtool")
    assert prometheus.find() == prometheus.Prometheus(server, promtool)


def test_the_newest_version_in_the_cache_that_runs_is_taken(cache: Path) -> None:
    for version in ("2.9.0", "2.42.0"):
        for name in ("prometheus", "promtool"):
            program(cache / version / "usr/bin", name, version)
    program(cache / "3.1.0/usr/bin", "prometheus")  # unpacked by half
    found = prometheus.find()
    assert found is not None
    assert found.server == cache / "2.42.0/usr/bin/prometheus"
    assert prometheus.version_of(found.promtool) == "2.42.0"


def test_where_it_cannot_be_had_the_error_says_what_to_do(cache: Path) -> None:
    said: list[str] = []
    with pytest.raises(ToolError, match="no `apt-get`") as error:
        prometheus.ensure(said.append)
    assert "apt-get install prometheus" in str(error.value)
    assert "prometheus.io/download" in str(error.value)
    assert said == ["Prometheus is not on this machine yet; taking Debian's package"]


def apt_get(folder: Path, *, lists: bool) -> None:
    """An `apt-get` that lays down a real package, built here; without lists it must be updated first."""
    tree = folder / "tree"
    for name in ("prometheus", "promtool"):
        program(tree / "usr/bin", name, "2.53.1")
    control = tree / "DEBIAN/control"
    control.parent.mkdir()
    control.write_text(
        "Package: prometheus\nVersion: 2.53.1\nArchitecture: all\nMaintainer: a <a@b.example>\nDescription: x\n"
    )
    package = folder / "built.deb"
    subprocess.run(["dpkg-deb", "--build", tree, package], check=True, capture_output=True)
    needed = "" if lists else 'case "$*" in *Lists=*) ;; *) echo "E: no list of packages" >&2; exit 100;; esac\n'
    script = folder / "bin/apt-get"
    script.parent.mkdir(exist_ok=True)
    script.write_text(
        f'#!/bin/sh\n{needed}case "$*" in *download*) cp {package} prometheus_2.53.1_all.deb;; esac\n'
    )
    script.chmod(0o755)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb, which Debian has, is not here")
@pytest.mark.parametrize("lists", [True, False])
def test_a_package_is_unpacked_by_its_version(lists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    apt_get(tmp_path, lists=lists)
    real = [shutil.which(name) for name in ("dpkg", "cp", "sh", "tar", "rm", "dpkg-deb")]
    for path in filter(None, real):
        (tmp_path / "bin" / Path(path).name).symlink_to(path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    got = prometheus.ensure(lambda _: None)
    cache = tmp_path / "cache/comemory/prometheus"
    assert got.server == cache / "2.53.1/usr/bin/prometheus"
    assert prometheus.version_of(got.promtool) == "2.53.1"
    assert prometheus.find() == got
    assert not list(cache.glob("unfinished-*"))


def test_the_command_prints_where_it_is(tmp_path: Path) -> None:
    server = program(tmp_path, "prometheus")
    program(tmp_path, "promtool")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run(
        [sys.executable, "-m", "tools.prometheus"], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(server)
