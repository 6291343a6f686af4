"""`comemory rollover` as processes: killed at once and run again, asked to end, and vectors of another size."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient

from comemory.rollover import MARKER
from tests.conftest import SERVER_KEY
from tests.rollover.sides import Sides, payload, two_sides

SIZE = 6
EMBED = """
def embed(texts):
    print("standard output is for the report")
    return [vector(text) for text in texts]

def vector(text):
    return [float(len(text)), *(float(text.count(letter)) for letter in "abcd"), 1.0]
"""
COMMAND = """
import json, pathlib, sys, time
from made import vector
for number, line in enumerate(sys.stdin):
    pathlib.Path("begun").touch()
    while pathlib.Path("hold").exists() and number > 5:
        time.sleep(0.01)
    print(json.dumps(vector(json.loads(line))), flush=True)
"""


@pytest.fixture(scope="module")
def shared_larger(
    qdrant: QdrantClient, qdrant_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    with two_sides(
        qdrant, qdrant_url, tmp_path_factory.mktemp("larger"), size=SIZE, metadata={"embedding_model": "counting"}
    ) as made:
        yield made


class Place:
    """A working folder with both ways to embed, and processes that are started there."""

    def __init__(self, folder: Path, sides: Sides) -> None:
        self.folder, self.sides = folder, sides
        (folder / "made.py").write_text(EMBED)
        (folder / "command.py").write_text(COMMAND)
        self.command = shlex.join([sys.executable, "command.py"])
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> subprocess.Popen[str]:
        sides = self.sides
        environment = {key: value for key, value in os.environ.items() if not key.startswith("COMEMORY_")}
        environment |= {"COMEMORY_QDRANT__URL": sides.url, "PYTHONPATH": str(Path(__file__).parents[2])}
        if SERVER_KEY:
            environment["COMEMORY_QDRANT__API_KEY"] = SERVER_KEY
        arguments = [
            sys.executable, "-m", "ops", "rollover", words[0], sides.old, sides.new, "--state", str(sides.folder),
            *words[1:],
        ]  # fmt: skip
        process = subprocess.Popen(
            arguments, cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.started.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, said = process.communicate(timeout=120)
        return process.returncode, out, said


@pytest.fixture
def place(shared_larger: Sides, tmp_path: Path) -> Iterator[Place]:
    shared_larger.clear()
    shared_larger.folder = tmp_path / "state"
    made = Place(tmp_path, shared_larger)
    yield made
    (tmp_path / "hold").unlink(missing_ok=True)
    for process in made.started:
        process.kill()
        process.communicate(timeout=60)


def fill(sides: Sides, count: int) -> None:
    for number in range(count):
        sides.put(sides.old, number, payload(text=f"{'ab' * number} text", embedding={"model": "old", "dim": 4}))


def demand_embedded(sides: Sides) -> None:
    """Every copy has the vector of its own text, and a payload that says what made it."""
    old, new, vectors = sides.points(sides.old), sides.points(sides.new), sides.vectors(sides.new)
    said = {"model": "counting", "dim": SIZE, "metric": "cosine"}
    assert new == {number: {**one, "embedding": said} for number, one in old.items()}
    scope: dict[str, Any] = {}
    exec(EMBED, scope)
    for number, one in old.items():
        wanted = scope["vector"](one["text"])
        length = sum(value**2 for value in wanted) ** 0.5
        assert vectors[number]["dense"] == pytest.approx([value / length for value in wanted], abs=1e-5)


def wait_for(condition: Any, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_killed_in_the_middle_and_run_again_it_ends_the_same(place: Place) -> None:
    sides = place.sides
    fill(sides, 30)
    (place.folder / "hold").touch()
    how = ("--embed-command", place.command, "--embed-batch", "2", "--batch-size", "3")
    killed = place.start("run", *how)
    wait_for(lambda: len(sides.points(sides.new)) >= 3, killed)
    killed.send_signal(signal.SIGKILL)
    killed.wait(timeout=60)
    assert 3 <= len(sides.points(sides.new)) < 30
    (place.folder / "hold").unlink()
    code, out, said = place.run("run", *how)
    assert code == 0, said
    assert "copied" in out
    demand_embedded(sides)
    assert not [one for one in sides.markers().values() if one["of"] != sides.old]


def test_asked_to_end_while_a_batch_is_made_it_ends_after_it_and_does_not_switch(place: Place) -> None:
    sides = place.sides
    fill(sides, 12)
    (place.folder / "hold").touch()
    how = ("--embed-command", place.command, "--batch-size", "3", "--yes")
    asked = place.start("switch", *how)
    wait_for(lambda: len(sides.points(sides.new)) >= 3, asked)
    asked.send_signal(signal.SIGTERM)
    assert asked.stderr is not None
    first = asked.stderr.readline()
    (place.folder / "hold").unlink()
    _, said = asked.communicate(timeout=120)
    assert "Ending after the batch under way" in first + said and "was not switched" in said
    assert asked.returncode == 3 and sides.target() == sides.old
    code, _, said = place.run("switch", *how)
    assert (code, sides.target()) == (0, sides.new), said
    demand_embedded(sides)


def test_a_function_embeds_and_what_it_prints_is_not_in_the_report(place: Place) -> None:
    sides = place.sides
    fill(sides, 7)
    code, out, said = place.run("run", "--embed", "made:embed", "--json", "--rate", "1000")
    assert (code, out[0], MARKER in out) == (0, "{", False), said
    assert "standard output is for the report" in said
    demand_embedded(sides)
    sides.set(sides.old, 3, text="another text")
    code, _, said = place.run("run", "--embed", "made:embed")
    assert code == 0, said
    demand_embedded(sides)
    code, _, said = place.run("run")
    assert code == 2 and "give --embed-command or --embed again" in said
