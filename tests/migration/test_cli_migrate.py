"""`comemory migrate`: what it prints, its exit codes, and that nothing is written unasked."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from ops.cli import main
from ops.session import Session
from tests.conftest import SERVER_KEY, Endpoint
from tests.migration.sides import DENSE, collection, everything, put, source_of, unique

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    qdrant_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run a command in this process, with its state in a folder of the test: exit code, stdout, stderr."""
    for name in [name for name in os.environ if name.startswith("COMEMORY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COMEMORY_QDRANT__URL", qdrant_url)
    monkeypatch.setenv("COMEMORY_QDRANT__RETRY_FOR", "2")
    if SERVER_KEY:
        monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", SERVER_KEY)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(
            sys, "argv", ["comemory", "migrate", *map(str, arguments), "--state", str(tmp_path / "state")]
        )
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return int(ended.value.code or 0), said.out, said.err

    return call


@pytest.fixture(scope="module")
def session(qdrant_url: str) -> Iterator[Session]:
    with Session(qdrant_url, retry_for=30) as made:
        yield made


@pytest.fixture
def target(session: Session) -> Iterator[str]:
    with collection(session, unique("cm_text"), {"vectors": {"dense": DENSE}}) as name:
        yield name


@pytest.fixture
def source(session: Session) -> Iterator[str]:
    with source_of(session, "langchain") as name:
        yield name


@pytest.fixture
def rules(tmp_path: Path, source: str, target: str) -> Path:
    file = tmp_path / "rules.yaml"
    rule = {"name": "handbooks", "collections": source, "agent": "agt_helion", "scope": "docs"}
    values = {"tenant": "t_daarion", "target": target, "rules": [rule]}
    file.write_text(json.dumps({**values, "zone": "UTC", "created_at": "2024-01-01T00:00:00Z"}))
    return file


def test_plan_shows_run_writes_and_verify_agrees(
    run: Run, rules: Path, source: str, target: str, session: Session
) -> None:
    code, out, said = run("plan", "--rules", rules)
    assert code == 0
    assert next(line.split() for line in out.splitlines() if line.startswith(source)) == [
        source, "61", "langchain", "61", "61", "0", "0",
    ]  # fmt: skip
    assert "handbooks" in out and "private, owner: agent" in out
    assert "No rule is about" in said and target in said
    assert session.count(target) == 0

    code, out, _ = run("run", "--rules", rules, "--yes")
    assert (code, session.count(target)) == (0, 61)
    assert "61 found, 61 handled in 1 batch" in out
    code, out, _ = run("verify", "--rules", rules)
    assert code == 0
    assert "digests of ids, payloads and vectors are equal" in out
    stored = everything(session, target)
    assert run("run", "--rules", rules, "--yes")[0] == 0
    assert everything(session, target) == stored


def test_what_has_no_place_is_shown_first_and_the_exit_code_says_so(
    run: Run, rules: Path, target: str, session: Session, tmp_path: Path
) -> None:
    values = json.loads(rules.read_text())
    del values["created_at"]
    rules.write_text(json.dumps(values))
    code, out, _ = run("plan", "--rules", rules)
    assert code == 3
    assert "created_at.missing" in out and "declare `created_at` in rule 'handbooks'" in out
    code, _, said = run("run", "--rules", rules, "--yes")
    assert (code, session.count(target)) == (3, 54)
    assert f"7 points have no place; see {tmp_path / 'state' / 'quarantine.jsonl'}" in said
    assert run("verify", "--rules", rules)[0] == 3
    assert run("run", "--rules", rules, "--created-at", "2024-01-01T00:00:00Z", "--yes")[0] == 0
    assert session.count(target) == 61


def test_json_is_all_that_stdout_gets(run: Run, rules: Path, source: str) -> None:
    code, out, _ = run("plan", "--rules", rules, "--json")
    (found,) = json.loads(out)["collections"]
    assert (code, found["collection"], found["shapes"], found["mapped"]) == (0, source, {"langchain": 61}, 61)
    code, out, _ = run("run", "--rules", rules, "--yes", "--json")
    assert (code, json.loads(out)["handled"], json.loads(out)["job"]) == (0, 61, "migrate run")
    code, out, _ = run("verify", "--rules", rules, "--json")
    assert (code, json.loads(out)["rows"]) == (0, [])


def test_without_a_terminal_nothing_is_written_unasked(
    run: Run, rules: Path, target: str, session: Session
) -> None:
    code, out, said = run("run", "--rules", rules)
    assert (code, session.count(target)) == (2, 0)
    assert "handbooks" in out
    assert "nobody to ask: give --yes" in said


def test_a_difference_is_an_error(run: Run, rules: Path, target: str, session: Session) -> None:
    run("run", "--rules", rules, "--yes")
    changed = everything(session, target)[0]
    put(session, target, [{**changed, "payload": {**changed["payload"], "visibility": "public"}}])
    code, out, _ = run("verify", "--rules", rules)
    assert code == 1
    assert "payload differs (rule handbooks)" in out and changed["id"] in out


