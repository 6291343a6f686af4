"""Vectors made anew by a real process and by a function: what is asked of them, and what their faults do."""

from __future__ import annotations

import select
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError, SettingsError
from ops.rollover.embed_command import Command, LinesTooMany
from ops.rollover.embedding import Embedder, EmbeddingFailed, Function, checked

ECHO = """
import json, sys
for line in sys.stdin:
    text = json.loads(line)
    print(json.dumps([len(text), text.count("a"), text.count("\\n"), 1]), flush=True)
"""


def program(folder: Path, source: str) -> str:
    file = folder / "embed.py"
    file.write_text(source)
    return shlex.join([sys.executable, str(file)])


def embedder(made: Any, **more: Any) -> Embedder:
    return Embedder(made, 4, **{"pause": 0.0, **more})


def test_a_command_stays_for_many_batches_and_keeps_the_order(tmp_path: Path) -> None:
    command = Command(program(tmp_path, ECHO), 4)
    made = embedder(command, batch=7)
    texts = [f"{'a' * number}\nline й \U0001f600 \ud800".replace("\ud800", "") for number in range(50)]
    found = made.vectors(texts)
    assert found == [[float(len(t)), float(t.count("a")), 1.0, 1.0] for t in texts]
    process = command._process
    assert made.vectors(["aa"]) == [[2.0, 2.0, 0.0, 1.0]] and command._process is process
    made.close()
    assert command._process is None


def test_more_than_two_pipes_hold_does_not_lock_both_sides(tmp_path: Path) -> None:
    made = embedder(Command(program(tmp_path, ECHO), 4), batch=3000)
    found = made.vectors(["a" * 500] * 3000)
    made.close()
    assert len(found) == 3000


def test_a_command_sees_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QDRANT_API_KEY", "COMEMORY_QDRANT__API_KEY", "comemory_qdrant__api_key", "EMBEDDING_KEY"):
        monkeypatch.setenv(name, "s3cret")
    source = """
import json, os, sys
for line in sys.stdin:
    hidden = [key for key in os.environ if key.upper().startswith(("QDRANT", "COMEMORY"))]
    print(json.dumps([len(hidden), int("EMBEDDING_KEY" in os.environ), 0, 0]), flush=True)
"""
    made = embedder(Command(program(tmp_path, source), 4))
    assert made.vectors(["x"]) == [[0.0, 1.0, 0.0, 0.0]]
    made.close()


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    made = embedder(Command(f"{program(tmp_path, ECHO)} ; touch {tmp_path}/made", 4))
    assert made.vectors(["x"])
    made.close()
    assert not (tmp_path / "made").exists()


def test_a_batch_that_failed_is_tried_again_with_a_new_process(tmp_path: Path) -> None:
    source = f"""
import pathlib
count = pathlib.Path({str(tmp_path / "count")!r})
number = int(count.read_text()) if count.exists() else 0
count.write_text(str(number + 1))
if number < 2:
    raise SystemExit(1)
{ECHO}"""
    made = embedder(Command(program(tmp_path, source), 4), tries=3)
    assert made.vectors(["aa", "b"]) == [[2.0, 2.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]]
    made.close()
    assert (tmp_path / "count").read_text() == "3"


def answering(line: str) -> str:
    """A program that answers every text so."""
    return f"import sys\nfor text in sys.stdin: print({line!r}, flush=True)"


def asked(then: str) -> str:
    """A program that does so as soon as it has a text."""
    return f"import sys\nsys.stdin.readline()\n{then}"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import sys; sys.stdin.read(1)", "it ended after 0 of 2 lines"),
        ("import sys, time\nfor text in sys.stdin: time.sleep(600)", "no answer within 0.5 s"),
        (answering("Loading"), "no JSON"),
        (answering("[1, 2, 3, NaN]"), "no JSON"),
        (answering("[1, 2]"), "vector 1 has 2 numbers; the collection's have 4"),
        (answering("[1, 2, 3, true]"), "holds something that is no number"),
        (answering("[1, 2, 3, 1e39]"), "infinite, too large, or none"),
        (asked("print('[1,2,3,4]\\n' * 3, end='', flush=True)\nsys.stdin.read()"), "more than 2 lines"),
        (asked("while True: sys.stdout.write('9' * 4096)"), "writes more than vectors of this size"),
    ],
)  # fmt: skip
def test_what_a_command_does_wrong_is_said_without_a_text(tmp_path: Path, source: str, why: str) -> None:
    timeout = 0.5 if "no answer" in why else 60.0
    made = embedder(Command(program(tmp_path, source), 4, timeout=timeout), tries=2)
    with pytest.raises(OpsError) as failed:
        made.vectors(["secret one", "secret two"])
    made.close()
    said = str(failed.value)
    assert why in said and "2 tries" in said and "secret" not in said
    assert said.startswith(f"--embed-command {sys.executable} failed on a batch of 2 texts")


