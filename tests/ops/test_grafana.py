"""`comemory dashboards push` against a server with the rules of Grafana's API."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from ops.boards import MARK, Push
from ops.cli.app import app
from ops.errors import OpsError, SettingsError
from ops.grafana import Grafana
from tests.support.grafana_server import GrafanaServer

RUN = CliRunner()


@pytest.fixture
def grafana() -> Iterator[GrafanaServer]:
    with GrafanaServer() as server:
        yield server


@pytest.fixture
def boards(tmp_path: Path) -> Path:
    folder = tmp_path / "boards"
    folder.mkdir()
    for uid in ("one", "two"):
        content = {"uid": uid, "title": f"Board {uid}", "tags": ["comemory"], "panels": []}
        (folder / f"{uid}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def push(grafana: GrafanaServer, boards: Path, tmp_path: Path) -> Any:
    token = tmp_path / "token"
    token.write_text(f"{grafana.token}\n")

    def run(*more: str, **changed: Any) -> Result:
        url = changed.get("url", grafana.url)
        arguments = ["dashboards", "push", "--url", url, "--token-file", str(token), "--from", str(boards), *more]
        return RUN.invoke(app, arguments, catch_exceptions=True)

    return run


def actions(result: Result) -> dict[str, str]:
    return {one["uid"]: one["action"] for one in json.loads(result.stdout)["dashboards"]}


def why(result: Result) -> dict[str, str]:
    return {one["uid"]: one["why"] for one in json.loads(result.stdout)["dashboards"]}


def newer(boards: Path) -> None:
    """The files have become others since the last push."""
    for file in boards.glob("*.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "panels": [{"title": "newer"}]}))


def test_a_dry_run_tells_and_writes_nothing(grafana: GrafanaServer, push: Any) -> None:
    said = push("--dry-run", "--json")
    assert said.exit_code == 0
    assert actions(said) == {"one": "create", "two": "create"}
    assert json.loads(said.stdout)["folder"] == {"uid": "comemory", "title": "Co-Memory", "action": "create"}
    assert "folder Co-Memory" in push("--dry-run").stdout
    assert {method for method, _ in grafana.requests} == {"GET"}
    assert not grafana.dashboards


def test_the_first_push_makes_the_folder_and_a_second_changes_nothing(grafana: GrafanaServer, push: Any) -> None:
    said = push("--json", "--message", "v2")
    assert actions(said) == {"one": "create", "two": "create"}
    assert json.loads(said.stdout)["folder"]["action"] == "create"
    assert grafana.folders == {"comemory": "Co-Memory"}
    assert grafana.dashboards["one"]["meta"] == {"folderUid": "comemory", "message": "v2"}
    again = push("--json")
    assert actions(again) == {"one": "unchanged", "two": "unchanged"}
    assert json.loads(again.stdout)["folder"]["action"] == "unchanged"
    assert grafana.dashboards["one"]["dashboard"]["version"] == 1


def test_what_nobody_touched_is_updated_again_and_again(grafana: GrafanaServer, push: Any, boards: Path) -> None:
    push()
    newer(boards)
    assert actions(push("--json", "--dry-run")) == {"one": "update", "two": "update"}
    assert actions(push("--json")) == {"one": "update", "two": "update"}
    assert grafana.dashboards["one"]["dashboard"]["panels"] == [{"title": "newer"}]
    grafana.folders["other"] = "Other"
    assert actions(push("--json", "--folder-uid", "other")) == {"one": "update", "two": "update"}
    assert grafana.dashboards["two"]["meta"]["folderUid"] == "other"


@pytest.mark.parametrize(
    "edit",
    [
        {"panels": [{"title": "by hand"}]},
        {"panels": [{"title": "by hand"}], MARK: None},
        {"folder": "elsewhere"},
    ],
)
@pytest.mark.parametrize("changed", [False, True], ids=["same files", "newer files"])
def test_what_a_person_did_in_grafana_stays_unless_asked(
    grafana: GrafanaServer, push: Any, boards: Path, edit: dict[str, Any], changed: bool
) -> None:
    push()
    if changed:
        newer(boards)
    grafana.folders["elsewhere"] = "Elsewhere"
    grafana.edit("one", **edit)
    theirs = json.dumps(grafana.dashboards["one"])
    other = "update" if changed else "unchanged"
    for options in (["--dry-run"], []):
        said = push("--json", *options)
        assert (said.exit_code, actions(said)) == (3, {"one": "refused", "two": other})
        assert "--overwrite" in why(said)["one"]
        assert json.dumps(grafana.dashboards["one"]) == theirs
    assert actions(push("--json", "--overwrite", "--dry-run"))["one"] == "update"
    assert actions(push("--json", "--overwrite"))["one"] == "update"
    assert actions(push("--json")) == {"one": "unchanged", "two": "unchanged"}


@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=" ".join)
def test_a_change_between_looking_and_writing_is_refused(
    grafana: GrafanaServer, push: Any, boards: Path, options: list[str]
) -> None:
    push()
    newer(boards)
    answer = grafana.answer

    def raced(method: str, path: str, body: dict[str, Any]) -> Any:
        if method == "POST" and grafana.dashboards["one"]["dashboard"]["version"] == 1:
            grafana.edit("one", panels=[{}])
        return answer(method, path, body)

    grafana.answer = raced  # type: ignore[method-assign]
    said = push("--json", *options)
    assert said.exit_code == 3
    assert actions(said) == {"one": "refused", "two": "update"}
    assert "changed by someone else" in why(said)["one"]
    assert grafana.dashboards["one"]["dashboard"]["panels"] == [{}]
    assert actions(push("--json", "--overwrite"))["one"] == "update"


def test_a_title_that_is_taken_is_refused(grafana: GrafanaServer, push: Any) -> None:
    grafana.folders["comemory"] = "x"
    other = {"uid": "other", "title": "Board one", "version": 1}
    grafana.dashboards["other"] = {"dashboard": other, "meta": {"folderUid": "comemory"}}
    for options, action in (([], "create"), (["--overwrite"], "unchanged")):
        said = push("--json", *options)
        assert actions(said) == {"one": "refused", "two": action}
        assert "same name" in why(said)["one"]
    assert grafana.dashboards["other"]["dashboard"] == other


def test_a_provisioned_dashboard_keeps_no_other_from_its_turn(
    grafana: GrafanaServer, push: Any, boards: Path
) -> None:
    push()
    newer(boards)
    grafana.provisioned = {"one"}
    for options in (["--dry-run"], [], ["--overwrite"]):
        said = push("--json", *options)
        assert (said.exit_code, actions(said)["one"]) == (3, "refused")
        assert "provisioned" in why(said)["one"]
    assert grafana.dashboards["two"]["dashboard"]["panels"] == [{"title": "newer"}]
    assert grafana.dashboards["one"]["dashboard"]["panels"] == []


@pytest.mark.parametrize("status", [400, 403, 404, 422, 500, 503])
def test_each_dashboard_has_an_outcome_of_its_own(grafana: GrafanaServer, push: Any, status: int) -> None:
    answer = grafana.answer

    def failing(method: str, path: str, body: dict[str, Any]) -> Any:
        if path == "/api/dashboards/db" and body["dashboard"]["uid"] in broken:
            return status, {"message": "No, since it is Tuesday."}
        return answer(method, path, body)

    grafana.answer = failing  # type: ignore[method-assign]
    broken = {"one"}
    said = push("--json")
    assert (said.exit_code, actions(said)) == (3, {"one": "failed", "two": "create"})
    assert "No, since it is Tuesday" in why(said)["one"]
    assert set(grafana.dashboards) == {"two"}
    broken = {"one", "two"}
    grafana.dashboards.clear()
    said = push()
    assert said.exit_code == 1
    assert said.stdout.count("failed") == 2


def test_when_nothing_answers_any_more_what_was_done_is_told(
    grafana: GrafanaServer, push: Any, boards: Path
) -> None:
    (boards / "three.json").write_text('{"uid": "three", "title": "Board three"}')

    def hung_up(method: str, path: str, _: dict[str, Any]) -> Any:
        if path == "/api/dashboards/db" and grafana.dashboards:
            raise ConnectionAbortedError
        return None

    grafana.instead = hung_up
    said = push("--json")
    assert (said.exit_code, actions(said)) == (3, {"one": "create", "three": "failed", "two": "failed"})
    assert "may have been written" in why(said)["three"]
    assert "not tried" in why(said)["two"]


ODD: dict[str, tuple[int, dict[str, str], bytes]] = {
    "a login page": (200, {"content-type": "text/html"}, b"<html>Sign in</html>"),
    "a page that is not there": (404, {"content-type": "text/html"}, b"<html>404</html>"),
    "nothing": (200, {}, b""),
    "a list": (200, {}, b"[]"),
    "a text": (200, {}, b'"ok"'),
    "null": (200, {}, b"null"),
    "an empty object": (200, {}, b"{}"),
    "another object": (200, {}, b'{"uid": 5, "dashboard": [], "meta": 3, "status": []}'),
    "a dashboard without meta": (200, {}, b'{"uid": "x", "dashboard": {"title": "x"}}'),
    "a version that is none": (200, {}, b'{"uid": "x", "dashboard": {"version": "new"}, "meta": {}}'),
    "what nests too deep": (200, {}, b"[" * 100_000),
    "no utf-8": (200, {}, b"\xff\xfe{"),
    "a redirect": (302, {"location": "https://u:p@login.example/start?session=s3cret"}, b""),
    "a redirect to nowhere": (302, {}, b""),
    "an error without words": (502, {"content-type": "text/html"}, b"<html>Bad gateway</html>"),
    "an error with odd words": (500, {}, b'{"message": {"a": 1}}'),
    "a refusal without words": (403, {}, b"[1]"),
}
"""Answers of what is not Grafana, or not well."""


ASKED = {
    "look for the folder": ("GET", "/api/folders/", lambda g: g.has_folder("f")),
    "look for a dashboard": ("GET", "/api/dashboards/uid/", lambda g: g.plan([BOARD], "f", overwrite=False)),
    "make the folder": ("POST", "/api/folders", lambda g: g.make_folder("f", "F")),
    "save": (
        "POST",
        "/api/dashboards/db",
        lambda g: list(g.apply([Push(BOARD, "create")], "f", "")),
    ),
}
BOARD = {"uid": "x", "title": "X"}


@pytest.mark.parametrize("asked", ASKED)
def test_an_odd_answer_is_one_sentence(grafana: GrafanaServer, asked: str) -> None:
    method, path, ask = ASKED[asked]
    with Grafana(grafana.url, SecretStr(grafana.token)) as client:
        for odd, answer in ODD.items():
            grafana.instead = lambda m, p, _, a=answer: a if (m, p.startswith(path)) == (method, True) else None
            try:
                pushes = ask(client)
            except OpsError as error:
                said = str(error)
            else:
                assert [one.action for one in pushes] == ["failed"], odd
                said = pushes[0].why
            assert grafana.url in said
            assert said.endswith("."), odd
            assert said.isprintable()
            assert not any(secret in said for secret in ("s3cret", "u:p", grafana.token))
            assert ("redirected to" in said) == odd.startswith("a redirect")
    assert not grafana.dashboards
    assert not grafana.folders


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("status", [302, 400, 401, 403, 412, 500])
def test_a_token_that_a_server_repeats_is_not_shown(grafana: GrafanaServer, status: int, asked: str) -> None:
    def echo(_: str, __: str, headers: dict[str, str]) -> Any:
        given = headers["authorization"]
        return status, {"location": f"/{given}"}, json.dumps({"message": f"You sent\n{given}."}).encode()

    grafana.instead = echo
    with Grafana(grafana.url, SecretStr(grafana.token)) as client:
        try:
            said = ASKED[asked][2](client)[0].why
        except OpsError as error:
            said = str(error)
    assert "Bearer **********" in said
    assert grafana.token not in said


def test_a_wrong_token_or_role_is_said_without_the_token(grafana: GrafanaServer, push: Any) -> None:
    grafana.role = "Viewer"
    said = push("--json")
    assert said.exit_code == 1
    assert "Permissions needed" in why(said)["one"]
    grafana.token = "another"
    said = push()
    assert isinstance(said.exception, OpsError)
    assert "Invalid API key" in str(said.exception)
    assert "glsa_test" not in str(said.exception)


@pytest.mark.parametrize(
    "url",
    ["grafana", "", "ftp://x", "http://", "http://:80", "http://x:0", "http://x:99999", "http://x:y", "http://[::1",
     "http://user:s3cret@grafana.example", "https://s3cret@grafana.example", "http://user:s3cret@:99",
     "http://x/?token=s3cret", "http://x/#s3cret", "http://\x00s3cret", "http://x y", "http://x\\@y"],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_said_without_what_it_holds(push: Any, url: str) -> None:
    said = push(url=url)
    assert isinstance(said.exception, SettingsError), said.exception
    assert str(said.exception).startswith("--url: ")
    assert "s3cret" not in str(said.exception) + said.output


def test_what_is_not_there_or_not_usable_is_named(
    grafana: GrafanaServer, push: Any, boards: Path, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        gone = push(url=f"http://{address}")
    assert isinstance(gone.exception, OpsError)
    assert address in str(gone.exception)
    for options, said in (
        (["--folder-uid", "a/b"], "--folder-uid"),
        (["--token-file", str(tmp_path / "absent")], "--token-file: cannot read"),
        (["--ca-file", str(tmp_path / "absent")], "--ca-file: cannot use"),
    ):
        wrong = push(*options)
        assert isinstance(wrong.exception, SettingsError)
        assert said in str(wrong.exception)
    for content, said in (("", "is empty"), ("two\nlines", "one line")):
        (tmp_path / "token").write_text(content)
        wrong = push()
        assert isinstance(wrong.exception, SettingsError)
        assert str(wrong.exception).startswith("--token-file: ")
        assert said in str(wrong.exception)
    (boards / "bad.json").write_text("[]")
    assert "bad.json" in str(push().exception)
    assert not grafana.requests


def test_by_default_the_dashboards_of_this_checkout_are_taken(grafana: GrafanaServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(grafana.token)
    said = RUN.invoke(app, ["dashboards", "push", "--url", grafana.url, "--token-file", str(token)])
    assert said.exit_code == 0, said.output
    assert set(grafana.dashboards) == {
        "comemory-overview", "comemory-tenant", "comemory-operations", "comemory-qdrant"
    }  # fmt: skip
    assert "Co-Memory / Overview" in said.stdout
