"""The README's examples are run: its Python code as it stands, and each question whose answer it shows."""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from comemory import Candidate, duplicate_key, is_expired, victims
from comemory.catalog import PAYLOAD_INDEXES
from sample.__main__ import main
from sample.content import COLLECTIONS, DIMENSIONS, points

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ANSWERS = re.findall(r"```console\n\$ make ask (.+?)\n(.*?)```", README, re.DOTALL)
[(EXAMPLE, PRINTED)] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
KEY = "readme-key"

pytestmark = pytest.mark.embedded_only("writes to the collections by the names that the README shows")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server(start_endpoint: Callable[..., Any]) -> str:
    """An endpoint with the three collections, before the sample is loaded."""
    url: str = start_endpoint(api_key=KEY).url
    with warnings.catch_warnings(action="ignore"):  # a key without TLS, on this machine
        client = QdrantClient(url=url, api_key=KEY, timeout=60, check_compatibility=False)
    for kind, name in COLLECTIONS.items():
        vector = models.VectorParams(size=DIMENSIONS[kind], distance=models.Distance.COSINE)
        client.create_collection(name, vectors_config={"dense": vector})
    client.close()
    return url


@pytest.fixture
def run(server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `python -m sample ...` in this process, on that endpoint: exit code, output and errors."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str, url: str = server, key: str = KEY) -> tuple[int, str, str]:
        monkeypatch.setenv("QDRANT_URL", url)
        monkeypatch.setenv("QDRANT_API_KEY", key)
        monkeypatch.setattr(sys, "argv", ["sample", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


@pytest.fixture
def loaded(run: Run) -> None:
    """Loading again is cheap and changes nothing, so each test can ask for it."""
    code, _, errors = run("load")
    assert (code, errors) == (0, "")


def test_it_shows_several_answers() -> None:
    assert len(ANSWERS) >= 4


def test_the_collections_shown_are_those_of_the_catalogue_with_what_the_jobs_leave_of_the_sample() -> None:
    rows = re.findall(r"^(cm_\w+) +(\d+) +(\d+)  dense (\d+)$", README, re.MULTILINE)
    kept = [point for point in points() if not is_expired(point.payload, datetime.now(UTC))]
    held = Counter(point.type for point in kept)
    copies: dict[Any, list[Candidate]] = defaultdict(list)
    for point in kept:
        if (key := duplicate_key(point.payload)) is not None:
            copies[point.type, key].append(Candidate.of(point.id, point.payload))
    for (kind, _), group in copies.items():
        held[kind] -= len(victims(group))
    assert [(name, int(count), int(indexes), int(size)) for name, count, indexes, size in rows] == [
        (name, held[kind], len(PAYLOAD_INDEXES), DIMENSIONS[kind]) for kind, name in COLLECTIONS.items()
    ]


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(("words", "shown"), ANSWERS, ids=[words for words, _ in ANSWERS])
def test_the_answer_shown_is_the_one_given(run: Run, words: str, shown: str) -> None:
    given = dict(word.split("=", 1) for word in shlex.split(words))
    code, out, _ = run("ask", "--as", given["AS"], "--", given["Q"])
    assert code == 0
    assert lines(out) == lines(shown)


def lines(text: str) -> list[str]:
    """Without the spaces that fill a line up, and without empty lines at either end."""
    return [line.rstrip() for line in text.strip("\n ").splitlines()]


def test_the_python_example_prints_what_is_shown(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QDRANT_URL", server)
    monkeypatch.setenv("QDRANT_API_KEY", KEY)
    for _ in range(2):
        with warnings.catch_warnings(action="ignore"):
            exec(compile(EXAMPLE, "README.md", "exec"), {})
        assert capsys.readouterr().out == PRINTED


@pytest.mark.usefixtures("loaded")
def test_the_demonstration_lets_nothing_cross(run: Run) -> None:
    code, out, _ = run("ask", "--demo")
    assert code == 0
    assert re.search(r"\b[1-9]\d* passages shown; 0 of another tenant than the asker's\.", out)


@pytest.mark.usefixtures("loaded")
def test_a_second_load_reports_that_nothing_changed(run: Run) -> None:
    code, out, errors = run("load")
    assert (code, errors) == (0, "")
    rows = re.findall(r"(cm_\w+)\s+(\d+)\s+(\d+)\s+(\d+)", out)
    assert {name: (added, changed) for name, added, changed, _ in rows} == dict.fromkeys(
        COLLECTIONS.values(), ("0", "0")
    )


def test_a_wrong_key_a_wrong_address_and_a_wrong_name_end_in_one_sentence(run: Run) -> None:
    code, out, errors = run("load", key="mistaken-key")
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert "QDRANT_API_KEY" in errors
    assert "mistaken-key" not in errors
    code, out, errors = run("load", url="http://127.0.0.1:1")
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert "no answer from the server" in errors
    code, out, errors = run("ask", "anything", "--as", "agt_ghost")
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert "nobody named 'agt_ghost'" in errors