STRAY = """
import json, os, sys
for number, line in enumerate(sys.stdin, 1):
    print(json.dumps([number, 0, 0, 0]), flush=True)
    if number == 3:
        print(json.dumps([9, 9, 9, 9]), flush=True)
"""


def test_what_a_command_writes_before_it_is_asked_is_no_answer(tmp_path: Path) -> None:
    command = Command(program(tmp_path, "import sys\nprint('[1, 2, 3, 4]', flush=True)\nsys.stdin.read()"), 4)
    started = command._start()
    select.select([started.stdout], [], [], 60)  # the line has come
    with pytest.raises(EmbeddingFailed, match="before it was asked"):
        command(["a"])


def test_a_line_too_many_after_a_batch_ends_it_for_good(tmp_path: Path) -> None:
    command = Command(program(tmp_path, STRAY), 4)
    made = embedder(command, batch=1)
    assert made.vectors(["a", "b"]) == [[1.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]
    with pytest.raises(LinesTooMany, match=r"vectors may have gone to the wrong points.*empty the new"):
        made.vectors(["c"])
        assert command._process is not None
        select.select([command._process.stdout], [], [], 60)  # the stray line has come
        made.vectors(["d"])
    assert command._process is None


def test_a_line_too_many_after_the_last_batch_is_found_at_the_end(tmp_path: Path) -> None:
    source = f"{ECHO}\nprint('[1, 2, 3, 4]')"
    made = embedder(Command(program(tmp_path, source), 4))
    assert made.vectors(["aa"]) == [[2.0, 2.0, 0.0, 1.0]]
    with pytest.raises(LinesTooMany):
        made.close()


def test_a_command_that_does_not_look_at_its_input_until_it_ends(tmp_path: Path) -> None:
    source = "import time\nprint('[1, 2, 3, 4]\\n' * 2, end='', flush=True)\ntime.sleep(600)"
    made = embedder(Command(program(tmp_path, source), 4), tries=1)
    with pytest.raises(OpsError):
        made.vectors(["x" * 1_000_000] * 2)
    made.close()


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(OpsError, match="it cannot be started: No such file"):
        embedder(Command("/nowhere/at/all --key s3cret", 4), tries=1).vectors(["x"])
    for wrong in ("", "'"):
        with pytest.raises(SettingsError, match="--embed-command"):
            Command(wrong, 4)


def test_a_function_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_for_this_test.py").write_text(
        "def embed(texts):\n    return [(len(t), 0, 0, 1) for t in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert embedder(Function("made_for_this_test:embed"), batch=2).vectors(["a", "bb", "ccc"]) == [
        [1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 1.0], [3.0, 0.0, 0.0, 1.0],
    ]  # fmt: skip
    for wrong, why in (
        ("nothing", "not of the form"), ("no_such_module:f", "cannot import"), ("json:nothing", "cannot import"),
        ("sys:path", "is no function"),
    ):  # fmt: skip
        with pytest.raises(SettingsError, match=why):
            Function(wrong)
    with pytest.raises(OpsError, match="it raised JSONDecodeError") as failed:
        embedder(_Raising(), tries=1).vectors(["secret"])
    assert "secret" not in str(failed.value)


class _Raising(Function):
    def __init__(self) -> None:
        super().__init__("json:loads")
        self._function: Callable[[list[str]], object] = _loads


def _loads(texts: Sequence[str]) -> object:
    import json  # noqa: PLC0415

    return json.loads(texts[0])


def test_the_wait_between_two_tries_ends_when_asked_to() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(OpsError, match=r"\(1 try\)"):
        Embedder(_Raising(), 4, pause=3600, stop=stop).vectors(["x"])


def test_arrays_of_other_libraries_are_taken() -> None:
    numpy = pytest.importorskip("numpy")
    assert checked(numpy.ones((2, 4), dtype="float32"), 2, 4) == [[1.0] * 4] * 2
    assert checked([list(numpy.ones(4, dtype="float32"))], 1, 4) == [[1.0] * 4]
    with pytest.raises(EmbeddingFailed, match="too large"):
        checked([[10**400, 0, 0, 0]], 1, 4)
    with pytest.raises(EmbeddingFailed, match="NaN"):
        checked(numpy.full((1, 4), float("nan")), 1, 4)
    with pytest.raises(EmbeddingFailed, match="3 vectors for 2 texts"):
        checked([[1.0] * 4] * 3, 2, 4)
    with pytest.raises(EmbeddingFailed, match="no list for 1 texts"):
        checked({"a": 1}, 1, 4)
