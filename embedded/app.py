"""The ASGI application: finds the route, asks the keys, runs the handler in a thread, and words the answer."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from embedded.errors import ApiError, refusal
from embedded.keys import Keys, Refused, Unauthorized
from embedded.metrics import Metrics
from embedded.routes import table
from embedded.routes.base import Bare, Call, Route, Text
from embedded.routes.service import VERSION
from embedded.storage import Store

logger = logging.getLogger(__name__)
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
_FLUSH_EVERY_SECONDS = 5.0


class _Router:
    """Finds a route by method and raw path, so that an escaped slash stays inside its segment."""

    def __init__(self, routes: list[Route]) -> None:
        self._fixed: dict[tuple[str, str], Route] = {}
        self._patterns: dict[tuple[str, int], list[tuple[re.Pattern[str], Route]]] = {}
        for route in routes:
            if "{" not in route.path:
                self._fixed[route.method, route.path] = route
                continue
            pattern = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]*)", re.escape(route.path)) + "$")
            self._patterns.setdefault((route.method, route.path.count("/")), []).append((pattern, route))
        for candidates in self._patterns.values():
            candidates.sort(key=lambda item: item[1].path.count("{"))

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        fixed = self._fixed.get((method, path))
        if fixed is not None:
            return fixed, {}
        for pattern, route in self._patterns.get((method, path.count("/")), ()):
            match = pattern.match(path)
            if match:
                return route, {name: unquote(value) for name, value in match.groupdict().items()}
        return None


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value, option=_OPTIONS), status, media_type="application/json")


def _answer(result: Any, began: float) -> Response:
    if isinstance(result, Text):
        return Response(result.text, media_type=result.media_type)
    if isinstance(result, Bare):
        return _json(result.value)
    return _json({"result": result, "status": "ok", "time": time.perf_counter() - began})


class Endpoint:
    """Answers every request of one store."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store = store
        self._keys = keys
        self._metrics = Metrics(VERSION)
        self._router = _Router(table)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        request = Request(scope, receive)
        path = scope["raw_path"].decode("latin-1").partition("?")[0]
        response = await self._respond(request, path if len(path) == 1 else path.rstrip("/"))
        await response(scope, receive, send)

    async def _respond(self, request: Request, path: str) -> Response:
        try:
            rights = self._keys.rights(path, request.headers)
        except Unauthorized as error:
            return Response(str(error), 401, media_type="text/plain; charset=utf-8")
        except Refused as error:
            return Response(str(error), 403, media_type="text/plain; charset=utf-8")
        found = self._router.find(request.method, path)
        if found is None:
            return Response(status_code=404)
        route, names = found
        body = await request.body()
        call = Call(self._store, self._metrics, rights, names, request.query_params, body)
        began = time.perf_counter()
        response = await run_in_threadpool(self._handle, route, call, began)
        self._metrics.observe(route, response.status_code, time.perf_counter() - began)
        return response

    @staticmethod
    def _handle(route: Route, call: Call, began: float) -> Response:
        try:
            return _answer(route.handler(call), began)
        except BaseException as error:
            refused = refusal(error)
            if refused is None and not isinstance(error, Exception):
                raise
            if refused is None or not isinstance(error, Exception):
                logger.exception("%s %s failed", route.method, route.path)
            refused = refused or ApiError(500, "Service internal error: see the endpoint's log")
            status, message = refused.status, refused.message
        return _json({"status": {"error": message}, "time": time.perf_counter() - began}, status)


async def _flush_now_and_then(store: Store) -> None:
    while True:
        await asyncio.sleep(_FLUSH_EVERY_SECONDS)
        await run_in_threadpool(store.flush_idle)


async def _optimize_now_and_then(store: Store) -> None:
    while True:
        await asyncio.sleep(_FLUSH_EVERY_SECONDS)
        await run_in_threadpool(store.optimize_quiet)


def create_app(store: Store, keys: Keys) -> Starlette:
    """The application on an open store, which it closes when it ends."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(_flush_now_and_then(store)),
            asyncio.create_task(_optimize_now_and_then(store)),
        ]
        yield
        store.stop_optimizing()
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await run_in_threadpool(store.close)

    app = Starlette(lifespan=lifespan)
    app.router.default = Endpoint(store, keys)
    return app
