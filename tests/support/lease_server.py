"""A small API server for Leases: GET, POST and PUT with the conflict rules of Kubernetes, over real HTTP.

It is no Kubernetes: it knows one kind of object and checks only the token, the `resourceVersion` (a write decided
on an older one is refused with 409) and that a name is made once. A test against a real API server would only
exchange the `ApiServer(url, namespace, token_file, ca_file)`.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class LeaseServer:
    """The server; start it with `with`. `status` set answers everything with that status."""

    token: str = "token-1"
    leases: dict[str, dict[str, Any]] = field(default_factory=dict)
    status: int | None = None
    writes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> LeaseServer:
        owner = self

        class Handler(_Handler):
            state = owner

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def holder(self, name: str = "comemory") -> str:
        return str(self.leases[f"{PREFIX}/{name}"]["spec"]["holderIdentity"])


PREFIX = "/apis/coordination.k8s.io/v1/namespaces/memory/leases"


class _Handler(BaseHTTPRequestHandler):
    state: LeaseServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve(lambda _: (200, self.state.leases[self.path]) if self.path in self.state.leases else (404, {}))

    def do_POST(self) -> None:
        def create(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            path = f"{self.path}/{body['metadata']['name']}"
            if path in self.state.leases:
                return 409, {"reason": "AlreadyExists"}
            return 201, self._store(path, body)

        self._serve(create)

    def do_PUT(self) -> None:
        def update(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if self.path not in self.state.leases:
                return 404, {}
            if body["metadata"]["resourceVersion"] != self.state.leases[self.path]["metadata"]["resourceVersion"]:
                return 409, {"reason": "Conflict"}
            return 200, self._store(self.path, body)

        self._serve(update)

    def _store(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.state.writes += 1
        body["metadata"]["resourceVersion"] = str(self.state.writes)
        self.state.leases[path] = body
        return body

    def _serve(self, act: Any) -> None:
        text = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.state.lock:
            if self.state.status is not None:
                code, answer = self.state.status, {}
            elif self.headers.get("authorization") != f"Bearer {self.state.token}":
                code, answer = 401, {}
            else:
                code, answer = act(json.loads(text) if text else {})
            content = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
