"""Checkpoint and quarantine file: whole after a kill at any moment, and never those of another migration."""

from __future__ import annotations

import stat
from pathlib import Path

import orjson
import pytest

from ops.errors import OpsError, SettingsError
from ops.migrate.state import CHECKPOINT, PLAN, QUARANTINE, Progress, State


def started(folder: Path, digest: str = "d") -> State:
    state = State(folder, digest)
    state.resume()
    return state


def lines(folder: Path) -> list[int]:
    return [orjson.loads(line)["id"] for line in (folder / QUARANTINE).read_bytes().splitlines()]


def test_lines_written_after_the_last_checkpoint_are_cut_off_and_written_again(tmp_path: Path) -> None:
    state = started(tmp_path)
    state.collections["c"] = Progress(next_id=3, read=2)
    state.quarantine([{"id": 1}, {"id": 2}])
    state.save()
    state.quarantine([{"id": 3}])
    state.close()
    assert lines(tmp_path) == [1, 2, 3]
    again = State(tmp_path, "d")
    assert again.resume()
    assert again.collections == {"c": Progress(next_id=3, read=2)}
    assert lines(tmp_path) == [1, 2]
    again.quarantine([{"id": 3}, {"id": 4}])
    again.save(done=True)
    again.close()
    assert lines(tmp_path) == [1, 2, 3, 4]


def test_after_the_end_all_begins_anew(tmp_path: Path) -> None:
    state = started(tmp_path)
    state.collections["c"] = Progress(done=True)
    state.quarantine([{"id": 1}])
    state.save(done=True)
    state.close()
    again = State(tmp_path, "d")
    assert not again.resume()
    assert (again.collections, lines(tmp_path)) == ({}, [])
    again.close()


def test_a_checkpoint_of_other_rules_is_not_gone_on_with(tmp_path: Path) -> None:
    state = started(tmp_path)
    state.save()
    state.keep_plan({"collections": []})
    other = State(tmp_path, "e")
    with pytest.raises(SettingsError, match="other rules or another target"):
        other.resume()
    assert other.plan() is None
    assert State(tmp_path, "d").plan() is not None
    state.close()


def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    state = started(tmp_path / "new")
    state.keep_plan({})
    state.save()
    state.close()
    for name in (PLAN, CHECKPOINT, QUARANTINE):
        assert stat.S_IMODE((tmp_path / "new" / name).stat().st_mode) == 0o600
    assert not list((tmp_path / "new").glob("*.partial"))


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"format": 99}'])
def test_a_file_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(OpsError, match=CHECKPOINT):
        State(tmp_path, "d").resume()


def test_a_quarantine_file_that_lost_lines_is_said(tmp_path: Path) -> None:
    state = started(tmp_path)
    state.quarantine([{"id": 1}])
    state.save()
    state.close()
    (tmp_path / QUARANTINE).write_bytes(b"")
    with pytest.raises(SettingsError, match="shorter"):
        State(tmp_path, "d").resume()
