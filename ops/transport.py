"""Requests to one Qdrant endpoint: time-outs, retries while it is busy, and its refusals in plain words.

Requests go out as plain REST and answers are parsed with `orjson`: the models of `qdrant-client` cost more than
the server does when hundreds of thousands of points pass by.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn, Self

import httpx
import orjson
import tenacity
from pydantic import SecretStr

from ops.errors import CollectionGone, IndexRequired, PageTooLarge, Refused, Unauthorized, Unreachable

Json = Any
"""A decoded JSON value: its shape is the server's."""

BUSY = frozenset({408, 429, 500, 502, 503, 504})
"""Answers worth another try: every request made here may be sent twice without harm."""

_MISSING_INDEX = re.compile(
    r"""Index required but not found for \\?"([^"\\]+)"""
    r"|No appropriate index for faceting: `([^`]+)`"
    r"|No range index for `order_by` key: `([^`]+)`"
)
_LIMIT = re.compile(r'Limit exceeded \d+ > (\d+) for \\?"limit')


class _Busy(Exception):
    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


@dataclass
class Traffic:
    """What a session has sent so far; a job reports the difference over its run."""

    requests: int = 0
    retries: int = 0
    received: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, *, requests: int = 0, retries: int = 0, received: int = 0) -> None:
        """Count requests sent, tries repeated, and bytes received (of the bodies, as JSON)."""
        with self.lock:
            self.requests += requests
            self.retries += retries
            self.received += received


class Transport:
    """A client of one Qdrant endpoint that speaks in requests and answers.

    Args:
        url: The endpoint, such as `http://127.0.0.1:6333`.
        api_key: Sent as the `api-key` header; never logged.
        timeout: Seconds that one request may take.
        ca: A file with the certificate authorities to trust, or None for the system's.
        retry_for: Seconds during which a busy or absent server is asked again before the request fails.
        stop: Set it to end the waiting between two tries at once.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: SecretStr | None = None,
        timeout: float = 60.0,
        ca: str | None = None,
        retry_for: float = 30.0,
        stop: threading.Event | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.traffic = Traffic()
        self._timeout = timeout
        self._retry_for = retry_for
        self._stop = stop or threading.Event()
        headers = {"content-type": "application/json"}
        if api_key is not None:
            headers["api-key"] = api_key.get_secret_value()
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 5.0)),
            verify=ssl.create_default_context(cafile=ca) if ca is not None else True,
            limits=httpx.Limits(max_connections=8, max_keepalive_connections=8),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # --- one request -----------------------------------------------------------------------------------------

    def request(self, method: str, path: str, body: Json = None, *, collection: str = "") -> Json:
        """Send a request, again while the server is busy, and return the `result` of the answer.

        Raises:
            Unreachable: no useful answer within `retry_for` seconds.
            Unauthorized, CollectionGone, IndexRequired, Refused: what the server said, in plain words.
        """
        content = None if body is None else orjson.dumps(body)
        return self.again(lambda: self.send(method, path, content, collection), f"{method} {path}")

    def again(self, attempt: Callable[[], Json], what: str) -> Json:
        """What `attempt` returns, tried again while the server is busy."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Busy),
            wait=self._wait,
            stop=tenacity.stop_after_delay(self._retry_for) | tenacity.stop_when_event_set(self._stop),
            sleep=tenacity.sleep_using_event(self._stop),
            before_sleep=lambda _: self.traffic.add(retries=1),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except _Busy as busy:
            raise Unreachable(
                f"Qdrant at {self.url} gave no answer to {what} in {self._retry_for:g} s of tries: {busy}."
            ) from None

    @staticmethod
    def _wait(state: tenacity.RetryCallState) -> float:
        outcome = state.outcome
        error = outcome.exception() if outcome is not None else None
        if isinstance(error, _Busy) and error.retry_after is not None:
            return error.retry_after
        return float(tenacity.wait_random_exponential(multiplier=0.1, max=5.0)(state))

    def send(self, method: str, path: str, content: bytes | None, collection: str) -> Json:
        """One try of a request; what `again` repeats while the server is busy."""
        self.traffic.add(requests=1)
        try:
            answer = self._http.request(method, path, content=content)
        except httpx.TimeoutException:
            raise _Busy(f"no answer within {self._timeout:g} s") from None
        except httpx.TransportError as error:
            raise _Busy(str(error) or type(error).__name__) from None
        self.traffic.add(received=len(answer.content))
        if answer.status_code in BUSY:
            raise _Busy(f"it answered {answer.status_code}", _retry_after(answer.headers))
        try:
            decoded = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            decoded = answer.text
        if answer.is_success:
            return self._result(decoded, method, path)
        return self._refuse(answer.status_code, decoded, method, path, collection)

    def _result(self, decoded: Json, method: str, path: str) -> Json:
        # All of Qdrant's answers have a result but the one that says who answers.
        if isinstance(decoded, dict):
            found = decoded.get("result", decoded if path == "/" and "version" in decoded else None)
            if found is not None:
                return found
        raise Refused(
            f"What answers {method} {path} at {self.url} is not Qdrant's REST API; check the settings' qdrant.url."
        )

    def _refuse(self, status: int, decoded: Json, method: str, path: str, collection: str) -> NoReturn:
        said = _said(decoded)
        missing = _MISSING_INDEX.search(said)
        if missing:
            raise IndexRequired(collection, next(field for field in missing.groups() if field))
        too_many = _LIMIT.search(said)
        if too_many:
            raise PageTooLarge(collection, int(too_many.group(1)))
        if status == httpx.codes.UNAUTHORIZED:
            raise Unauthorized(
                f"Qdrant at {self.url} refused the API key: {said}. Check the settings' api_key_file."
            )
        if status == httpx.codes.FORBIDDEN:
            raise Unauthorized(f"The API key has no right to {method} {path}: {said}.")
        if status == httpx.codes.NOT_FOUND and collection:
            raise CollectionGone(collection)
        raise Refused(f"Qdrant refused {method} {path} ({status}): {said}")

    def date(self) -> datetime | None:
        """The server's clock, from the `Date` header of an answer (to the second), or None when it sends none.

        Raises:
            Unreachable: there is no answer; it is not asked again.
        """
        self.traffic.add(requests=1)
        try:
            answer = self._http.get("/")
        except httpx.TransportError as error:
            raise Unreachable(f"Qdrant at {self.url} gave no answer: {error}.") from None
        try:
            return parsedate_to_datetime(answer.headers["date"])
        except (KeyError, ValueError):
            return None


def _said(decoded: Json) -> str:
    """The error of an answer: Qdrant's own, or the begin of what something in front of it wrote, on one line."""
    status = decoded.get("status") if isinstance(decoded, dict) else None
    if isinstance(status, dict) and "error" in status:
        return str(status["error"])
    return " ".join(str(decoded).split())[:200] or "no text"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, when the server named them; a date is not worth parsing for a back-off."""
    value = headers.get("retry-after", "")
    return min(float(value), 60.0) if value.isdecimal() else None
