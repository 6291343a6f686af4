"""The file lock has one holder, is given up with the process, and the keeper tells when it changes."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ops.errors import SettingsError
from ops.lease import FileLease, Keeper, NoLease, make
from ops.settings import LeaseSettings


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first, second = FileLease(tmp_path / "run" / "lease"), FileLease(tmp_path / "run" / "lease")
    assert [first.hold(), second.hold(), first.hold(), second.hold()] == [True, False, True, False]
    assert str(os.getpid()) in (tmp_path / "run" / "lease").read_text()
    first.release()
    assert second.hold()
    assert not first.hold()


def test_a_killed_holder_has_given_it_up(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from ops.lease import FileLease\n"
        "assert FileLease(Path(sys.argv[1])).hold(); print('held', flush=True); time.sleep(600)"
    )
    file = tmp_path / "lease"
    with subprocess.Popen([sys.executable, "-c", program, file], stdout=subprocess.PIPE, cwd=Path.cwd()) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        ours = FileLease(file)
        assert not ours.hold()
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert ours.hold()


def test_a_lock_on_a_file_that_was_deleted_is_lost(tmp_path: Path) -> None:
    first, second = FileLease(tmp_path / "lease"), FileLease(tmp_path / "lease")
    assert first.hold()
    (tmp_path / "lease").unlink()
    assert second.hold()
    assert not first.hold()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"lease.path: cannot open .*/file/lease: "):
        FileLease(tmp_path / "file" / "lease").hold()


def test_the_settings_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make(LeaseSettings()), NoLease)
    assert isinstance(make(LeaseSettings(kind="file", path=tmp_path / "lease")), FileLease)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError):
        make(LeaseSettings(kind="kubernetes"))


class Scripted:
    """Answers as told, then stays at the last answer."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)
        self.released = False
        self.done = threading.Event()

    def hold(self) -> bool:
        answer = self.answers[0]
        if len(self.answers) > 1:
            self.answers.pop(0)
        else:
            self.done.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def release(self) -> None:
        self.released = True


def test_the_keeper_tells_changes_only_and_survives_errors() -> None:
    lease = Scripted(False, True, True, SettingsError("no right"), True, RuntimeError("bug"), False, True)
    told: list[str] = []
    keeper = Keeper(lease, every=0.001, won=lambda: told.append("won"), lost=lambda: told.append("lost"))
    keeper.start()
    assert lease.done.wait(60)
    keeper.stop()
    assert told == ["won", "lost", "won", "lost", "won"]
    assert lease.released
    assert not keeper.held
