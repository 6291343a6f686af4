"""The daemon's image, as far as it can be judged without building it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.components.ops_daemon.configuration import PORT
from infra.components.ops_daemon.workload import GROUP, USER

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name.upper(), rest.strip()) for name, rest in (line.split(None, 1) for line in lines)]


def of(kind: str) -> list[str]:
    return [rest for name, rest in instructions() if name == kind]


def test_both_stages_are_made_from_one_pinned_image():
    (base,) = of("ARG")
    name, _, image = base.partition("=")
    assert re.fullmatch(r"docker\.io/library/python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", image)
    assert of("FROM") == [f"${{{name}}} AS build", f"${{{name}}}"]


def test_it_runs_as_the_user_of_the_pod_and_starts_comemory():
    assert of("USER") == [f"{USER}:{GROUP}"]
    assert of("ENTRYPOINT") == ['["comemory"]'] and of("CMD") == ['["daemon"]']
    assert of("EXPOSE") == [str(PORT)]
    last = [name for name, _ in instructions()]
    assert last.index("USER") > last.index("COPY")


def test_it_takes_the_locked_packages_and_nothing_secret():
    installs = [line for line in of("RUN") if "pip install" in line]
    assert "--require-hashes" in installs[0] and "requirements/daemon.lock" in installs[0]
    assert not of("ADD")
    copied = {source for line in of("COPY") if "--from=" not in line for source in line.split()[:-1]}
    assert copied == {"requirements/daemon.lock", "pyproject.toml", "README.md", "comemory/", "ops/"}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_its_packages_are_a_part_of_those_that_are_tested():
    def locked(name: str) -> dict[str, str]:
        found = re.findall(
            r"^([a-z0-9._-]+)==([^\s;\\]+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE
        )
        return dict(found)

    image, tested = locked("daemon.lock"), locked("dev.lock")
    assert {"qdrant-client", "apscheduler", "prometheus-client", "pydantic"} <= image.keys()
    assert not {"pulumi", "pytest", "qdrant-edge-py", "kubernetes"} & image.keys()
    assert {name: tested.get(name) for name in image} == image


@pytest.mark.parametrize("file", ["requirements/daemon.lock", "requirements/dev.lock"])
def test_a_lock_names_no_host(file):
    assert "://" not in (ROOT / file).read_text()
