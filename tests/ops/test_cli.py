"""The command line over a real endpoint: tables, JSON, exit codes, and that nothing is deleted unasked."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from qdrant_client import QdrantClient, models

from comemory.catalog import PAYLOAD_INDEXES
from ops.cli import main
from tests.support.fault_proxy import Delay, FaultProxy, Status

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime.now(UTC)


def payload(tenant: str, *, days: int | None, age: int) -> dict[str, Any]:
    number = uuid.uuid4().hex
    made: dict[str, Any] = {
        "schema_version": "cm_payload_v1", "tenant_id": tenant, "team_id": "team_core", "project_id": None,
        "agent_id": None, "owner_kind": "user", "owner_id": "user_1", "scope": "docs", "visibility": "public",
        "indexed": True, "source_kind": "document", "source_id": f"doc_{number}",
        "chunk": {"chunk_id": f"chk_{number}", "chunk_idx": 0}, "fingerprint": f"sha256:{number}{number}",
        "created_at": (NOW - timedelta(days=age)).isoformat(),
    }  # fmt: skip
    return made if days is None else made | {"ttl_days": days}


@pytest.fixture
def collection(qdrant: QdrantClient, collection_name: str) -> str:
    """Three expired points of t_a and one of t_b, with four that stay."""
    qdrant.create_collection(
        collection_name, vectors_config={"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)}
    )
    for index in PAYLOAD_INDEXES:
        qdrant.create_payload_index(collection_name, index.field, index.field_schema(), wait=True)
    payloads = [payload("t_a", days=1, age=9) for _ in range(3)] + [payload("t_b", days=1, age=5)]
    payloads += [payload("t_a", days=30, age=9), payload("t_a", days=None, age=900)]
    payloads += [payload("t_b", days=None, age=1) for _ in range(2)]
    qdrant.upsert(
        collection_name,
        [
            models.PointStruct(id=number, vector={"dense": [1, 0, 0, number + 1]}, payload=one)
            for number, one in enumerate(payloads)
        ],
        wait=True,
    )
    return collection_name


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def environment(qdrant_url: str, collection_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("COMEMORY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COMEMORY_QDRANT__URL", qdrant_url)
    monkeypatch.setenv("COMEMORY_QDRANT__RETRY_FOR", "2")
    monkeypatch.setenv("COMEMORY_COLLECTIONS__INCLUDE", json.dumps([collection_name]))
    if (key := os.environ.get("QDRANT_API_KEY")) is not None:
        monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", key)


@pytest.fixture
def run(environment: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process: exit code, stdout, stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["comemory", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return int(ended.value.code or 0), said.out, said.err

    return call


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith("test_")]


def test_a_dry_run_and_a_run_print_the_same_table(run: Run, collection: str, qdrant: QdrantClient) -> None:
    code, dry, _ = run("ttl", "--dry-run")
    assert code == 0
    assert [(row[1], row[2], row[3]) for row in table(dry)] == [("t_a", "docs", "3"), ("t_b", "docs", "1")]
    assert "nothing was changed" in dry
    assert qdrant.count(collection).count == 8
    code, done, _ = run("ttl", "--yes")
    assert (code, table(done)) == (0, table(dry))
    assert qdrant.count(collection).count == 4
    assert run("ttl", "--dry-run", "--exit-code")[0] == 0


def test_without_a_terminal_nothing_is_deleted_unasked(run: Run, collection: str, qdrant: QdrantClient) -> None:
    for arguments in (["ttl"], ["dedup"], ["ttl", "--json"]):
        code, out, said = run(*arguments)
        assert (code, out) == (2, "")
        assert "there is nobody to ask: give --yes to delete, or --dry-run" in said
    assert qdrant.count(collection).count == 8


@pytest.mark.parametrize(("answer", "left", "code"), [("y\n", 4, 0), ("n\n", 8, 0)])
def test_at_a_terminal_it_asks(
    environment: None, collection: str, qdrant: QdrantClient, answer: str, left: int, code: int
) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ops", "ttl"], cwd=ROOT, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal
    )
    os.close(terminal)
    said = b""
    while b"Delete these 4 points" not in said:
        said += os.read(controller, 4096)
    assert qdrant.count(collection).count == 8
    os.write(controller, answer.encode())
    assert process.stdout is not None
    process.stdout.read()
    assert process.wait(timeout=60) == code
    os.close(controller)
    assert qdrant.count(collection).count == left


def test_json_is_all_that_stdout_gets(run: Run, collection: str) -> None:
    code, out, _ = run("ttl", "--dry-run", "--json", "--tenant", "t_a", "--exit-code")
    found = json.loads(out)
    assert code == 4
    assert found.keys() == {
        "format", "job", "dry_run", "outcome", "started", "finished", "collections", "found", "handled", "skipped",
        "batches", "requests", "retries", "stopped", "rows", "problems", "details",
    }  # fmt: skip
    assert (found["format"], found["job"], found["dry_run"], found["found"]) == (1, "ttl", True, 3)
    (row,) = found["rows"]
    assert (row["collection"], row["tenant"], row["scope"], row["count"]) == (collection, "t_a", "docs", 3)
    assert sorted(row["examples"]) == ["0", "1", "2"]
    assert row["oldest"].endswith("Z")


def test_limits_end_a_run_in_part(run: Run, collection: str, qdrant: QdrantClient) -> None:
    code, out, _ = run("ttl", "--yes", "--max-points", "2", "--batch", "1")
    assert code == 3
    assert "ended early: point budget of 2 used up" in out
    assert qdrant.count(collection).count == 6
    assert run("ttl", "--dry-run", "--grace", "30d", "--exit-code")[0] == 0


def test_a_report_is_reviewed_before_it_is_applied(
    run: Run, collection: str, qdrant: QdrantClient, tmp_path: Path
) -> None:
    ((first, *_), _) = qdrant.scroll(collection, limit=1, with_payload=True)
    copy = models.PointStruct(id=100, vector={"dense": [1, 0, 0, 1]}, payload=first.payload)
    qdrant.upsert(collection, [copy], wait=True)
    report = tmp_path / "report.jsonl"
    assert run("dedup", "--report", str(report))[0] == 2
    code, out, _ = run("dedup", "--dry-run", "--report", str(report))
    assert (code, len(table(out)), report.exists()) == (0, 1, True)
    assert qdrant.count(collection).count == 9
    code, out, _ = run("dedup", "--from-report", str(report), "--yes")
    assert (code, len(table(out))) == (0, 1)
    assert qdrant.count(collection).count == 8


def test_audit_and_census(run: Run, collection: str, qdrant: QdrantClient, tmp_path: Path) -> None:
    qdrant.set_payload(collection, {"visibility": "everybody"}, points=[7], wait=True)
    code, out, _ = run("audit", "--exit-code")
    assert code == 4
    assert [row[1] for row in table(out)] == ["t_b"]
    assert run("audit", "--quarantine", str(tmp_path / "q"))[0] == 2
    code, _, _ = run("audit", "--deep", "--quarantine", str(tmp_path / "q"))
    listed = [json.loads(line) for line in (tmp_path / "q").read_text().splitlines()]
    assert 7 in [line["id"] for line in listed]
    code, out, _ = run("census", "--json")
    assert (code, json.loads(out)["found"]) == (0, 8)


def test_plan_has_the_exit_codes_of_terraform(run: Run, collection_name: str, tmp_path: Path) -> None:
    file = tmp_path / "declared.yaml"
    file.write_text(yaml.safe_dump([{"name": "cm_text_4_v99", "embedding_model": "m", "dimension": 4}]))
    code, out, _ = run("plan", "--declared", str(file), "--exit-code")
    assert code == 2
    assert "cm_text_4_v99: is not on the server (created)" in out
    assert run("plan", "--declared", str(file))[0] == 0
    file.write_text("[]")
    assert run("plan", "--declared", str(file), "--exit-code")[0] == 0
    file.write_text("[{name: 5}]")
    code, _, said = run("plan", "--declared", str(file), "--exit-code")
    assert code == 1
    assert "0.name: Input should be a valid string" in said
    assert run("plan")[0] == 2


def test_plan_shows_each_difference(run: Run, collection: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.stack.yaml"
    declared = {"name": collection, "embedding_model": "m", "dimension": 8, "alias": f"{collection}_now"}
    file.write_text(yaml.safe_dump({"config": {"comemory:collections": [declared]}}))
    code, out, _ = run("plan", "--declared", str(file), "--exit-code", "--json")
    kinds = {change["kind"] for change in json.loads(out)["changes"]}
    assert code == 2
    assert {"impossible", "in_place", "alias_wrong"} <= kinds
    assert run("plan", "--declared", str(file), "--collection", "other")[0] == 2


def test_doctor_says_what_to_do(run: Run, collection: str, qdrant: QdrantClient) -> None:
    code, out, _ = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert code == 0
    assert {checks[name]["verdict"] for name in ("connection", "version", "clock", "key: read", "key: write")} == {
        "ok"
    }
    assert checks[f"{collection}: indexes"]["verdict"] == "ok"
    assert "strict_mode_config.enabled" in checks[f"{collection}: strict mode"]["advice"]
    assert qdrant.count(collection).count == 8
    qdrant.delete_payload_index(collection, "tags", wait=True)
    assert run("doctor")[0] == 0, "filters on it are slow, no more"
    refusing = models.StrictModeConfig(enabled=True, unindexed_filtering_retrieve=False)
    qdrant.update_collection(collection, strict_mode_config=refusing)
    code, out, _ = run("doctor")
    assert code == 1
    assert "index on tags (keyword) is missing" in out
    assert "pulumi up" in out


@pytest.mark.embedded_only("looks after every collection of an endpoint of its own")
def test_doctor_names_a_collection_whose_type_it_was_not_told(
    run: Run, start_endpoint: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = start_endpoint().url
    client = QdrantClient(url=url, check_compatibility=False)
    for name in ("cm_text_4_v1", "cm_audio_4_v1", "other"):
        client.create_collection(
            name, vectors_config={"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)}
        )
    monkeypatch.setenv("COMEMORY_QDRANT__URL", url)
    monkeypatch.setenv("COMEMORY_COLLECTIONS__INCLUDE", "[]")
    checks = {check["name"]: check for check in json.loads(run("doctor", "--json")[1])["checks"]}
    assert checks["cm_audio_4_v1"]["verdict"] == "warning"
    assert "collections.types" in checks["cm_audio_4_v1"]["advice"]
    assert "other" not in checks
    monkeypatch.setenv("COMEMORY_COLLECTIONS__TYPES", '["text", "audio"]')
    checks = {check["name"]: check for check in json.loads(run("doctor", "--json")[1])["checks"]}
    assert "cm_audio_4_v1" not in checks
    assert "cm_audio_4_v1" in checks["collections"]["found"]


@pytest.mark.embedded_only("starts an endpoint with keys")
def test_a_key_that_may_only_read(
    run: Run, collection_name: str, start_endpoint: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = start_endpoint(api_key="all", read_only_api_key="looking")
    client = QdrantClient(url=endpoint.url, api_key="all", check_compatibility=False)
    name = "cm_text_4_v1"
    client.create_collection(
        name, vectors_config={"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)}
    )
    for index in PAYLOAD_INDEXES:
        client.create_payload_index(name, index.field, index.field_schema(), wait=True)
    client.upsert(
        name, [models.PointStruct(id=1, vector={"dense": [1, 0, 0, 0]}, payload=payload("t_a", days=1, age=9))]
    )
    monkeypatch.setenv("COMEMORY_QDRANT__URL", endpoint.url)
    monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", "looking")
    monkeypatch.setenv("COMEMORY_COLLECTIONS__INCLUDE", json.dumps([name]))
    code, out, _ = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert (code, checks["key: write"]["verdict"]) == (1, "failed")
    assert run("ttl", "--dry-run", "--exit-code")[0] == 4
    code, _, said = run("ttl", "--yes")
    assert code in (1, 3)
    assert "The API key has no right to" in said
    assert client.count(name).count == 1
    monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", "wrong-key")
    code, _, said = run("census")
    assert code == 1
    assert "refused the API key" in said
    assert "wrong-key" not in said


def test_a_busy_server_is_asked_again_and_an_absent_one_is_a_sentence(
    run: Run, collection: str, qdrant_url: str, qdrant: QdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultProxy(qdrant_url) as proxy:
        monkeypatch.setenv("COMEMORY_QDRANT__URL", proxy.url)
        proxy.script(Status(503), Status(429), Status(500), path="/points/delete")
        code, out, _ = run("ttl", "--yes", "--json")
        assert (code, json.loads(out)["retries"], json.loads(out)["handled"]) == (0, 3, 4)
        assert proxy.seen("POST", "/points/delete") == 4
        monkeypatch.setenv("COMEMORY_QDRANT__RETRY_FOR", "0.1")
        proxy.always(Status(503))
        code, out, said = run("collections")
        assert (code, out) == (1, "")
        assert said.startswith(f"comemory: Qdrant at {proxy.url} gave no answer to GET ")
        assert len(said.splitlines()) == 1


def test_ctrl_c_ends_after_the_batch_under_way(
    environment: None, collection: str, qdrant: QdrantClient, qdrant_url: str
) -> None:
    environment_of_process = dict(os.environ)
    process = subprocess.Popen(
        [sys.executable, "-m", "ops", "ttl", "--yes", "--json", "--batch", "1", "--points-per-second", "0.005"],
        cwd=ROOT, env=environment_of_process, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    # No deadline of the test's own: a machine may be slow, and a process that failed has ended.
    while qdrant.count(collection).count != 7 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate()
    assert process.returncode == 3, said.decode()
    assert "Ending after the batch under way" in said.decode()
    report = json.loads(out)
    assert report["stopped"] == "asked to stop"
    assert report["handled"] == 8 - qdrant.count(collection).count == 1


def test_ctrl_c_while_it_is_shown_what_would_go_ends_without_a_question(
    environment: None, collection: str, qdrant: QdrantClient, qdrant_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, terminal = pty.openpty()
    with FaultProxy(qdrant_url) as proxy:
        monkeypatch.setenv("COMEMORY_QDRANT__URL", proxy.url)
        proxy.script(Delay(3), path="/points/scroll")
        process = subprocess.Popen(
            [sys.executable, "-m", "ops", "ttl"], cwd=ROOT, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal
        )
        os.close(terminal)
        os.write(controller, b"y\n")  # an answer that is there already
        while not proxy.seen("POST", "/points/scroll") and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate()
    said = os.read(controller, 65536)
    os.close(controller)
    assert (process.returncode, b"Delete these" in said) == (3, False)
    assert b"Nothing was deleted." in said
    assert qdrant.count(collection).count == 8


def test_no_more_goes_than_was_shown(environment: None, collection: str, qdrant: QdrantClient) -> None:
    """The time is up before all is shown: what is agreed to is what was shown, and not what there is."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ops", "ttl", "--max-points", "2"],
        cwd=ROOT, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    os.write(controller, b"y\n")
    process.communicate()
    said = os.read(controller, 65536)
    os.close(controller)
    assert b"Delete these 2 points" in said
    assert qdrant.count(collection).count == 6


