"""The part of a Kubernetes API server that a port-forward needs: one Service, its pods, and streams by WebSocket.

The streams are those of the protocol `v4.channel.k8s.io`: two channels for a port, one for data and one for an
error, each opened by a frame with the number of the port. The real API server is in tests/kubernetes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import yaml

NAMESPACE, SERVICE, TOKEN = "memory", "qdrant", "the-token-of-the-account"
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass
class ForwardServer:
    """A running server. `pods` are names of pods that are ready; `target` is where their port 6333 leads."""

    target: tuple[str, int] | None = None
    pods: list[str] = field(default_factory=lambda: ["qdrant-0"])
    waiting: list[str] = field(default_factory=list)
    selector: dict[str, str] | None = field(default_factory=lambda: {"app": "qdrant"})
    opened: list[str] = field(default_factory=list)
    streams: list[socket.socket] = field(default_factory=list)
    may_forward: bool = True

    def __enter__(self) -> Self:
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.handle(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
        self._http.shutdown()
        self._http.server_close()

    def kubeconfig(self, folder: Path, token: str = TOKEN) -> str:
        """A kubeconfig whose login is a program, as those of cloud providers are."""
        login = folder / "login"
        status = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": token},
        }
        login.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(status)}\nEND\n")
        login.chmod(0o755)
        program = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(login),
            "interactiveMode": "Never",
        }
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
                "clusters": [{"name": "here", "cluster": {"server": self.url}}],
                "users": [{"name": "me", "user": {"exec": program}}],
            }
        )

    def drop(self) -> None:
        """Break every stream without a word, as a load balancer does with those that were idle."""
        for stream in self.streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        self.streams.clear()

    def handle(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _json(request, 401, {"kind": "Status", "message": "Unauthorized"})
        parts = urlsplit(request.path)
        root = f"/api/v1/namespaces/{NAMESPACE}"
        if parts.path == f"{root}/services/{SERVICE}":
            ports = [{"port": 6333, "targetPort": "http"}]
            return _json(request, 200, {"spec": {"ports": ports, "selector": self.selector}})
        if parts.path == f"{root}/pods":
            assert parse_qs(parts.query)["labelSelector"] == ["app=qdrant"]
            both = [(name, "True") for name in self.pods] + [(name, "False") for name in self.waiting]
            return _json(request, 200, {"items": [_pod(name, ready) for name, ready in both]})
        for name in self.pods:
            if parts.path == f"{root}/pods/{name}/portforward":
                if not self.may_forward:
                    return _json(request, 403, {"kind": "Status", "message": 'cannot create "pods/portforward"'})
                self.opened.append(name)
                return self._stream(request, int(parse_qs(parts.query)["ports"][0]))
        return _json(request, 404, {"kind": "Status", "message": f'"{parts.path.rsplit("/", 1)[1]}" not found'})

    def _stream(self, request: http.server.BaseHTTPRequestHandler, port: int) -> None:
        accept = hashlib.sha1(
            request.headers["sec-websocket-key"].encode() + _MAGIC, usedforsecurity=False
        ).digest()
        request.send_response(101)
        for name, value in (
            ("upgrade", "websocket"),
            ("connection", "Upgrade"),
            ("sec-websocket-accept", base64.b64encode(accept).decode()),
            ("sec-websocket-protocol", "v4.channel.k8s.io"),
        ):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.flush()
        request.close_connection = True
        stream: socket.socket = request.connection
        self.streams.append(stream)
        for channel in (b"\x00", b"\x01"):
            _send(stream, channel + struct.pack("<H", port))
        try:
            if self.target is None:
                raise ConnectionRefusedError("connection refused")
            there = socket.create_connection(self.target)
        except OSError as error:
            _send(stream, b"\x01" + f"failed to connect to port {port}: {error}".encode())
            return
        threading.Thread(target=_back, args=(there, stream), daemon=True).start()
        with contextlib.suppress(OSError, ValueError):
            while (data := _receive(request.rfile)) is not None:
                there.sendall(data)
        with contextlib.suppress(OSError):
            there.shutdown(socket.SHUT_RDWR)


def _back(there: socket.socket, stream: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := there.recv(65536):
            _send(stream, b"\x00" + data)
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)


def _send(stream: socket.socket, data: bytes) -> None:
    length = len(data)
    head = bytes([length]) if length < 126 else b"\x7e" + struct.pack(">H", length)
    if length > 0xFFFF:
        head = b"\x7f" + struct.pack(">Q", length)
    stream.sendall(b"\x82" + head + data)


def _receive(source: Any) -> bytes | None:
    """The data of the next frame for channel 0; None at the end."""
    while head := source.read(2):
        length = head[1] & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", source.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", source.read(8))
        mask = source.read(4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(source.read(length)))
        if head[0] & 0x0F == 8:
            return None
        if data[:1] == b"\x00":
            return data[1:]
    return None


def _pod(name: str, ready: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "qdrant", "ports": [{"name": "http", "containerPort": 6333}]}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def _json(request: http.server.BaseHTTPRequestHandler, status: int, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    request.send_response(status)
    request.send_header("content-type", "application/json")
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
