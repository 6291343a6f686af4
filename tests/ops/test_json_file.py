"""A JSON file that is replaced whole."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from ops.json_file import replace_json


def test_it_is_replaced_for_its_owner_only_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    for value in ({"a": 1, "long": "x" * 100}, {"a": 2}):
        replace_json(file, value)
        assert json.loads(file.read_text()) == value
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    replace_json(file, {"a": 1})
    (tmp_path / "state.json.partial").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        replace_json(file, {"a": 2})
    assert json.loads(file.read_text()) == {"a": 1}
