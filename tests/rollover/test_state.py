"""The folder of a rollover: held by one process, and what a kill, a full disk or a stranger leaves in it."""

from __future__ import annotations

import uuid
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.errors import OpsError, SettingsError
from ops.rollover.join import place
from ops.rollover.state import LATE, POINTS, STATE, State

IDS = st.integers(0, 2**64 - 1) | st.uuids().map(str)


def opened(folder: Path, *, reading: bool = False) -> State:
    return State(folder, "http://127.0.0.1:6333", "cm_text_4_v1", "cm_text_4_v2", reading=reading)


def test_one_process_at_a_time_but_anybody_may_look(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as state:
        state.save(at="8a5f1c1e-0000-4000-8000-000000000001")
        with pytest.raises(SettingsError, match="another process works with"):
            opened(tmp_path / "state")
        with opened(tmp_path / "state", reading=True) as looking:
            assert looking.next == state.next
    with opened(tmp_path / "state") as again:
        assert again.next == "8a5f1c1e-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    "changes",
    [
        {"next": 1.5}, {"next": "no uuid"}, {"next": True}, {"next": []}, {"switched": 3}, {"anew": []},
        {"anew": {}}, {"anew": {"field": None, "model": None}}, {"anew": {"field": "text", "model": 4}},
    ],
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(tmp_path: Path, changes: dict[str, object]) -> None:
    with opened(tmp_path) as state:
        state.embed({"field": "text", "model": None})
    whole = orjson.loads((tmp_path / STATE).read_bytes())
    opened(tmp_path, reading=True)
    (tmp_path / STATE).write_bytes(orjson.dumps({**whole, **changes}))
    with pytest.raises(OpsError, match="is damaged; name another --state"):
        opened(tmp_path, reading=True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff"])
def test_what_is_no_state_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STATE).write_bytes(content)
    with pytest.raises(OpsError, match="name another --state"):
        opened(tmp_path, reading=True)


@given(st.sets(IDS, max_size=20), st.sets(IDS, max_size=20), st.sets(IDS, max_size=5))
def test_a_list_knows_its_points(
    tmp_path_factory: pytest.TempPathFactory, listed: set[int | str], asked: set[int | str], late: set[int | str]
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"list-{uuid.uuid4().hex}"
    with opened(folder) as state:
        listing = state.listing()
        for point_id in sorted(listed, key=place):
            listing.add(point_id)
        listing.close(whole=True)
        state.copied_late(late)
        found = state.listed()
        wanted = sorted(listed | asked, key=place)
        assert [one for one in wanted if found.has(one)] == [one for one in wanted if one in listed | late]
        found.close()


def test_half_an_entry_that_a_kill_left_does_not_spoil_those_after_it(tmp_path: Path) -> None:
    with opened(tmp_path) as state:
        state.listing().close(whole=True)
        state.copied_late([1])
        with (tmp_path / LATE).open("ab") as stream:
            stream.write(b"\0\0\0")
        state.copied_late([2, 3])
        found = state.listed()
        assert [found.has(number) for number in range(1, 5)] == [True, True, True, False]
        found.close()


def test_a_list_that_lost_its_end_or_was_never_whole_is_not_used(tmp_path: Path) -> None:
    with opened(tmp_path) as state:
        first = state.listing()
        first.add(1)
        first.close(whole=False)
        with pytest.raises(OpsError, match="has no list of the points"):
            state.listed()
        second = state.listing()
        second.add(1)
        second.close(whole=True)
        (tmp_path / POINTS).write_bytes((tmp_path / POINTS).read_bytes()[:-1])
        with pytest.raises(OpsError, match="does not end with a whole entry"):
            state.listed()


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with opened(tmp_path) as state:
        (tmp_path / LATE).mkdir()
        with pytest.raises(OpsError, match=f"--state: cannot write {tmp_path / LATE}: Is a directory"):
            state.copied_late([1])
