"""A Grafana by its HTTP API: looking up dashboards and folders, and saving what was decided (`ops.boards`).

What answers may also be a proxy, a login page or another program: an answer is Grafana's only when it has the shape
that Grafana gives it. One dashboard that cannot be read or saved does not keep the others from their turn.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, SecretStr, ValidationError

from ops.boards import Push, Stored, decide, marked
from ops.errors import OpsError, SettingsError
from ops.logs import MASK

_LONGEST: Final = 300
"""Characters of a server's own words that are shown."""


class NoAnswer(OpsError):
    """The request got no answer; whether it was carried out is not known."""


class GrafanaError(OpsError):
    """Grafana refused the request, or what answered is not Grafana."""


class _Meta(BaseModel):
    folderUid: str | None = None  # noqa: N815, as Grafana spells it
    provisioned: bool = False


class _Numbered(BaseModel, extra="allow"):
    version: int = 0


class _Dashboard(BaseModel):
    dashboard: _Numbered
    meta: _Meta


class Grafana:
    """A Grafana, as a service account sees it.

    Args:
        url: Where it is; a path before `/api` is allowed.
        token: The service account's token.
        ca: Certificate authorities to trust; None: the system's.

    Raises:
        SettingsError: address or authorities cannot be used.
    """

    def __init__(self, url: str, token: SecretStr, *, ca: Path | None = None, timeout: float = 30) -> None:
        self.url = _address(url)
        self._token = token.get_secret_value()
        try:
            verify = ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise SettingsError(f"--ca-file: cannot use {ca}: {error.strerror or 'no certificates'}.") from None
        headers = {"authorization": f"Bearer {self._token}"}
        try:
            self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, verify=verify)
        except httpx.InvalidURL as error:
            raise SettingsError(f"--url: it is no address: {error}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._http.close()

    def plan(self, boards: Iterable[dict[str, Any]], folder: str, *, overwrite: bool) -> list[Push]:
        """What a push would do. It only reads; a dashboard that cannot be read has failed.

        Raises:
            NoAnswer: nothing answers.
        """
        return [self._decided(board, folder, overwrite=overwrite) for board in boards]

    def _decided(self, board: dict[str, Any], folder: str, *, overwrite: bool) -> Push:
        try:
            return decide(board, self._stored(board["uid"]), folder, overwrite=overwrite)
        except GrafanaError as error:
            return Push(board, "failed", str(error))

    def has_folder(self, uid: str) -> bool:
        """Whether the folder is there."""
        answer = self._ask("GET", f"/api/folders/{uid}", None)
        found = self._object(answer, missing=True)
        if found is not None and found.get("uid") != uid:
            raise self._strange(answer)
        return found is not None

    def make_folder(self, uid: str, title: str) -> None:
        """Make the folder; one that appeared meanwhile will do."""
        answer = self._ask("POST", "/api/folders", {"uid": uid, "title": title})
        if answer.status_code in (httpx.codes.CONFLICT, httpx.codes.PRECONDITION_FAILED) and self.has_folder(uid):
            return
        found = self._object(answer)
        if found is None or found.get("uid") != uid:
            raise self._strange(answer)

    def apply(self, pushes: Iterable[Push], folder: str, message: str) -> Iterator[Push]:
        """Do what was decided, and give each as it went. Once nothing answers no more is sent."""
        silent = ""
        for push in pushes:
            if push.action not in ("create", "update"):
                yield push
            elif silent:
                yield replace(push, action="failed", why="not tried, since Grafana gave no answer before")
            else:
                try:
                    yield self._saved(push, folder, message)
                except NoAnswer as error:
                    silent = str(error)
                    yield replace(push, action="failed", why=f"{silent} It may have been written all the same.")
                except GrafanaError as error:
                    yield replace(push, action="failed", why=str(error))

    def _saved(self, push: Push, folder: str, message: str) -> Push:
        # Grafana's own `overwrite` is never asked for: the version says what is to be replaced. With it a save in
        # between would be lost, and on some versions of Grafana another dashboard of the same title.
        board = {**marked(push.board, folder), "id": None, "version": push.version}
        body = {"dashboard": board, "folderUid": folder, "message": message, "overwrite": False}
        answer = self._ask("POST", "/api/dashboards/db", body)
        if answer.status_code == httpx.codes.PRECONDITION_FAILED:
            return replace(push, action="refused", why=self._said(answer))
        found = self._object(answer)
        if found is None or (found.get("uid"), found.get("status")) != (push.board["uid"], "success"):
            raise self._strange(answer)
        return push

    def _stored(self, uid: str) -> Stored | None:
        answer = self._ask("GET", f"/api/dashboards/uid/{uid}", None)
        found = self._object(answer, missing=True)
        if found is None:
            return None
        try:
            read = _Dashboard.model_validate(found)
        except ValidationError:
            raise self._strange(answer) from None
        return Stored(found["dashboard"], read.dashboard.version, read.meta.folderUid or "", read.meta.provisioned)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:
            return self._http.request(method, path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = self._clean(f"{type(error).__name__}: {error}")
            raise NoAnswer(f"Grafana at {self.url} gave no answer: {said}.") from None

    def _object(self, answer: httpx.Response, *, missing: bool = False) -> dict[str, Any] | None:
        """The object that was answered; None for 404 where `missing` allows it, and Grafana itself says it."""
        where = _where(answer)
        if answer.is_redirect:
            raise GrafanaError(
                f"{where} at {self.url} is redirected to {self._clean(_target(answer))}; "
                "give Grafana's own address with --url."
            )
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise GrafanaError(
                f"Grafana at {self.url} refused {where}: {self._said(answer)}. The service account needs a valid "
                "token and the role Editor, or rights on folders and dashboards."
            )
        found = _json(answer)
        if answer.status_code == httpx.codes.NOT_FOUND and missing and isinstance(found, dict):
            return None
        if answer.is_error:
            raise GrafanaError(
                f"Grafana at {self.url} answered {where} with {answer.status_code}: {self._said(answer)}."
            )
        if not isinstance(found, dict):
            raise self._strange(answer)
        return found

    def _strange(self, answer: httpx.Response) -> GrafanaError:
        return GrafanaError(f"What answers {_where(answer)} at {self.url} is not Grafana; check --url.")

    def _said(self, answer: httpx.Response) -> str:
        """The server's own words, which may repeat what it was sent."""
        found = _json(answer)
        message = found.get("message") if isinstance(found, dict) else None
        text = self._clean(message).rstrip(".") if isinstance(message, str) else ""
        return text or f"status {answer.status_code}"

    def _clean(self, text: str) -> str:
        """One line of it, without the token."""
        return " ".join(text.replace(self._token, MASK).split())[:_LONGEST]


def _address(url: str) -> str:
    """The address without a slash at its end; an error never repeats it, since it may hold a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and url.isprintable() and not re.search(r"[\s\\]", url)
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError("--url: it must be an http:// or https:// address, such as https://grafana.example.")
    if "@" in parts.netloc:
        raise SettingsError("--url: it carries a user or password; give a service account's token by --token-file.")
    if parts.query or parts.fragment:
        raise SettingsError("--url: it carries a query or a fragment; give the address before /api alone.")
    return url.rstrip("/")


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _where(answer: httpx.Response) -> str:
    return f"{answer.request.method} {answer.request.url.path}"


def _target(answer: httpx.Response) -> str:
    """Where a redirect leads, without what follows the path: it may hold a session."""
    parts = urlsplit(answer.headers.get("location", ""))
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else parts.path or "nowhere"
