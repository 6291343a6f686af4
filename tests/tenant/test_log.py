"""The record of erasures: appended to, on the disk, and a line that was changed shows."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError, SettingsError
from ops.tenant.log import BEGUN, ENDED, ErasureLog, verify, who


def entry(event: str = BEGUN, run: str = "r1", **more: Any) -> dict[str, Any]:
    return {"event": event, "run": run, "time": "2026-06-01T00:00:00Z", "tenant": "t_a", **more}


@pytest.fixture
def log(tmp_path: Path) -> ErasureLog:
    return ErasureLog(tmp_path / "state" / "erasures.jsonl")


def test_lines_are_chained_and_for_their_owner_only(log: ErasureLog) -> None:
    log.append(entry())
    log.append(entry(ENDED))
    first, second = (json.loads(line) for line in log.path.read_text().splitlines())
    assert (first["previous"], len(second["previous"])) == (None, 64)
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700
    found = verify(log.path)
    assert (found.entries, found.faults, found.unended) == (2, [], [])
    ErasureLog(log.path).append(entry(run="r2"))
    assert verify(log.path).unended == ["line 3: 't_a' begun at 2026-06-01T00:00:00Z"]
    assert verify(log.path).last != found.last


@pytest.mark.parametrize("change", ["remove", "edit", "swap"])
def test_a_line_that_was_changed_shows(log: ErasureLog, change: str) -> None:
    for number in range(4):
        log.append(entry(run=f"r{number}"))
    lines = log.path.read_bytes().splitlines(keepends=True)
    if change == "remove":
        del lines[1]
    elif change == "edit":
        lines[1] = lines[1].replace(b"t_a", b"t_b")
    else:
        lines[1:3] = lines[2], lines[1]
    log.path.write_bytes(b"".join(lines))
    assert verify(log.path).faults[0] == (
        "line 3 does not follow what stands before it" if change == "edit"
        else "line 2 does not follow what stands before it"
    )  # fmt: skip


def test_the_first_line_cannot_go_unseen(log: ErasureLog) -> None:
    log.append(entry())
    log.append(entry(ENDED))
    log.path.write_bytes(log.path.read_bytes().splitlines(keepends=True)[1])
    assert verify(log.path).faults == ["line 1 does not follow what stands before it"]


def test_a_line_that_a_crash_cut_short_stays_and_is_told_of(log: ErasureLog) -> None:
    log.append(entry())
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + whole[:20])
    log.append(entry(ENDED))
    assert log.path.read_bytes().startswith(whole + whole[:20] + b"\n")
    assert verify(log.path).faults == ["line 2 is no entry; a crash may have cut it short"]
    assert verify(log.path).entries == 3


def test_many_at_once_make_one_chain(log: ErasureLog) -> None:
    def append(who: int) -> None:
        for number in range(10):
            log.append(entry(run=f"{who}-{number}"))

    threads = [threading.Thread(target=append, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = verify(log.path)
    assert (found.entries, found.faults) == (40, [])


def test_what_cannot_be_written_or_read_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(SettingsError, match=r"tenant\.log_file: cannot write .*Nothing is erased without a record"):
        ErasureLog(file / "erasures.jsonl")
    with pytest.raises(OpsError, match=r"tenant\.log_file: cannot read .*No such file"):
        verify(tmp_path / "none.jsonl")
    empty = verify(file)
    assert (empty.entries, empty.last, empty.faults) == (0, None, [])


def test_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    log = ErasureLog(Path("~/log/erasures.jsonl"))
    log.append(entry())
    assert verify(Path("~/log/erasures.jsonl")).entries == 1
    assert log.path == tmp_path / "log" / "erasures.jsonl"


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert who()["user"] == str(os.getuid())
