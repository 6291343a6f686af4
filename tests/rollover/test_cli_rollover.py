"""`comemory rollover`: what it prints, its exit codes, and that the alias is not moved unasked."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from ops.cli import main
from tests.conftest import SERVER_KEY, Endpoint
from tests.rollover.sides import Sides, payload, two_sides

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(sides: Sides, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command between the two collections in this process: exit code, stdout, stderr."""
    for name in [name for name in os.environ if name.startswith("COMEMORY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COMEMORY_QDRANT__URL", sides.url)
    monkeypatch.setenv("COMEMORY_QDRANT__RETRY_FOR", "2")
    if SERVER_KEY:
        monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", SERVER_KEY)

    def call(command: str, *options: object, old: str = sides.old, new: str = sides.new) -> tuple[int, str, str]:
        given = ["comemory", "rollover", command, old, new, "--state", sides.folder, *options]
        monkeypatch.setattr(sys, "argv", list(map(str, given)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return int(ended.value.code or 0), said.out, said.err

    return call


def test_the_whole_way_there_and_to_its_end(run: Run, sides: Sides) -> None:
    for number in range(5):
        sides.put(sides.old, number, payload())
    code, out, _ = run("run", "--dry-run")
    assert (code, sides.points(sides.new)) == (0, {})
    assert "copied" in out and "5 found" in out and "nothing was changed" in out
    code, out, _ = run("check")
    assert code == 1 and "DIFFER" in out
    assert run("run", "--rate", 1000)[0] == 0
    code, out, _ = run("check")
    assert code == 0 and "agree" in out
    code, _, said = run("switch", "--dry-run")
    assert (code, sides.target()) == (0, sides.old)
    assert f"The alias {sides.alias} would be switched to {sides.new}." in said
    assert run("finish", "--yes")[0] == 1 and len(sides.markers()) == 5
    code, _, said = run("switch", "--yes")
    assert (code, sides.target()) == (0, sides.new)
    assert f"The stack still gives it to {sides.old}" in said
    code, _, said = run("switch", "--yes")
    assert code == 0 and "names" in said and "already; bringing over what came late" in said
    sides.put(sides.new, 7, payload())
    code, out, said = run("back", "--dry-run")
    assert (code, sides.target()) == (0, sides.new) and "kept: written to the new one" in out
    assert run("back", "--yes")[0] == 0 and sides.target() == sides.old
    assert "already" in run("back", "--yes")[2]
    assert run("switch", "--yes")[0] == 0 and sides.target() == sides.new
    assert run("finish", "--dry-run")[0] == 0 and len(sides.markers()) == 5
    assert run("finish", "--yes")[0] == 0 and sides.markers() == {}
    assert len(sides.points(sides.old)) == 5 and len(sides.points(sides.new)) == 6


def test_a_check_that_finds_something_keeps_the_alias_where_it_is(run: Run, sides: Sides) -> None:
    for number in range(3):
        sides.put(sides.old, number, payload())
    run("run")
    sides.delete(sides.old, 0, 1)
    code, out, said = run("switch", "--yes", "--max-removals", 1)
    assert (code, sides.target()) == (1, sides.old)
    assert "1 of the copies have no point in" in said and "was not switched" in said and "DIFFER" in out
    code, _, said = run("run", "--max-removals", 1)
    assert code == 0 and sides.points(sides.new).keys() == {2}


@pytest.mark.parametrize("command", ["switch", "back", "finish"])
def test_nobody_to_ask(run: Run, sides: Sides, command: str) -> None:
    for options in ((), ("--json",)):
        code, out, said = run(command, *options)
        assert (code, out) == (2, "") and "There is nobody to ask: give --yes" in said
    assert sides.target() == sides.old and sides.points(sides.new) == {}


def test_json_is_all_that_stdout_gets(run: Run, sides: Sides) -> None:
    sides.put(sides.old, 1, payload())
    code, out, _ = run("run", "--json")
    made = json.loads(out)
    assert (code, made["job"], made["handled"], made["details"][sides.new]["caught_up"]) == (
        0,
        "rollover run",
        1,
        True,
    )
    code, out, _ = run("check", "--json")
    (line,) = json.loads(out)["details"][sides.new]["counts"]
    assert line == {"tenant": "t_a", "scope": "docs", "old": 1, "new": 1, "own": 0, "right": True}
    code, out, _ = run("switch", "--json", "--yes")
    made = json.loads(out)
    assert (code, made["switched"], made["alias"], made["after"]["handled"]) == (0, True, sides.alias, 0)
    code, out, _ = run("back", "--json", "--yes")
    assert (code, json.loads(out)["switched"]) == (0, False)
    code, out, _ = run("finish", "--json", "--dry-run")
    assert (code, json.loads(out)["found"]) == (0, 1)


def test_what_cannot_be_is_one_sentence(run: Run, sides: Sides) -> None:
    code, _, said = run("run", new="cm_text_1024_v9")
    assert code == 1 and said.count("\n") == 1
    assert "There is no collection 'cm_text_1024_v9'" in said and "a rollover makes none. Declare it" in said
    code, _, said = run("run", new=sides.alias)
    assert code == 1 and f"'{sides.alias}' is an alias of {sides.old}" in said
    code, _, said = run("run", new=sides.old)
    assert code == 1 and "named twice" in said
    code, _, said = run("run", "--embed", "json:loads", "--embed-command", "cat")
    assert code == 2 and "give one of them" in said
    code, _, said = run("run", "--embed", "json:loads")
    assert code == 1 and "What makes the vectors is not known" in said and "--model" in said
    assert run("run")[0] == 0
    code, _, said = run("run", old=sides.new, new=sides.old)
    assert code == 2 and "is of a rollover between other collections; name another --state" in said


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.embedded_only("gives an endpoint of its own a key that may only read")
def test_a_key_that_may_only_read_can_look_and_do_no_more(
    run: Run, start_endpoint: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = start_endpoint(api_key="s3cret all", read_only_api_key="s3cret looking").url
    monkeypatch.setenv("COMEMORY_QDRANT__URL", url)
    monkeypatch.setenv("COMEMORY_QDRANT__API_KEY", "s3cret looking")
    client = QdrantClient(url=url, api_key="s3cret all", timeout=60, check_compatibility=False)
    with two_sides(client, url, tmp_path) as there:
        there.put(there.old, 1, payload())
        names = {"old": there.old, "new": there.new}
        code, out, _ = run("run", "--dry-run", **names)
        assert code == 0 and "copied" in out
        for command, *options in (("run",), ("switch", "--yes")):
            code, out, said = run(command, *options, **names)
            assert code == 1 and there.new in out + said and "s3cret" not in out + said, said
        assert there.points(there.new) == {} and there.target() == there.old
    client.close()
