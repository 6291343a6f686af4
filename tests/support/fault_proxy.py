"""An HTTP proxy in front of Qdrant that answers as it is told: with errors, late, or by hanging up.

    with FaultProxy(qdrant_url) as proxy:
        proxy.script(Status(503), Status(429, retry_after=1), path="/points/delete")   # the next two such requests
        proxy.always(Reset(), method="POST")                                           # every such request
        session = Session(proxy.url)
        ...
        proxy.heal()
        assert proxy.seen("POST", "/points/delete") == 3

`path` is a regular expression searched in the path with its query. A request that no fault concerns is forwarded.
"""

from __future__ import annotations

import http.client
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Status:
    """Answer with this status, without asking Qdrant."""

    code: int
    retry_after: int | None = None
    body: bytes = b'{"status":{"error":"injected by the test"},"time":0.0}'


@dataclass(frozen=True)
class Delay:
    """Forward after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Reset:
    """Hang up without an answer. With `forwarded`, Qdrant has done what was asked, and only the answer is lost."""

    forwarded: bool = False


@dataclass(frozen=True)
class Call:
    """Call a function, then forward: what happens between two requests of the one who is tested."""

    function: Callable[[], object]


Fault = Status | Delay | Reset | Call


@dataclass
class _Rule:
    faults: list[Fault]
    method: str | None
    path: re.Pattern[str]
    endless: bool
    skip: int = 0


@dataclass
class FaultProxy:
    """The proxy; `url` is where to send requests. Start it with `with`."""

    upstream: str
    port: int = 0
    log: list[tuple[str, str]] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> FaultProxy:
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, *faults: Fault, method: str | None = None, path: str = "", after: int = 0) -> None:
        """The next matching requests, past the first `after`, get these faults, one each."""
        with self._lock:
            self._rules.append(_Rule(list(faults), method, re.compile(path), endless=False, skip=after))

    def always(self, fault: Fault, *, method: str | None = None, path: str = "", after: int = 0) -> None:
        """Every matching request, past the first `after`, gets this fault until `heal`."""
        with self._lock:
            self._rules.append(_Rule([fault], method, re.compile(path), endless=True, skip=after))

    def heal(self) -> None:
        """Forward everything again."""
        with self._lock:
            self._rules.clear()

    def seen(self, method: str | None = None, path: str = "") -> int:
        """How many matching requests came in, with or without a fault."""
        with self._lock:
            return sum(1 for m, p in self.log if method in (None, m) and re.search(path, p))

    def next_fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            self.log.append((method, path))
            for rule in self._rules:
                if rule.method not in (None, method) or not rule.path.search(path) or not rule.faults:
                    continue
                if rule.skip:
                    rule.skip -= 1
                    continue
                return rule.faults[0] if rule.endless else rule.faults.pop(0)
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up waiting is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    owner: FaultProxy
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = self.owner.next_fault(self.command, self.path)
        match fault:
            case Status():
                headers = [("content-type", "application/json")]
                if fault.retry_after is not None:
                    headers.append(("retry-after", str(fault.retry_after)))
                self._answer(fault.code, headers, fault.body)
                return
            case Delay():
                time.sleep(fault.seconds)
            case Call():
                fault.function()
            case Reset(forwarded=False):
                self._hang_up()
                return
        answer = self._forward(body)
        if answer is None or isinstance(fault, Reset):
            self._hang_up()
        else:
            self._answer(*answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes] | None:
        target = urlsplit(self.owner.upstream)
        connection = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=60)
        headers = {
            k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")
        }
        try:
            connection.request(self.command, self.path, body=body or None, headers=headers)
            answer = connection.getresponse()
            kept = [(k, v) for k, v in answer.getheaders() if k.lower() in ("content-type", "retry-after", "date")]
            return answer.status, kept, answer.read()
        except OSError:
            return None
        finally:
            connection.close()

    def _answer(self, code: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _hang_up(self) -> None:
        """A reset, not an orderly end: lingering for 0 seconds drops what is unsent."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()
