"""Where the programs of the control plane come from, with real executables in folders of the test."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import io
import json
import os
import platform
import sys
import tarfile
import threading
import urllib.parse
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tools.control_plane import provision
from tools.control_plane.parts import CONTROL_PLANE, ETCD, KWOK, PARTS, PROVIDER, PULUMI_PROVIDER, Part
from tools.control_plane.provision import ensure, find, missing
from tools.fetching import ToolError, cache_folder


def script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def answering(file: Path, answer: str) -> Path:
    return script(file, f'echo "{answer}"')


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH beside the system's; no cache, no plugin of Pulumi's, nowhere to download from."""
    releases_at(monkeypatch, "http://127.0.0.1:9")
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    return folder


def releases_at(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let every release be looked for at this address."""

    def moved(part: Part) -> Part:
        if part.release is None:
            return part
        url, checksums = (
            address + urllib.parse.urlsplit(template).path
            for template in (part.release.url, part.release.checksums)
        )
        return dataclasses.replace(part, release=dataclasses.replace(part.release, url=url, checksums=checksums))

    monkeypatch.setattr(provision, "PARTS", tuple(moved(part) for part in PARTS))


@pytest.fixture
def releases(bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
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
        releases_at(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        yield folder
        server.shutdown()


def publish(releases: Path) -> None:
    """The releases of etcd and of Kubernetes, with their sums."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    folder = f"etcd-v3.7.3-{sys.platform}-{machine}"
    place = releases / "etcd-io" / "etcd" / "releases" / "download" / "v3.7.3"
    place.mkdir(parents=True)
    with tarfile.open(place / f"{folder}.tar.gz", "w:gz") as tar:
        body = f"#!/bin/sh\necho '{ANSWERS['etcd']}'\n".encode()
        member = tarfile.TarInfo(f"{folder}/etcd")
        member.size = len(body)
        tar.addfile(member, io.BytesIO(body))
    digest = hashlib.sha256((place / f"{folder}.tar.gz").read_bytes()).hexdigest()
    (place / "SHA256SUMS").write_text(f"{'0' * 64}  other.zip\n{digest}  {folder}.tar.gz\n")
    place = releases / "release" / "v1.34.4" / "bin" / sys.platform / machine
    for name in CONTROL_PLANE.packages:
        answering(place / name, ANSWERS[name])
        (place / f"{name}.sha256").write_text(hashlib.sha256((place / name).read_bytes()).hexdigest())


ANSWERS = {
    "etcd": "etcd Version: 3.7.3",
    "kube-apiserver": "Kubernetes v1.34.4",
    "kube-controller-manager": "Kubernetes v1.34.4",
    "kube-scheduler": "Kubernetes v1.34.4",
    "kwok": "kwok version v0.8.0 (go1.26, linux/amd64)",
    "pulumi-resource-kubernetes": PROVIDER,
}


def cached(part: Part) -> None:
    folder = cache_folder(part.name) / part.version
    for name in part.packages:
        answering(folder / "bin" / name, ANSWERS[name])
    for name in part.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def go(bin_folder: Path, modules: Path, *, answers: dict[str, str] = ANSWERS) -> Path:
    """A `go` that downloads a module with every file asked for, and builds scripts that answer with a version."""
    for part in PARTS:
        for place in (*part.files.values(), *part.embedded.values()):
            (modules / place).parent.mkdir(parents=True, exist_ok=True)
            (modules / place).write_text(place)
    cases = "\n".join(f'*/{name}) answer="{answer}" ;;' for name, answer in answers.items())
    download = json.dumps({"Dir": str(modules)}, indent=1)
    return script(
        bin_folder / "go",
        f"""
if [ "$1 $3" = "mod -json" ]; then cat <<'END'
{download}
END
  exit 0
fi
[ "$1" = mod ] && exit 0
[ -e go.mod ] || exit 9
if grep -q pulumi-kubernetes go.mod; then [ -s schema.json ] && [ -s terraform-mapping.json ] || exit 8; fi
for last; do [ "$previous" = -o ] && target=$last; previous=$last; done
case "$target" in
{cases}
esac
printf '#!/bin/sh\\necho "%s"\\n' "$answer" > "$target"; chmod +x "$target"
echo built >> {modules}/count""",
    )


def test_nothing_anywhere_is_none_and_everything_is_missing(bin_folder: Path) -> None:
    assert find() is None
    assert missing() == ["etcd", "kubernetes", "kwok", "pulumi-resource-kubernetes"]


def test_what_is_in_the_cache_is_found(bin_folder: Path) -> None:
    for part in PARTS:
        cached(part)
    tools = find()
    assert tools is not None
    assert set(tools.programs) == set(ANSWERS)
    assert (tools.kwok_files / "stages" / "pod-ready.yaml").is_file()


@pytest.mark.parametrize("answer", ["etcd Version: 3.5.21", "etcd Version: 3.7.4", "etcd Version: 3.12.0"])
def test_an_etcd_on_path_that_fits_is_taken(bin_folder: Path, answer: str) -> None:
    for part in PARTS:
        cached(part)
    mine = answering(bin_folder / "etcd", answer)
    tools = find()
    assert tools is not None
    assert tools["etcd"] == mine


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("etcd", "etcd Version: 3.4.9"),
        ("etcd", "etcd Version: 4.0.0"),
        ("kwok", "kwok version v0.8.10 (go1.26)"),
        ("pulumi-resource-kubernetes", "flag provided but not defined"),
    ],
)
def test_a_program_on_path_of_another_version_is_passed_over_and_named(
    bin_folder: Path, name: str, answer: str
) -> None:
    for part in PARTS:
        cached(part)
    other = answering(bin_folder / name, answer)
    told: list[str] = []
    tools = find(told.append)
    assert tools is not None
    assert tools[name] != other
    assert str(other) in told[0]


