"""`comemory dashboards push` against a server with the rules of Grafana's API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops.cli.app import app
from ops.errors import OpsError, SettingsError
from tests.support.grafana_server import GrafanaServer

RUN = CliRunner()


@pytest.fixture
def grafana() -> Iterator[GrafanaServer]:
    with GrafanaServer() as server:
        yield server


@pytest.fixture
def push(grafana: GrafanaServer, tmp_path: Path) -> Any:
    token = tmp_path / "token"
    token.write_text(f"{grafana.token}\n")
    boards = tmp_path / "boards"
    boards.mkdir()
    for uid in ("one", "two"):
        content = {"uid": uid, "title": f"Board {uid}", "tags": ["comemory"], "panels": []}
        (boards / f"{uid}.json").write_text(json.dumps(content))

    def run(*more: str, **changed: Any) -> Result:
        url = changed.get("url", grafana.url)
        arguments = ["dashboards", "push", "--url", url, "--token-file", str(token), "--from", str(boards), *more]
        return RUN.invoke(app, arguments, catch_exceptions=True)

    return run


def actions(result: Result) -> dict[str, str]:
    return {one["uid"]: one["action"] for one in json.loads(result.stdout)["dashboards"]}


def test_a_dry_run_tells_and_writes_nothing(grafana: GrafanaServer, push: Any) -> None:
    said = push("--dry-run", "--json")
    assert said.exit_code == 0
    assert actions(said) == {"one": "create", "two": "create"}
    assert {method for method, _ in grafana.requests} == {"GET"}
    assert not grafana.dashboards


def test_the_first_push_makes_the_folder_and_a_second_changes_nothing(grafana: GrafanaServer, push: Any) -> None:
    assert actions(push("--json", "--message", "v2")) == {"one": "create", "two": "create"}
    assert grafana.folders == {"comemory": "Co-Memory"}
    assert grafana.dashboards["one"]["meta"] == {"folderUid": "comemory", "message": "v2"}
    assert actions(push("--json")) == {"one": "unchanged", "two": "unchanged"}
    assert grafana.dashboards["one"]["dashboard"]["version"] == 1


def test_what_differs_is_updated(grafana: GrafanaServer, push: Any) -> None:
    push()
    grafana.dashboards["one"]["dashboard"]["panels"] = [{"title": "by hand"}]
    grafana.dashboards["two"]["meta"]["folderUid"] = "elsewhere"
    assert actions(push("--json", "--dry-run")) == {"one": "update", "two": "update"}
    assert actions(push("--json")) == {"one": "update", "two": "update"}
    assert grafana.dashboards["one"]["dashboard"]["panels"] == []
    assert grafana.dashboards["two"]["meta"]["folderUid"] == "comemory"


def test_somebody_elses_dashboard_is_left_alone_unless_asked(grafana: GrafanaServer, push: Any) -> None:
    push()
    grafana.dashboards["one"]["dashboard"]["tags"] = ["theirs"]
    said = push("--json")
    assert said.exit_code == 3
    assert actions(said) == {"one": "refused", "two": "unchanged"}
    assert grafana.dashboards["one"]["dashboard"]["tags"] == ["theirs"]
    assert actions(push("--json", "--overwrite")) == {"one": "update", "two": "unchanged"}
    assert grafana.dashboards["one"]["dashboard"]["tags"] == ["comemory"]


def test_a_change_between_looking_and_writing_is_refused(grafana: GrafanaServer, push: Any) -> None:
    push()
    grafana.dashboards["one"]["dashboard"]["panels"] = [{}]
    answer = grafana.answer

    def raced(method: str, path: str, body: dict[str, Any]) -> Any:
        if method == "POST":
            grafana.dashboards["one"]["dashboard"]["version"] = 7
        return answer(method, path, body)

    grafana.answer = raced  # type: ignore[method-assign]
    said = push("--json")
    assert said.exit_code == 3
    assert actions(said)["one"] == "refused"
    assert "changed by someone else" in said.stdout
    assert grafana.dashboards["one"]["dashboard"]["panels"] == [{}]
    assert actions(push("--json", "--overwrite"))["one"] == "update"


def test_a_title_that_is_taken_is_refused(grafana: GrafanaServer, push: Any) -> None:
    grafana.folders["comemory"] = "x"
    other = {"uid": "other", "title": "Board one", "version": 1}
    grafana.dashboards["other"] = {"dashboard": other, "meta": {"folderUid": "comemory"}}
    said = push("--json")
    assert actions(said) == {"one": "refused", "two": "create"}
    assert "same name" in said.stdout


def test_a_wrong_token_or_role_is_said_without_the_token(grafana: GrafanaServer, push: Any) -> None:
    grafana.role = "Viewer"
    said = push()
    assert isinstance(said.exception, OpsError)
    assert "Permissions needed" in str(said.exception)
    grafana.token = "another"
    said = push()
    assert isinstance(said.exception, OpsError)
    assert "Invalid API key" in str(said.exception)
    assert "glsa_test" not in str(said.exception)


def test_what_is_not_there_or_not_usable_is_named(push: Any, tmp_path: Path) -> None:
    gone = push(url="http://127.0.0.1:1")
    assert isinstance(gone.exception, OpsError)
    assert "127.0.0.1:1" in str(gone.exception)
    assert "must begin with http" in str(push(url="grafana").exception)
    (tmp_path / "boards/bad.json").write_text("[]")
    bad = push()
    assert isinstance(bad.exception, SettingsError)
    assert "bad.json" in str(bad.exception)


def test_by_default_the_dashboards_of_this_checkout_are_taken(grafana: GrafanaServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(grafana.token)
    said = RUN.invoke(app, ["dashboards", "push", "--url", grafana.url, "--token-file", str(token)])
    assert said.exit_code == 0, said.output
    assert set(grafana.dashboards) == {
        "comemory-overview", "comemory-tenant", "comemory-operations", "comemory-qdrant"
    }  # fmt: skip
    assert "Co-Memory / Overview" in said.stdout
