"""A small Grafana over real HTTP: folders and dashboards with the rules of its API on versions, names and tokens.

It draws nothing. It knows: a bearer token; a folder's uid is given once; saving needs a folder that exists; saving
over a newer version, or a title that another dashboard of the folder has, is refused with 412 unless `overwrite`;
one that is provisioned is never saved. What it stores went through JSON as Go writes it: whole numbers have no
point. `instead` answers in its place, as a proxy or another program would.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]
Instead = Callable[[str, str, dict[str, Any]], tuple[int, dict[str, str], bytes] | None]
"""Given method, path and headers: status, headers and body; None lets Grafana answer."""


@dataclass
class GrafanaServer:
    """The server; start it with `with`."""

    token: str = "glsa_test"
    folders: dict[str, str] = field(default_factory=dict)
    dashboards: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    role: str = "Editor"
    provisioned: set[str] = field(default_factory=set)
    instead: Instead | None = None

    def __enter__(self) -> GrafanaServer:
        owner = self

        class Handler(_Handler):
            state = owner

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/grafana"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        match method, path.split("/")[1:]:
            case "GET", ["api", "folders", uid]:
                if uid not in self.folders:
                    return 404, {"message": "folder not found"}
                return 200, {"uid": uid, "title": self.folders[uid]}
            case "POST", ["api", "folders"]:
                if body["uid"] in self.folders:
                    return 412, {"message": "a folder with the same uid already exists"}
                self.folders[body["uid"]] = body["title"]
                return 200, body
            case "GET", ["api", "dashboards", "uid", uid]:
                if uid not in self.dashboards:
                    return 404, {"message": "Dashboard not found"}
                stored = self.dashboards[uid]
                return 200, {**stored, "meta": {**stored["meta"], "provisioned": uid in self.provisioned}}
            case "POST", ["api", "dashboards", "db"]:
                return self._save(body)
        return 404, {"message": "Not found"}

    def edit(self, uid: str, *, folder: str | None = None, **changed: Any) -> None:
        """What a person does in Grafana: change and save it, or move it."""
        stored = self.dashboards[uid]
        board = {**stored["dashboard"], **changed, "version": stored["dashboard"]["version"] + 1}
        self.dashboards[uid] = {
            "dashboard": {key: value for key, value in board.items() if value is not None},
            "meta": {**stored["meta"], **({"folderUid": folder} if folder is not None else {})},
        }

    def _save(self, body: dict[str, Any]) -> Answer:
        if self.role != "Editor":
            return 403, {"message": "Permissions needed: dashboards:write"}
        board = dict(body["dashboard"])
        folder, overwrite = body["folderUid"], body["overwrite"]
        if folder not in self.folders:
            return 400, {"message": "folder not found"}
        if board["uid"] in self.provisioned:
            return 400, {"message": "Cannot save provisioned dashboard"}
        before = self.dashboards.get(board["uid"])
        if before is not None and not overwrite and board["version"] != before["dashboard"]["version"]:
            return 412, {"status": "version-mismatch", "message": "The dashboard has been changed by someone else"}
        same = [
            uid
            for uid, d in self.dashboards.items()
            if (d["dashboard"]["title"], d["meta"]["folderUid"]) == (board["title"], folder) and uid != board["uid"]
        ]  # fmt: skip
        if same and not overwrite:
            return 412, {"status": "name-exists", "message": "A dashboard with the same name already exists"}
        version = 1 if before is None else before["dashboard"]["version"] + 1
        stored = {
            **json.loads(json.dumps(board), parse_float=_as_go),
            "id": len(self.dashboards) + 1,
            "version": version,
        }
        self.dashboards[board["uid"]] = {
            "dashboard": stored,
            "meta": {"folderUid": folder, "message": body["message"]},
        }
        return 200, {"status": "success", "uid": board["uid"], "version": version}


def _as_go(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


class _Handler(BaseHTTPRequestHandler):
    state: GrafanaServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.removeprefix("/grafana")
        self.state.requests.append((self.command, path))
        headers = {"content-type": "application/json"}
        given = self.state.instead and self.state.instead(self.command, path, dict(self.headers))
        if given:
            code, more, content = given
            headers |= more
        elif self.headers.get("authorization") != f"Bearer {self.state.token}":
            code, content = 401, json.dumps({"message": "Invalid API key"}).encode()
        else:
            code, answer = self.state.answer(self.command, path, json.loads(body) if body else {})
            content = json.dumps(answer).encode()
        self.send_response(code)
        for name, value in {**headers, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _serve
