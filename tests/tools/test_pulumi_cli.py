"""Which Pulumi CLI is taken, with real executables in folders of the test; what is broken is never taken."""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import pulumi_cli
from tools.fetching import ToolError
from tools.pulumi_cli import VERSION, cache_folder, ensure, find, language_plugin, suits, version_of

ROOT = Path(__file__).resolve().parents[2]


def script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def cli(file: Path, version: str) -> Path:
    return script(file, f'[ "$1" = version ] && echo "v{version}"')


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH beside the system's own, with a cache folder that is empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A release server on loopback; files are put into the folder that this gives."""
    folder = tmp_path / "releases"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(pulumi_cli, "RELEASES", f"http://127.0.0.1:{server.server_port}")
        yield folder
        server.shutdown()


def release(folder: Path, version: str, *, tampered: bool = False) -> None:
    """Put a release archive there, and its list of checksums."""
    name = f"pulumi-v{VERSION}-{pulumi_cli._platform()}.tar.gz"
    with tarfile.open(folder / name, "w:gz") as tar:
        for file, body in (
            ("pulumi/pulumi", f"#!/bin/sh\necho v{version}\n"),
            ("pulumi/pulumi-language-python", "#!/bin/sh\n"),
            ("pulumi/../../outside", "#!/bin/sh\n"),
        ):
            member = tarfile.TarInfo(file)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body.encode()))
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / f"pulumi-{VERSION}-checksums.txt").write_text(
        f"{'0' * 64}  other.tar.gz\n{'f' * 64 if tampered else digest}  {name}\n"
    )


def test_a_cli_on_path_that_suits_is_taken(bin_folder: Path) -> None:
    mine = cli(bin_folder / "pulumi", "3.999.0")
    cli(cache_folder() / VERSION / "bin" / "pulumi", VERSION)
    assert find() == mine
    assert ensure() == mine


@pytest.mark.parametrize("version", ["3.100.0", "2.999.0", "4.0.0", "nonsense"])
def test_a_cli_on_path_that_does_not_suit_is_passed_over_and_named(bin_folder: Path, version: str) -> None:
    cli(bin_folder / "pulumi", version)
    cached = cli(cache_folder() / VERSION / "bin" / "pulumi", VERSION)
    told: list[str] = []
    assert find(told.append) == cached
    assert str(bin_folder / "pulumi") in told[0]
    assert "3.272.0" in told[0]


def test_nothing_anywhere_is_none(bin_folder: Path) -> None:
    assert find() is None


@pytest.mark.parametrize("body", ["exit 1", "kill -9 $$", "echo v1.2.3"])
def test_a_broken_cli_in_the_cache_is_not_taken(bin_folder: Path, body: str) -> None:
    script(cache_folder() / VERSION / "bin" / "pulumi", body)
    assert find() is None


@pytest.mark.parametrize(
    ("version", "good"), [("3.272.0", True), ("3.274.1", True), ("3.271.9", False), ("4.0.0", False), (None, False)]
)
def test_which_versions_suit(version: str | None, good: bool) -> None:
    assert suits(version) is good


def test_the_release_archive_goes_before_a_build(bin_folder: Path, releases: Path) -> None:
    script(bin_folder / "go", "exit 77")
    release(releases, VERSION)
    told: list[str] = []
    got = ensure(told.append)
    assert version_of(got) == VERSION
    assert language_plugin(got) == got.parent / "pulumi-language-python"
    assert any("took the release archive" in line for line in told)
    assert sorted(path.name for path in got.parent.iterdir()) == ["pulumi", "pulumi-language-python"]
    assert not list(cache_folder().glob("unfinished-*"))


def test_an_archive_that_does_not_agree_with_its_checksum_is_refused(bin_folder: Path, releases: Path) -> None:
    release(releases, VERSION, tampered=True)
    with pytest.raises(ToolError, match="SHA-256"):
        ensure(lambda _: None)
    assert find() is None


def test_an_archive_with_another_version_is_not_kept(bin_folder: Path, releases: Path) -> None:
    release(releases, "3.1.0")
    with pytest.raises(ToolError, match=r"version 3\.1\.0, not"):
        ensure(lambda _: None)
    assert not (cache_folder() / VERSION).exists()


BUILDING_GO = f"""
case "$1" in
  mod) exit 0 ;;
  build)
    grep -q 'github.com/pulumi/pulumi/pkg/v3 v{VERSION}' go.mod || exit 9
    for last; do [ "$previous" = -o ] && target=$last; previous=$last; done
    echo one/package; echo another/package
    printf '#!/bin/sh\\necho v{VERSION}\\n' > "$target"; chmod +x "$target" ;;
esac"""


def test_without_a_release_it_is_built_and_told(bin_folder: Path, releases: Path) -> None:
    script(bin_folder / "go", BUILDING_GO)
    told: list[str] = []
    got = ensure(told.append)
    assert version_of(got) == VERSION
    assert language_plugin(got) is None
    assert any(line.startswith("release archive:") and "404" in line for line in told), told
    assert any("took the build" in line for line in told)
    (bin_folder / "go").unlink()
    assert ensure() == got, "the second time nothing is built"


def test_a_failing_build_says_why_and_leaves_nothing(bin_folder: Path, releases: Path) -> None:
    script(bin_folder / "go", 'echo "no space left on device" >&2; exit 1')
    with pytest.raises(ToolError, match="no space left on device") as caught:
        ensure(lambda _: None)
    assert "What to do" in str(caught.value)
    assert not list(cache_folder().glob("[!.]*"))


def test_without_go_the_error_says_what_to_install(bin_folder: Path, releases: Path) -> None:
    with pytest.raises(ToolError, match=r"no `go` on PATH.*\n?.*https://go\.dev/dl/"):
        ensure(lambda _: None)


def test_what_an_interrupted_build_left_is_removed_and_never_used(bin_folder: Path, releases: Path) -> None:
    half = cli(cache_folder() / "unfinished-x" / "bin" / "pulumi", VERSION)
    assert find() is None
    script(bin_folder / "go", BUILDING_GO)
    ensure(lambda _: None)
    assert not half.exists()


def test_two_runs_at_once_build_once(bin_folder: Path, releases: Path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script(bin_folder / "go", f'[ "$1" = build ] && echo x >> {count} && sleep 1\n{BUILDING_GO}')
    code = (
        f"from tools import pulumi_cli; pulumi_cli.RELEASES = {pulumi_cli.RELEASES!r}; print(pulumi_cli.ensure())"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    answers = {run.communicate()[0].decode().strip() for run in runs}
    assert answers == {str(cache_folder() / VERSION / "bin" / "pulumi")}
    assert count.read_text() == "x\n"


def test_the_pinned_module_is_the_version_that_is_named() -> None:
    text = (pulumi_cli.MODULE_FOLDER / "go.mod").read_text()
    assert f"github.com/pulumi/pulumi/pkg/v3 v{VERSION}" in text
    assert pulumi_cli.MODULE in text
    assert f"github.com/pulumi/pulumi/pkg/v3 v{VERSION} h1:" in (pulumi_cli.MODULE_FOLDER / "go.sum").read_text()
