"""What is decided about a dashboard: only what nobody touched since the last push is replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.boards import MARK, TAG, Stored, checked_uid, decide, fingerprint, marked, read_boards
from ops.errors import SettingsError

BOARD: dict[str, Any] = {
    "uid": "one", "title": "One", "tags": [TAG], "schemaVersion": 41, "panels": [{"id": 1, "max": 1.0}],
}  # fmt: skip
NEWER = {**BOARD, "panels": [{"id": 1, "max": 2.5}]}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def stored(board: dict[str, Any] = BOARD, folder: str = "f", **changed: Any) -> Stored:
    """What Grafana has after a push of the board, and then what a person changed (None: taken away)."""
    kept = {**marked(board, folder), "id": 7, "version": 3, **changed}
    return Stored({key: value for key, value in kept.items() if value is not None}, 3, folder)


def test_what_is_not_there_is_created_and_what_is_the_same_stays() -> None:
    assert decide(BOARD, None, "f", overwrite=False).action == "create"
    assert decide(BOARD, stored(), "f", overwrite=False).action == "unchanged"


def test_what_was_pushed_and_not_touched_since_is_updated_also_to_another_folder() -> None:
    assert decide(NEWER, stored(), "f", overwrite=False).action == "update"
    assert decide(BOARD, stored(), "elsewhere", overwrite=False).action == "update"


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (stored(panels=[]), "version 3 was edited or moved"),
        (stored(title="Mine"), "version 3 was edited or moved"),
        (stored(tags=[]), "version 3 was edited or moved"),
        (stored(description="why"), "version 3 was edited or moved"),
        (stored(**{MARK: "sha256:0"}), "version 3 was edited or moved"),
        (stored(**{MARK: ["odd"]}), "version 3 was edited or moved"),
        (Stored(stored().board, 3, "moved"), "version 3 was edited or moved"),
        (stored(**{MARK: None}), "saved in Grafana"),
        (stored(**{MARK: None, "tags": ["theirs"]}), "no push has made"),
        (stored(**{MARK: None, "tags": "odd"}), "no push has made"),
    ],
)
def test_what_a_person_touched_is_refused_unless_overwriting_is_asked_for(there: Stored, said: str) -> None:
    decided = decide(NEWER, there, "f", overwrite=False)
    assert decided.action == "refused"
    assert said in decided.why
    assert "--overwrite" in decided.why
    assert decide(NEWER, there, "f", overwrite=True).action == "update"


def test_an_edit_that_is_what_would_be_pushed_loses_nothing() -> None:
    assert decide(NEWER, stored(panels=NEWER["panels"]), "f", overwrite=False).action == "unchanged"


@pytest.mark.parametrize("key", ["id", "version", "uid", "schemaVersion"])
def test_what_grafana_numbers_or_raises_is_no_edit(key: str) -> None:
    raised = stored(**{key: 99})
    assert decide(BOARD, raised, "f", overwrite=False).action == "unchanged"
    assert decide(NEWER, raised, "f", overwrite=False).action == "update"


def test_a_schema_that_is_newer_than_grafanas_copy_is_pushed() -> None:
    assert decide({**BOARD, "schemaVersion": 42}, stored(), "f", overwrite=False).action == "update"


def test_a_provisioned_dashboard_is_refused_always_and_the_same_one_is_unchanged() -> None:
    kept = stored()
    there = Stored(kept.board, kept.version, kept.folder, provisioned=True)
    assert decide(BOARD, there, "f", overwrite=False).action == "unchanged"
    for overwrite in (False, True):
        decided = decide(NEWER, there, "f", overwrite=overwrite)
        assert (decided.action, "provisioned" in decided.why) == ("refused", True)


@settings(deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=4), VALUES, VALUES)
def test_a_fingerprint_lasts_through_json_and_tells_contents_apart(
    board: dict[str, Any], one: Any, another: Any
) -> None:
    again = json.loads(json.dumps(dict(reversed(board.items()))), parse_float=_as_go)
    assert fingerprint(again, "f") == fingerprint(board, "f")
    same = fingerprint({"panels": one}, "f") == fingerprint({"panels": another}, "f")
    assert same == (_plain(one) == _plain(another))


def _as_go(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _plain(value: Any) -> str:
    return json.dumps(json.loads(json.dumps(value), parse_float=_as_go), sort_keys=True)


def test_files_are_checked_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="holds no dashboards"):
        read_boards(tmp_path)
    for text in ("[]", "{", "{}", '{"uid": 1, "title": "x"}', '{"uid": "a"}', "[" * 100_000):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(SettingsError, match=r"bad\.json is no dashboard"):
            read_boards(tmp_path)
    (tmp_path / "bad.json").write_text('{"uid": "../../admin", "title": "x"}')
    with pytest.raises(SettingsError, match=r"bad\.json: '\.\./\.\./admin' is no uid"):
        read_boards(tmp_path)
    for name in ("bad", "worse"):
        (tmp_path / f"{name}.json").write_text(json.dumps(BOARD))
    with pytest.raises(SettingsError, match=r"bad\.json and .*worse\.json have the same uid 'one'"):
        read_boards(tmp_path)


@pytest.mark.parametrize("uid", ["", "a/b", "a b", "ü", "x" * 41])
def test_a_uid_is_one_that_grafana_takes(uid: str) -> None:
    with pytest.raises(SettingsError, match="--folder-uid"):
        checked_uid(uid, "--folder-uid")
    assert checked_uid("x" * 40, "--folder-uid") == "x" * 40
