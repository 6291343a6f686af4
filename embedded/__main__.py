"""Start the endpoint: `python -m embedded --path DIR [--host 127.0.0.1] [--port 6333] [--ready-file FILE]`."""

from __future__ import annotations

import argparse
import gc
import ipaddress
import os
import socket
import sys
from pathlib import Path

import uvicorn

from embedded.app import create_app
from embedded.files import FolderError
from embedded.keys import API_KEY, JWT_RBAC, READ_ONLY_API_KEY, Keys
from embedded.storage import Store


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m embedded",
        description="A Qdrant REST endpoint on the embedded engine, for a laptop and for tests.",
        epilog=f"Keys are read from the environment: {API_KEY}, {READ_ONLY_API_KEY}; {JWT_RBAC}=true takes tokens.",
    )
    parser.add_argument("--path", type=Path, required=True, help="folder of the data, made if it is not there")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=6333, help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument("--ready-file", type=Path, help="file that gets the address once requests are answered")
    return parser.parse_args()


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(uvicorn.Server):
    """Tells the address once the socket listens."""

    def __init__(self, config: uvicorn.Config, url: str, ready_file: Path | None) -> None:
        super().__init__(config)
        self._url = url
        self._ready_file = ready_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file is not None and self.started:
            temporary = self._ready_file.with_name(f"{self._ready_file.name}.tmp")
            temporary.write_text(f"{self._url}\n")
            temporary.replace(self._ready_file)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio switches Nagle's delay off; without, an answer may wait 40 ms for a packet.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


def main() -> int:
    """Run until stopped; 1 if it could not start."""
    arguments = _arguments()
    keys = Keys.from_environment(os.environ)
    try:
        listener = _listen(arguments.host, arguments.port)
    except OSError as error:
        print(f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 1
    try:
        store = Store(arguments.path.resolve())
    except FolderError as error:
        listener.close()
        print(f"cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 1
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    url = f"http://{host}:{listener.getsockname()[1]}"
    if not _loopback(arguments.host):
        risk = "" if keys.required else f" and without a key (set {API_KEY})"
        print(  # noqa: T201
            f"warning: bound beyond loopback without TLS{risk}: every machine that reaches this one can talk to it",
            file=sys.stderr,
            flush=True,
        )
    print(  # noqa: T201
        f"embedded Qdrant endpoint for a laptop and for tests, not for production: {url}, data in {store.folder}, "
        f"{'with' if keys.required else 'without'} keys",
        flush=True,
    )
    gc.freeze()  # what was imported stays, and is not to be looked through again with each page of points
    config = uvicorn.Config(
        create_app(store, keys), log_level="warning", access_log=False, timeout_graceful_shutdown=10
    )
    _Server(config, url, arguments.ready_file).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
