"""One connection to Qdrant for the jobs: time-outs, retries, paging, and errors in plain words.

Requests go out as plain REST and answers are parsed with `orjson`: the models of `qdrant-client` cost more than
the server does when hundreds of thousands of points pass by. Filters are still built from its models, so that a
filter of `comemory` is sent as it is.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import quote

import httpx
import orjson
import tenacity
from pydantic import SecretStr
from qdrant_client import models

from ops.errors import CollectionGone, IndexRequired, PageTooLarge, Refused, Unauthorized, Unreachable

PointId = int | str
Json = Any
"""A decoded JSON value: its shape is the server's."""

BUSY = frozenset({408, 429, 500, 502, 503, 504})
"""Answers worth another try: every request made here may be sent twice without harm."""

FACET_PAGE = 10_000
"""How many distinct values one facet request asks for; the server's own default is 10."""

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


class Session:
    """A client of one Qdrant endpoint.

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

    def __enter__(self) -> Session:
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
        return self._again(lambda: self._send(method, path, content, collection), f"{method} {path}")

    def _again(self, attempt: Callable[[], Json], what: str) -> Json:
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

    def _send(self, method: str, path: str, content: bytes | None, collection: str) -> Json:
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

    # --- the parts of the API that jobs use ------------------------------------------------------------------

    def version(self) -> str:
        """The server's version, such as `1.19.0`."""
        return str(self.request("GET", "/")["version"])

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

    def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        return sorted(c["name"] for c in self.request("GET", "/collections")["collections"])

    def aliases(self) -> dict[str, str]:
        """Alias to collection name."""
        found = self.request("GET", "/aliases")["aliases"]
        return {a["alias_name"]: a["collection_name"] for a in found}

    def collection(self, name: str) -> dict[str, Any]:
        """What the server says of a collection: status, counts, config and payload_schema."""
        info: dict[str, Any] = self.request("GET", _path(name), collection=name)
        return info

    def count(self, name: str, condition: models.Filter | None = None) -> int:
        """The exact number of points that match."""
        body = {"exact": True, **_filter(condition)}
        return int(self.request("POST", _path(name, "points/count"), body, collection=name)["count"])

    def facet(
        self,
        name: str,
        key: str,
        condition: models.Filter | None = None,
        *,
        exact: bool = True,
        most: int | None = None,
    ) -> dict[Any, int]:
        """Every distinct value of `key` with its count, most frequent first, however many there are.

        With `most` it stops when it has so many, or more.

        Without `exact` it is some thirty times faster, and a point that is just being moved from one segment to
        another may be counted twice.

        The server has no cursor for facets, so a further page asks for what the pages before did not show. Past the
        first page, a value that only ever stands in a list beside values already seen is not found.
        """
        found: dict[Any, int] = {}
        page = FACET_PAGE
        while True:
            unseen = condition
            if found:
                seen = models.FieldCondition(key=key, match=models.MatchAny(any=list(found)))
                must = [condition] if condition is not None else None
                unseen = models.Filter(must=must, must_not=[seen])
            body = {"key": key, "exact": exact, "limit": page, **_filter(unseen)}
            try:
                hits = self.request("POST", _path(name, "facet"), body, collection=name)["hits"]
            except PageTooLarge as smaller:
                page = smaller.limit
                continue
            new = {hit["value"]: hit["count"] for hit in hits if hit["value"] not in found}
            found.update(new)
            if len(hits) < page or not new or (most is not None and len(found) >= most):
                # Values whose last point was deleted linger in the index for a while, with a count of 0.
                return {value: count for value, count in found.items() if count}

    def scroll(
        self,
        name: str,
        condition: models.Filter | None = None,
        *,
        payload: bool | Sequence[str] = False,
        vector: bool | Sequence[str] = False,
        page: int = 1000,
        start: PointId | None = None,
    ) -> Iterator[list[dict[str, Any]]]:
        """Pages of points in order of id, as the server's JSON: `id`, and `payload` and `vector` when asked for.

        `start` is the lowest id wanted; numbers come before UUIDs.
        """
        offset = start
        while True:
            body = {"limit": page, "offset": offset, "with_payload": payload, "with_vector": vector}
            try:
                answer = self.request(
                    "POST", _path(name, "points/scroll"), body | _filter(condition), collection=name
                )
            except PageTooLarge as smaller:
                page = smaller.limit
                continue
            if answer["points"]:
                yield answer["points"]
            offset = answer.get("next_page_offset")
            if offset is None:
                return

    def first_by(
        self, name: str, key: str, conditions: Sequence[models.Filter], *, payload: bool | Sequence[str] = False
    ) -> list[dict[str, Any] | None]:
        """For each condition the matching point with the lowest `key`, or None; one request for all of them."""
        searches = [
            {
                "query": {"order_by": {"key": key, "direction": "asc"}},
                "limit": 1,
                "with_payload": payload,
                **_filter(c),
            }
            for c in conditions
        ]
        path = _path(name, "points/query/batch")
        answers = self.request("POST", path, {"searches": searches}, collection=name)
        return [answer["points"][0] if answer["points"] else None for answer in answers]

    def retrieve(
        self,
        name: str,
        ids: Sequence[PointId],
        *,
        payload: bool | Sequence[str] = False,
        vector: bool | Sequence[str] = False,
    ) -> list[dict[str, Any]]:
        """The points of these ids that exist."""
        body = {"ids": list(ids), "with_payload": payload, "with_vector": vector}
        points: list[dict[str, Any]] = self.request("POST", _path(name, "points"), body, collection=name)
        return points

    def delete(self, name: str, condition: models.Filter | Callable[[], models.Filter | None]) -> None:
        """Delete every point that matches, and return when it is done.

        Args:
            condition: Or a function that gives it (None: nothing is to be deleted any more), asked before each try:
                what it looks at may change while a busy server is waited for.

        Raises:
            ValueError: the filter has no clause; it would delete everything.
        """
        path = _path(name, "points/delete?wait=true")

        def attempt() -> Json:
            made = condition if isinstance(condition, models.Filter) else condition()
            if made is None:
                return None
            body = _filter(made)
            if not body.get("filter"):
                raise ValueError("refusing to delete by an empty filter: it matches every point")
            return self._send("POST", path, orjson.dumps(body), name)

        self._again(attempt, f"POST {path}")


def _path(collection: str, rest: str = "") -> str:
    return f"/collections/{quote(collection, safe='')}" + (f"/{rest}" if rest else "")


def _filter(condition: models.Filter | None) -> dict[str, Any]:
    if condition is None:
        return {}
    return {"filter": condition.model_dump(mode="json", exclude_none=True, by_alias=True)}


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
