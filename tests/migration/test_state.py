"""Checkpoint and quarantine file: whole after a kill at any moment, and never those of another migration."""

from __future__ import annotations

import resource
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
    state.close()
    other = State(tmp_path, "e")
    with pytest.raises(SettingsError, match="other rules or another target"):
        other.resume()
    assert other.plan() is None
    assert State(tmp_path, "d").plan() is not None
    with pytest.raises(SettingsError, match="another --replace"):
        State(tmp_path, "d").resume(replacing=True)


def test_one_run_at_a_time_has_the_folder(tmp_path: Path) -> None:
    state = started(tmp_path)
    state.quarantine([{"id": 1}])
    with pytest.raises(SettingsError, match="another run is at work"):
        State(tmp_path, "d").resume()
    state.save()
    state.close()
    again = started(tmp_path)
    assert lines(tmp_path) == [1]
    again.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / QUARANTINE).mkdir()
    with pytest.raises(SettingsError, match=rf"cannot write .*{QUARANTINE}: Is a directory"):
        State(tmp_path, "d").resume()
    (tmp_path / f"{PLAN}.partial").mkdir()
    with pytest.raises(SettingsError, match=rf"cannot write .*{PLAN}"):
        State(tmp_path, "d").keep_plan({})
    with pytest.raises(SettingsError, match="cannot make the folder"):
        State(Path("/dev/null/x"), "d")


def test_after_a_disk_that_was_full_the_last_checkpoint_holds(tmp_path: Path) -> None:
    state = started(tmp_path)
    state.collections["c"] = Progress(next_id=2, read=1)
    state.quarantine([{"id": 1}])
    state.save()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(SettingsError, match=r"cannot write .*File too large"):
            state.quarantine([{"id": number, "payload": "x" * 100} for number in range(2, 500)])
            state.save()
        for further in (lambda: state.quarantine([{"id": 9}]), state.save):
            with pytest.raises(SettingsError, match="cannot write"):
                further()
        state.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    again = started(tmp_path)
    assert again.collections == {"c": Progress(next_id=2, read=1)}
    assert lines(tmp_path) == [1]
    again.close()


def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    state = started(tmp_path / "new")
    state.keep_plan({})
    state.save()
    state.close()
    (tmp_path / "new" / QUARANTINE).chmod(0o644)
    started(tmp_path / "new").close()
    for name in (PLAN, CHECKPOINT, QUARANTINE):
        assert stat.S_IMODE((tmp_path / "new" / name).stat().st_mode) == 0o600
    assert not list((tmp_path / "new").glob("*.partial"))


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"format": 99}'])
def test_a_file_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(OpsError, match=CHECKPOINT):
        State(tmp_path, "d").resume()


@pytest.mark.parametrize(
    "broken",
    [
        {"collections": None}, {"collections": []}, {"collections": {"c": 1}},
        {"collections": {"c": {"read": "x"}}}, {"collections": {"c": {"next_id": {}}}},
        {"quarantine_bytes": None}, {"quarantine_bytes": "much"},
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_is_named(tmp_path: Path, broken: dict[str, object]) -> None:
    state = started(tmp_path)
    state.save()
    state.close()
    whole = orjson.loads((tmp_path / CHECKPOINT).read_bytes())
    (tmp_path / CHECKPOINT).write_bytes(orjson.dumps(whole | broken))
    with pytest.raises(OpsError, match="is damaged; remove it"):
        State(tmp_path, "d").resume()


@pytest.mark.parametrize("collections", [None, {}, [1], [{"collection": "c"}]])
def test_a_damaged_plan_is_named(tmp_path: Path, collections: object) -> None:
    State(tmp_path, "d").keep_plan({"collections": collections})
    with pytest.raises(OpsError, match=r"plan\.json is damaged"):
        State(tmp_path, "d").plan()


def test_a_quarantine_file_that_lost_lines_is_said(tmp_path: Path) -> None:
    state = started(tmp_path)
    state.quarantine([{"id": 1}])
    state.save()
    state.close()
    (tmp_path / QUARANTINE).write_bytes(b"")
    with pytest.raises(SettingsError, match="shorter"):
        State(tmp_path, "d").resume()
