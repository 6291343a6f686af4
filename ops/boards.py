"""What a push would do with each dashboard, decided from the file and from what Grafana has under its uid.

A dashboard that is pushed carries a mark: a fingerprint of its content and folder. While what Grafana has still has
the fingerprint of its mark nobody has touched it since, and it may be replaced. One that a person edited or moved
no longer fits its mark, and one saved by Grafana's editor has lost it; both are left alone unless overwriting is
asked for.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ops.errors import SettingsError

TAG: Final = "comemory"
MARK: Final = "comemoryPushed"
"""Key of the mark in the dashboard's JSON. Grafana's API keeps keys that it does not know."""

_SERVERS_OWN: Final = frozenset({"id", "version"})
_NO_CONTENT: Final = _SERVERS_OWN | {"uid", "schemaVersion", MARK}
"""What Grafana numbers itself, or raises when it reads an older dashboard."""

_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")

Action = Literal["create", "update", "unchanged", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Stored:
    """What Grafana has under a uid; `provisioned` is one that it reads from a file and lets nobody save."""

    board: dict[str, Any]
    version: int
    folder: str
    provisioned: bool = False


@dataclass(frozen=True, slots=True)
class Push:
    """What is to be done with one dashboard, or was; `why` explains a refusal or failure.

    `version` is the one that was looked at. It is sent, so that Grafana refuses to write over a newer one.
    """

    board: dict[str, Any]
    action: Action
    why: str = ""
    version: int = 0


def read_boards(folder: Path) -> list[dict[str, Any]]:
    """The dashboards of a folder, by file name.

    Raises:
        SettingsError: there is none, a file is no dashboard, or two have the same uid.
    """
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise SettingsError(f"--from: {folder} holds no dashboards (*.json).")
    found: dict[str, Path] = {}
    boards = [_read(file) for file in files]
    for file, board in zip(files, boards, strict=True):
        if (other := found.setdefault(board["uid"], file)) != file:
            raise SettingsError(f"--from: {other} and {file} have the same uid '{board['uid']}'.")
    return boards


def checked_uid(uid: str, option: str) -> str:
    """The uid. Raises SettingsError for one that Grafana would not take, or that is another path of its API."""
    if not _UID.fullmatch(uid):
        raise SettingsError(f"{option}: '{uid}' is no uid: 1 to 40 letters, digits, - and _.")
    return uid


def content(board: dict[str, Any]) -> dict[str, Any]:
    """A dashboard without what Grafana numbers itself."""
    return {key: value for key, value in board.items() if key not in _SERVERS_OWN}


def marked(board: dict[str, Any], folder: str) -> dict[str, Any]:
    """A dashboard as it is sent: its content with the mark."""
    return {**content(board), MARK: fingerprint(board, folder)}


def fingerprint(board: dict[str, Any], folder: str) -> str:
    """What content and folder are recognised by, whatever Grafana numbers, raises or writes otherwise."""
    known = {key: _number(value) for key, value in board.items() if key not in _NO_CONTENT}
    text = json.dumps([folder, known], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def decide(board: dict[str, Any], stored: Stored | None, folder: str, *, overwrite: bool) -> Push:
    """What to do with a dashboard, given what Grafana has under its uid (None: nothing)."""
    if stored is None:
        return Push(board, "create")
    there = fingerprint(stored.board, stored.folder)
    if there == fingerprint(board, folder) and _schema(board) <= _schema(stored.board):
        return Push(board, "unchanged", version=stored.version)
    if stored.provisioned:
        return Push(board, "refused", "Grafana reads it from a file (provisioned); change it there", stored.version)
    mark = stored.board.get(MARK)
    if mark == there or overwrite:
        return Push(board, "update", version=stored.version)
    return Push(board, "refused", f"{_foreign(stored, mark)}; --overwrite replaces it", stored.version)


def _foreign(stored: Stored, mark: object) -> str:
    if mark is not None:
        return f"version {stored.version} was edited or moved in Grafana after the last push"
    tags = stored.board.get("tags")
    if isinstance(tags, list) and TAG in tags:
        return f"version {stored.version} was saved in Grafana, or pushed before pushes were marked"
    return "a dashboard of this uid is there that no push has made"


def _schema(board: dict[str, Any]) -> float:
    version = board.get("schemaVersion")
    return version if isinstance(version, int | float) else 0


def _number(value: Any) -> Any:
    """A whole number is written without a point by Grafana, whatever was sent."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _number(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_number(one) for one in value]
    return value


def _read(file: Path) -> dict[str, Any]:
    try:
        board = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        board = None
    if isinstance(board, dict) and isinstance(board.get("uid"), str) and isinstance(board.get("title"), str):
        checked_uid(board["uid"], f"--from: {file}")
        return board
    raise SettingsError(f"--from: {file} is no dashboard: it must be JSON with a uid and a title.")
