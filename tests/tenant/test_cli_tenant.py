"""`comemory tenant`: what it prints and asks, its exit codes, and that nothing goes unless the id was repeated."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from ops.cli import main
from tests.conftest import ROOT, Endpoint
from tests.support.memory import memory
from tests.tenant.server import INDEXES, everything, payload, put

pytestmark = pytest.mark.embedded_only("starts an endpoint with keys")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def endpoint(start_endpoint: Callable[..., Endpoint]) -> Endpoint:
    return start_endpoint(api_key="all", read_only_api_key="looking")


@pytest.fixture(scope="module")
def client(endpoint: Endpoint) -> Iterator[QdrantClient]:
    made = QdrantClient(url=endpoint.url, api_key="all", timeout=60, check_compatibility=False)
    yield made
    made.close()


@pytest.fixture
def collection(client: QdrantClient) -> Iterator[str]:
    """Three points of t_a, of which one is user_m's, and two of others."""
    with memory(client, indexes=INDEXES) as made:
        points = {number: payload("t_a") for number in range(2)}
        points |= {2: payload("t_a", owner_id="user_m", scope="memory"), 3: payload("t_b"), 4: payload("T_A")}
        put(client, made.name, points)
        yield made.name


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "erasures.jsonl"


@pytest.fixture
def run(endpoint: Endpoint, log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process: exit code, stdout, stderr."""
    for name in [name for name in os.environ if name.startswith("COMEMORY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COMEMORY_QDRANT__URL", endpoint.url)
    monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", "all")
    monkeypatch.setenv("COMEMORY_TENANT__LOG_FILE", str(log))

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["comemory", "tenant", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return int(ended.value.code or 0), said.out, said.err

    return call


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith("cm_")]


def test_a_dry_run_and_a_run_say_the_same(run: Run, collection: str, client: QdrantClient, log: Path) -> None:
    code, dry, said = run("erase", "t_a", "--dry-run")
    assert (code, client.count(collection).count, log.exists()) == (0, 5, False)
    assert [row[1:5] for row in table(dry)[:2]] == [
        ["t_a", "docs", "tenant", "2"],
        ["t_a", "memory", "tenant", "1"],
    ]
    assert [row[1:] for row in table(dry)[2:]] == [["docs", "2"], ["memory", "1"], ["(all", "others)", "2"]]
    assert "nothing was changed" in dry
    assert f"'{collection}': 1 of the points are another tenant's, 'T_A'; they stay." in said
    code, done, said = run("erase", "t_a", "--confirm", "t_a")
    assert (code, set(everything(client, collection))) == (0, {3, 4})
    assert table(done)[:2] == table(dry)[:2]
    assert [row[1:] for row in table(done)[2:]] == [
        ["docs", "2", "0"], ["memory", "1", "0"], ["(all", "others)", "2", "2"],
    ]  # fmt: skip
    assert "nothing of t_a is left" in said and f"Recorded in {log}" in said and "snapshots and backups" in said
    code, _, _ = run("erase", "t_a", "--confirm", "t_a")
    assert code == 0
    assert run("log", "verify")[:2] == (
        0,
        f"4 entries, digest of the last: {run('log', 'verify')[1].split()[-1]}\n",
    )
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:1] + lines[2:]))
    code, _, said = run("log", "verify")
    assert code == 1 and "line 2 does not follow" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t_a"], "There is nobody to ask: give --confirm 't_a' to erase"),
        (["t_a", "--json"], "There is nobody to ask"),
        (["t_a", "--yes"], "No such option"),
        (["t_a", "--confirm", "t_A"], "--confirm: 't_A' is not 't_a'. Nothing was erased."),
        (["t_a", "--confirm", ""], "is not 't_a'"),
        (["t_a", "--owner", "user_m", "--confirm", "t_a"], "'t_a' is not 't_a/user_m'"),
        (["t_a", "--confirm", "t_a/user_m"], "'t_a/user_m' is not 't_a'"),
        (["", "--confirm", ""], "TENANT: it is empty"),
        ([" ", "--confirm", " "], "TENANT: it is empty"),
        (["t_a", "--owner", "", "--confirm", "t_a/"], "--owner: it is empty"),
        (["t_\udcff", "--confirm", "t_\udcff"], "it is no UTF-8 text"),
        ([], "Missing argument"),
        (["t_a", "--confirm", "t_a", "--batch", "0"], "--batch"),
    ],
)
def test_unless_the_id_is_repeated_nothing_goes(
    run: Run, collection: str, client: QdrantClient, log: Path, arguments: list[str], said: str
) -> None:
    code, out, error = run("erase", *arguments)
    assert (code, out) == (2, "")
    assert said in error
    assert (client.count(collection).count, log.exists()) == (5, False)


@pytest.mark.parametrize(
    ("owner", "answer", "left", "code"), [(None, "t_a", 2, 0), (None, "T_A", 5, 0), ("user_m", "t_a/user_m", 4, 0)]
)
def test_at_a_terminal_the_id_is_typed(
    run: Run, collection: str, client: QdrantClient, owner: str | None, answer: str, left: int, code: int
) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "ops", "tenant", "erase", "t_a", *(["--owner", owner] if owner else [])]
    process = subprocess.Popen(command, cwd=ROOT, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    said = b""
    while b"Type t_a" not in said:
        said += os.read(controller, 4096)
    assert client.count(collection).count == 5
    os.write(controller, f"{answer}\n".encode())
    assert process.stdout is not None
    process.stdout.read()
    assert process.wait(timeout=300) == code
    os.close(controller)
    assert client.count(collection).count == left


def test_json_is_all_that_stdout_gets(run: Run, collection: str) -> None:
    code, out, _ = run("erase", "t_a", "--owner", "user_m", "--confirm", "t_a/user_m", "--json")
    report = json.loads(out)
    assert (code, report["job"], report["handled"]) == (0, "tenant erase", 1)
    assert report["details"]["erasure"]["proven"] is True
    assert report["details"][collection]["others"] == {"before": 4, "after": 4}


def test_a_point_of_two_tenants_is_left_and_the_exit_code_says_so(
    run: Run, collection: str, client: QdrantClient
) -> None:
    put(client, collection, {9: payload(["t_a", "t_b"])})
    code, _, said = run("erase", "t_a", "--confirm", "t_a")
    assert (code, set(everything(client, collection))) == (3, {3, 4, 9})
    assert "1 of the points in" in said and "such as 9: left alone" in said


def test_a_key_that_may_only_read_exports_and_erases_nothing(
    run: Run, collection: str, client: QdrantClient, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", "looking")
    assert run("erase", "t_a", "--dry-run")[0] == 0
    code, _, said = run("erase", "t_a", "--confirm", "t_a")
    assert (code, client.count(collection).count) == (1, 5)
    assert "The API key has no right to" in said and "is left" not in said
    begun, ended = (json.loads(line) for line in log.read_text().splitlines())
    assert (begun["event"], ended["erased"], ended["proven"]) == ("begun", {}, False)
    assert "no right" in ended["error"]
    output = tmp_path / "t_a.jsonl"
    code, out, _ = run("export", "t_a", "--output", output, "--collection", collection)
    assert code == 0
    assert "3 found, 3 handled" in out
    assert len(output.read_text().splitlines()) == 3
    code, out, error = run("export", "t_a", "--output", output)
    assert (code, out) == (2, "")
    assert "is there already" in error


def test_an_absent_server_leaves_an_export_to_go_on_with(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMEMORY_QDRANT__URL", "http://127.0.0.1:1")
    monkeypatch.setenv("COMEMORY_QDRANT__RETRY_FOR", "0.05")
    code, _, said = run("export", "t_a", "--output", tmp_path / "t_a.jsonl")
    assert code == 1
    assert "gave no answer" in said
    code, _, said = run("erase", "t_a", "--confirm", "t_a")
    assert code == 1
    assert "gave no answer" in said and "nothing of t_a is left" not in said
