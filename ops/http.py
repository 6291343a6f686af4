"""What the daemon serves: `/metrics`, `/healthz`, `/readyz`, `/status`. None of them asks Qdrant anything."""

from __future__ import annotations

import hmac
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import orjson
import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ops.errors import OpsError
from ops.files import check_certificate
from ops.settings import HttpSettings

Endpoint = Callable[[Request], Response]
Render = Callable[[str], tuple[bytes, str]]
"""From an `Accept` header to the text of the metrics and its content type."""


def application(
    *,
    metrics: Render,
    ready: Callable[[], list[str]],
    status: Callable[[], dict[str, Any]],
    token: SecretStr | None = None,
) -> Starlette:
    """The web application.

    Args:
        metrics: Makes the text of `/metrics`, as OpenMetrics when the scraper asks for it.
        ready: Why the daemon is not ready, one sentence each; empty when it is.
        status: What `/status` answers.
        token: Asked for as `Authorization: Bearer` by `/metrics` and `/status`; probes need none.
    """

    def serve_metrics(request: Request) -> Response:
        text, content_type = metrics(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": content_type})

    def serve_health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    def serve_ready(_: Request) -> Response:
        reasons = ready()
        return _json({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    def serve_status(_: Request) -> Response:
        return _json(status())

    return Starlette(
        routes=[
            Route("/metrics", _guarded(serve_metrics, token)),
            Route("/status", _guarded(serve_status, token)),
            Route("/healthz", serve_health),
            Route("/readyz", serve_ready),
        ]
    )


def _guarded(endpoint: Endpoint, token: SecretStr | None) -> Endpoint:
    if token is None:
        return endpoint
    expected = token.get_secret_value().encode()

    def guard(request: Request) -> Response:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # The bytes as they came. The name of a scheme may be in any case, by RFC 9110.
        same = hmac.compare_digest(given.encode("latin-1"), expected)
        if not same or scheme.lower() != "bearer":
            return PlainTextResponse("a bearer token is needed\n", 401, {"www-authenticate": "Bearer"})
        return endpoint(request)

    return guard


def _json(value: dict[str, Any], status: int = 200) -> Response:
    body = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return Response(body, status, media_type="application/json")


class HttpServer:
    """The application on a port, in a thread. The port is taken when the object is made.

    Raises:
        OpsError: the address cannot be bound.
        SettingsError: the certificate or its key cannot be used.
    """

    def __init__(self, settings: HttpSettings, app: Starlette) -> None:
        check_certificate(settings.tls_certificate, settings.tls_key)
        secure = settings.tls_certificate is not None
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )
        config.load()
        self._socket = _bind(settings.host, settings.port)
        port = self._socket.getsockname()[1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"{'https' if secure else 'http'}://{host}:{port}"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="http", daemon=True
        )

    def start(self) -> None:
        """Begin to answer; returns at once, and connections made meanwhile wait in the queue."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what is under way and give the port back."""
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0
        why = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
        raise OpsError(
            f"Cannot listen on {host} port {port}: {why}. Set http.host and http.port to an address that is free."
        ) from None