def test_settings_are_checked_and_shown(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("ttl: {batch: 7}\nqdrant: {api_key: very-secret}\n")
    assert run("settings", "check", "--settings", str(file))[0] == 0
    monkeypatch.setenv("COMEMORY_TTL__SCHEDULE__EVERY", "2h")
    code, out, _ = run("settings", "show", "--settings", str(file), "--json")
    shown = {row["key"]: (row["value"], row["from"]) for row in json.loads(out)}
    assert code == 0
    assert shown["ttl.batch"] == (7, "file")
    assert shown["ttl.schedule.every"] == ("PT2H", "environment")
    assert shown["dedup.batch"][1] == "default"
    assert shown["qdrant.api_key"] == ("**********", "file")
    assert "very-secret" not in out + run("settings", "show", "--settings", str(file))[1]
    file.write_text("ttl: {bacth: 7}")
    code, _, said = run("settings", "check", "--settings", str(file))
    assert code == 2
    assert "ttl.bacth: there is no such key; did you mean batch?" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ttl", "--dry-run", "--scope", "doc"], "--scope: 'doc' is none of docs, messages"),
        (["ttl", "--dry-run", "--tenant", ""], "--tenant: it is empty"),
        (["ttl", "--dry-run", "--grace", "soon"], "--grace: 'soon' is no duration"),
        (["ttl", "--dry-run", "--max-points", "0"], "--max-points: Input should be greater than or equal to 1"),
        (["census", "--settings", "/nowhere.yaml"], "Cannot read the settings file /nowhere.yaml"),
        (["nonsense"], "No such command"),
    ],
)
def test_wrong_usage_is_told_and_ends_with_2(run: Run, arguments: list[str], said: str) -> None:
    code, out, error = run(*arguments)
    assert (code, out) == (2, "")
    assert said in error


@pytest.fixture(autouse=True)
def quiet_logging() -> Iterator[None]:
    import logging  # noqa: PLC0415

    import structlog  # noqa: PLC0415

    before = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    logging.getLogger().handlers, logging.getLogger().level = before
    structlog.reset_defaults()


def test_without_its_packages_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(name='typer')")
    done = subprocess.run(
        [sys.executable, "-m", "ops", "doctor"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "typer is not installed" in done.stderr
    assert "pip install 'comemory[ops]'" in done.stderr
    assert "Traceback" not in done.stderr