def test_kubernetes_is_taken_from_path_only_as_a_whole(bin_folder: Path) -> None:
    for part in PARTS:
        cached(part)
    for name in ("kube-apiserver", "kube-scheduler"):
        answering(bin_folder / name, "Kubernetes v1.34.9")
    tools = find()
    assert tools is not None
    assert tools["kube-apiserver"].parent != bin_folder
    answering(bin_folder / "kube-controller-manager", "Kubernetes v1.34.9")
    tools = find()
    assert tools is not None
    assert {tools[name].parent for name in CONTROL_PLANE.packages} == {bin_folder}


def test_the_plugin_that_pulumi_itself_installed_is_taken(bin_folder: Path, tmp_path: Path) -> None:
    for part in (ETCD, CONTROL_PLANE, KWOK):
        cached(part)
    plugin = script(
        tmp_path / "pulumi" / "plugins" / f"resource-kubernetes-v{PROVIDER}" / "pulumi-resource-kubernetes",
        "exit 2",
    )
    tools = find()
    assert tools is not None
    assert tools["pulumi-resource-kubernetes"] == plugin


def test_what_is_missing_is_built_once_and_told(bin_folder: Path, tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    go(bin_folder, modules)
    told: list[str] = []
    tools = ensure(told.append)
    assert set(tools.programs) == set(ANSWERS)
    assert any("half an hour" in line for line in told)
    for part in PARTS:
        assert any(line.startswith(f"building {part.name} {part.version}") for line in told)
        assert any(line.startswith(f"{part.name}: built in") for line in told)
        kept = cache_folder(part.name) / part.version
        expected = {"bin", *(Path(name).parts[0] for name in part.files)}
        assert {path.name for path in kept.iterdir()} == expected
    assert (tools.kwok_files / "stages" / "pod-ready.yaml").read_text() == "kustomize/stage/pod/fast/pod-ready.yaml"
    built = (modules / "count").read_text()
    assert ensure(told.append) == tools
    assert (modules / "count").read_text() == built


def test_releases_go_before_a_build(bin_folder: Path, releases: Path, tmp_path: Path) -> None:
    for part in (KWOK, PULUMI_PROVIDER):
        cached(part)
    script(bin_folder / "go", "exit 77")
    publish(releases)
    tools = ensure(lambda _: None)
    assert tools["etcd"].parent.parent == cache_folder("etcd") / ETCD.version
    assert [path.name for path in tools["etcd"].parent.parent.rglob("*")] == ["bin", "etcd"]
    assert os.access(tools["kube-scheduler"], os.X_OK)


def test_a_release_that_does_not_agree_with_its_checksum_is_built_instead(
    bin_folder: Path, releases: Path, tmp_path: Path
) -> None:
    for part in (ETCD, KWOK, PULUMI_PROVIDER):
        cached(part)
    publish(releases)
    next(releases.rglob("kube-scheduler")).write_text("#!/bin/sh\necho tampered\n")
    go(bin_folder, tmp_path / "modules")
    told: list[str] = []
    assert ensure(told.append)["kube-scheduler"].read_text().count("v1.34.4") == 1
    assert any("kube-scheduler has SHA-256" in line and "it was not used" in line for line in told)


def test_pulumi_is_asked_to_install_its_plugin_before_a_build(bin_folder: Path, tmp_path: Path) -> None:
    for part in (ETCD, CONTROL_PLANE, KWOK):
        cached(part)
    home = tmp_path / "pulumi" / "plugins" / f"resource-kubernetes-v{PROVIDER}"
    plugin = home / "pulumi-resource-kubernetes"
    script(
        bin_folder / "pulumi",
        f"""
[ "$1" = version ] && echo v3.999.0 && exit 0
[ "$*" = "plugin install resource kubernetes {PROVIDER} --non-interactive" ] || exit 9
mkdir -p {home}; printf '#!/bin/sh\n' > {plugin}; chmod +x {plugin}""",
    )
    assert ensure(lambda _: None)["pulumi-resource-kubernetes"] == plugin


def test_where_pulumi_cannot_install_its_plugin_it_is_built(bin_folder: Path, tmp_path: Path) -> None:
    for part in (ETCD, CONTROL_PLANE, KWOK):
        cached(part)
    go(bin_folder, tmp_path / "modules")
    script(bin_folder / "pulumi", '[ "$1" = version ] && echo v3.999.0 && exit 0; echo no such host >&2; exit 1')
    told: list[str] = []
    built = ensure(told.append)["pulumi-resource-kubernetes"]
    assert built == cache_folder("pulumi-resource-kubernetes") / PROVIDER / "bin" / "pulumi-resource-kubernetes"
    assert "it did not: no such host" in told


def test_kwok_on_path_gets_its_stages_without_a_build(bin_folder: Path, tmp_path: Path) -> None:
    for part in (ETCD, CONTROL_PLANE, PULUMI_PROVIDER):
        cached(part)
    mine = answering(bin_folder / "kwok", ANSWERS["kwok"])
    assert missing() == ["kwok"]
    go(bin_folder, tmp_path / "modules")
    assert ensure(lambda _: None)["kwok"] == mine
    assert not (tmp_path / "modules" / "count").exists()


def test_what_names_another_version_is_not_kept(bin_folder: Path, tmp_path: Path) -> None:
    go(bin_folder, tmp_path / "modules", answers={**ANSWERS, "etcd": "etcd Version: 3.7.33"})
    with pytest.raises(ToolError, match=r"answers 'etcd Version: 3\.7\.33"):
        ensure(lambda _: None)
    assert "etcd" in missing()
    assert not (cache_folder("etcd") / ETCD.version).exists()


def test_a_failing_build_says_why_and_what_to_do(bin_folder: Path) -> None:
    script(bin_folder / "go", 'echo "no space left on device" >&2; exit 1')
    with pytest.raises(ToolError, match=r"no space left on device\nWhat to do: put etcd of that version on PATH"):
        ensure(lambda _: None)
    assert not list(cache_folder("etcd").glob("[!.]*"))


def test_without_go_the_error_says_what_to_install(bin_folder: Path) -> None:
    with pytest.raises(ToolError, match=r"no `go` on PATH"):
        ensure(lambda _: None)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_module_is_pinned_at_the_version_that_is_named(part: Part) -> None:
    text = (part.module_folder / "go.mod").read_text()
    assert f"{part.module} {part.module_version}" in text
    assert f"{part.module} {part.module_version} h1:" in (part.module_folder / "go.sum").read_text()


def test_the_provider_is_that_of_the_python_package() -> None:
    assert version("pulumi-kubernetes") == PROVIDER