def test_the_built_in_rules_need_a_tenant_and_a_target_only(run: Run, target: str, session: Session) -> None:
    name = "druid_legal_kb"
    if name in session.collections():
        pytest.skip(f"the server of QDRANT_URL has a collection {name}")
    with collection(session, name, {"vectors": DENSE}):
        put(
            session,
            name,
            [{"id": 7, "vector": [1.0] * 8, "payload": {"text": "§ 1", "created_at": "2025-01-01T00:00:00Z"}}],
        )
        asked = ("run", "--collection", name, "--tenant", "t_daarion", "--target", target, "--yes")
        assert run(*asked)[0] == 0
        (point,) = everything(session, target)
    assert point["payload"]["agent_id"] == "agt_druid"
    assert (point["payload"]["tags"], point["payload"]["visibility"]) == (["legal_kb"], "private")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("plan", "--rules", "none.yaml"), 2, "none.yaml"),
        (("plan", "--zone", "Mars"), 2, "time zone"),
        (("plan", "--tenant", "daarion"), 2, "does not begin with t_"),
        (("plan", "--created-at", "2024-09-01"), 2, "names no offset; write it as"),
        (("plan", "--collection", "nowhere"), 1, "it is not on the source"),
        (("plan", "--source-url", "http://127.0.0.1:1"), 1, "gave no answer"),
        (("plan", "--source-url", "ftp://x"), 2, "--source-url"),
        (("plan", "--source-key-file", "/none"), 2, "cannot read /none"),
    ],
)
def test_a_mistake_is_one_sentence(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    ended, out, error = run(*arguments)
    assert (ended, out) == (code, "")
    assert said in error


def test_nothing_to_migrate_is_no_success(run: Run, tmp_path: Path, target: str) -> None:
    file = tmp_path / "nothing.yaml"
    file.write_text(json.dumps({"builtin": False, "rules": [{"name": "r", "collections": "no_such_thing"}]}))
    for command in (("plan",), ("run", "--yes"), ("verify",)):
        code, out, said = run(*command, "--rules", file)
        assert (code, out) == (1, "")
        assert "No rule is about any collection of" in said and target in said


def test_the_plan_says_who_would_read(run: Run, rules: Path) -> None:
    values = json.loads(rules.read_text())
    for more, said in (
        ({"visibility": "public"}, "public: all of t_daarion, owner: agent"),
        ({"visibility": "public", "team": "team_core"}, "public: team_core, owner: agent"),
        ({"visibility": "confidential", "acl": {"read_team_ids": ["team_a"], "read_role_ids": ["role_b"]}},
         "confidential: team_a, role_b, owner: agent"),
        ({"visibility": "confidential"}, "confidential, owner: agent"),
    ):  # fmt: skip
        rules.write_text(json.dumps({**values, "rules": [{**values["rules"][0], **more}]}))
        assert said in run("plan", "--rules", rules)[1]


def test_one_collection_alone_ends_no_others_run_and_keeps_its_quarantine(
    run: Run, rules: Path, source: str, target: str, session: Session, tmp_path: Path
) -> None:
    values = json.loads(rules.read_text())
    del values["created_at"]
    with source_of(session, "dify") as other:
        values["rules"][0]["collections"] = f"{source}|{other}"
        rules.write_text(json.dumps(values))
        for name, count in ((source, 54), (other, 0)):
            before = session.count(target)
            code, _, said = run("run", "--rules", rules, "--collection", name, "--yes")
            assert (code, session.count(target) - before) == (3, count)
            assert str(tmp_path / "state" / f"only-{name}" / "quarantine.jsonl") in said
        lines = {name: tmp_path / "state" / f"only-{name}" / "quarantine.jsonl" for name in (source, other)}
        assert {name: len(file.read_bytes().splitlines()) for name, file in lines.items()} == {source: 7, other: 54}
        assert not (tmp_path / "state" / "checkpoint.json").exists()


def test_a_run_says_what_was_there_and_writes_over_it_only_when_asked(
    run: Run, rules: Path, target: str, session: Session
) -> None:
    values = json.loads(rules.read_text())
    rules.write_text(json.dumps({**values, "rules": [{**values["rules"][0], "visibility": "public"}]}))
    assert run("run", "--rules", rules, "--yes")[0] == 0
    rules.write_text(json.dumps(values))
    code, _, said = run("run", "--rules", rules, "--yes")
    assert (code, "61 of them were in the target already" in said) == (0, True)
    assert run("verify", "--rules", rules)[0] == 1
    code, _, said = run("run", "--rules", rules, "--replace", "--yes")
    assert (code, "already" in said) == (0, False)
    assert run("verify", "--rules", rules)[0] == 0
    assert {point["payload"]["visibility"] for point in everything(session, target)} == {"private"}


def test_a_key_for_the_source_is_its_only_one_and_never_shown(
    run: Run, rules: Path, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    start_endpoint: Callable[..., Endpoint],
) -> None:  # fmt: skip
    right, wrong = "key-of-the-source", "key-of-nobody"
    endpoint = start_endpoint(api_key=right)
    if not SERVER_KEY:
        monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", "key-of-the-target")
    key = tmp_path / "key"
    key.write_text(wrong)
    asked = ("run", "--rules", rules, "--yes", "--source-url", endpoint.url)
    for more in ((), ("--source-key-file", key)):
        code, out, said = run(*asked, *more)
        assert (code, out) == (1, "")
        assert "The source: " in said and "--source-key-file" in said
        assert "key-of-" not in said
    key.write_text(right)
    with Session(endpoint.url, api_key=SecretStr(right)) as there, source_of(there, "langchain", source):
        code, out, said = run(*asked, "--source-key-file", key)
    endpoint.stop()
    assert (code, "key-of-" in out + said) == (0, False)
    files = list((tmp_path / "state").iterdir())
    assert len(files) == 3
    assert not any("key-of-" in file.read_text() for file in files)
