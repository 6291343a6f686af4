"""Bringing dashboards to a Grafana by its HTTP API: find what is there, decide, apply.

A dashboard of ours is known by its uid and tag. One with the uid but without the tag is somebody else's, and one
that changes between looking and writing is being worked on: both are left alone unless overwriting is asked for.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import httpx
from pydantic import SecretStr

from ops.errors import OpsError, SettingsError

TAG: Final = "comemory"
_SERVERS_OWN: Final = frozenset({"id", "version"})

Action = Literal["create", "update", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class Push:
    """What is to be done with one dashboard; `why` explains a refusal, `version` is that which was looked at."""

    board: dict[str, Any]
    action: Action
    why: str = ""
    version: int = 0


def read_boards(folder: Path) -> list[dict[str, Any]]:
    """The dashboards of a folder, by file name.

    Raises:
        SettingsError: there is none, or a file is no dashboard.
    """
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise SettingsError(f"--from: {folder} holds no dashboards (*.json).")
    return [_read(file) for file in files]


def decide(board: dict[str, Any], there: dict[str, Any] | None, folder: str, *, overwrite: bool) -> Push:
    """What to do with a dashboard, given Grafana's answer for its uid (None: it has none)."""
    if there is None:
        return Push(board, "create")
    live, meta = there["dashboard"], there["meta"]
    version = int(live.get("version", 0))
    if TAG not in live.get("tags", []) and not overwrite:
        return Push(board, "refused", f"a dashboard of this uid without the tag {TAG} is there", version)
    same = {k: v for k, v in live.items() if k not in _SERVERS_OWN} == _content(board)
    if same and meta.get("folderUid", "") == folder:
        return Push(board, "unchanged", version=version)
    return Push(board, "update", version=version)


class Grafana:
    """A Grafana, as a service account sees it.

    Args:
        url: Where it is; a path before `/api` is allowed.
        token: The service account's token.
        ca: Certificate authorities to trust; None: the system's.
    """

    def __init__(self, url: str, token: SecretStr, *, ca: Path | None = None, timeout: float = 30) -> None:
        self.url = url.rstrip("/")
        try:
            verify: ssl.SSLContext | bool = True if ca is None else ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise SettingsError(f"--ca-file: cannot use {ca}: {error.strerror or 'no certificates'}.") from None
        headers = {"authorization": f"Bearer {token.get_secret_value()}"}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, verify=verify)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._http.close()

    def plan(self, boards: Iterable[dict[str, Any]], folder: str, *, overwrite: bool) -> list[Push]:
        """What a push would do. It only reads."""
        return [
            decide(board, self._get(f"/api/dashboards/uid/{board['uid']}"), folder, overwrite=overwrite)
            for board in boards
        ]

    def has_folder(self, uid: str) -> bool:
        """Whether the folder is there."""
        return self._get(f"/api/folders/{uid}") is not None

    def make_folder(self, uid: str, title: str) -> None:
        """Make the folder; one that appeared meanwhile will do."""
        self._send("/api/folders", {"uid": uid, "title": title}, also=(409, 412))

    def apply(self, pushes: Iterable[Push], folder: str, message: str, *, overwrite: bool) -> Iterator[Push]:
        """Do what was decided, and give each as it went."""
        for push in pushes:
            if push.action in ("unchanged", "refused"):
                yield push
                continue
            board = {**_content(push.board), "id": None, "version": push.version}
            body = {"dashboard": board, "folderUid": folder, "message": message, "overwrite": overwrite}
            answer = self._send("/api/dashboards/db", body, also=(412,))
            if answer.status_code == httpx.codes.PRECONDITION_FAILED:
                yield Push(push.board, "refused", _said(answer), push.version)
            else:
                yield push

    def _get(self, path: str) -> dict[str, Any] | None:
        answer = self._ask("GET", path, None)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        found: dict[str, Any] = self._decoded(answer)
        return found

    def _send(self, path: str, body: dict[str, Any], *, also: tuple[int, ...]) -> httpx.Response:
        answer = self._ask("POST", path, body)
        if answer.status_code not in also:
            self._decoded(answer)
        return answer

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:
            return self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise OpsError(f"Grafana at {self.url} gave no answer: {type(error).__name__}: {error}.") from None

    def _decoded(self, answer: httpx.Response) -> Any:
        where = f"{answer.request.method} {answer.request.url.path}"
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise OpsError(
                f"Grafana at {self.url} refused {where}: {_said(answer)}. The service account needs a valid token "
                "and the role Editor, or rights on folders and dashboards."
            )
        if answer.is_error:
            raise OpsError(f"Grafana at {self.url} answered {where} with {answer.status_code}: {_said(answer)}.")
        try:
            return answer.json()
        except ValueError:
            raise OpsError(f"What answers {where} at {self.url} is not Grafana; check --url.") from None


def _content(board: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in board.items() if key not in _SERVERS_OWN}


def _read(file: Path) -> dict[str, Any]:
    try:
        board = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(board, dict) and isinstance(board["uid"], str) and isinstance(board["title"], str):
            return board
    except (OSError, ValueError, KeyError):
        pass
    raise SettingsError(f"--from: {file} is no dashboard: it must be JSON with a uid and a title.")


def _said(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"]).rstrip(".")
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"
