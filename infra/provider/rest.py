"""Qdrant's REST interface, as far as the provider needs it: one client per process, errors as sentences.

Every request here may be sent twice without harm, so a broken connection and a busy server are tried again.
Reads of one collection that are asked for at the same moment share one request: its twenty-five indexes are
refreshed with one answer.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from comemory.live import LiveCollection
from infra.provider.errors import ConflictError, NotFoundError, ProviderError, TimedOutError
from infra.provider.port_forward import PortForward

OLDEST_SERVER = (1, 16)
ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.25
POLL_SECONDS = 0.25
IDLE_SECONDS = 5.0
# A kubelet need not hand on that the pod closed its end: a request on such a connection waits in vain for its
# answer. No pod is stopped and started again in so short a time, and requests in a row still share connections.
IDLE_SECONDS_FORWARDED = 1.0
_BUSY = (429, 502, 503)


def tls_context(tls_ca: str) -> ssl.SSLContext:
    """A context that trusts the certificate authority in `tls_ca`, a file or the PEM text itself.

    Raises `ProviderError` when it is neither.
    """
    try:
        if "-----BEGIN" in tls_ca:
            return ssl.create_default_context(cadata=tls_ca)
        return ssl.create_default_context(cafile=str(Path(tls_ca).expanduser()))
    except (OSError, ssl.SSLError) as error:
        shown = "the PEM text" if "-----BEGIN" in tls_ca else tls_ca
        raise ProviderError(
            f"qdrant:tls_ca: {shown} is not a certificate authority that can be read ({error}); "
            "give the path of a PEM file or its text"
        ) from None


class Rest:
    """A connection to one server, straight or by a port-forward. `timeout` is in seconds, for each request."""

    def __init__(
        self,
        url: str,
        api_key: str | None,
        timeout: float,
        tls_ca: str | None,
        forward: PortForward | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._forward = forward
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers={"api-key": api_key} if api_key else {},
            # A little longer than the server is given, so that its own answer says what took so long.
            timeout=httpx.Timeout(timeout + min(timeout, 5), connect=min(timeout, 10)),
            # By a port-forward the certificate is still checked against the host of the url.
            transport=httpx.AsyncHTTPTransport(
                verify=tls_context(tls_ca) if tls_ca else True,
                limits=httpx.Limits(
                    max_connections=16,
                    max_keepalive_connections=16,
                    keepalive_expiry=IDLE_SECONDS_FORWARDED if forward else IDLE_SECONDS,
                ),
                trust_env=False,
                uds=str(forward.socket) if forward else None,
            ),
            trust_env=False,
        )
        self._flights: dict[str, asyncio.Task[Any]] = {}
        self._version_checked = False

    async def require_supported(self) -> None:
        """Raise `ProviderError` when the server is older than the oldest supported one. Asked once per process."""
        if self._version_checked:
            return
        answer = await self._shared("version", lambda: self._request("GET", "/", "read the server's version"))
        match = re.match(r"(\d+)\.(\d+)", str(answer.get("version", "")))
        if match and (int(match[1]), int(match[2])) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise ProviderError(
                f"Qdrant at {self.url} is version {answer['version']}, but collection metadata needs {oldest} "
                f"or newer; "
                "upgrade the server"
            )
        self._version_checked = True

    async def collection(self, name: str) -> LiveCollection | None:
        """The collection as it is, or None when there is none of that name (an alias of that name does not
        count).
        """

        async def read() -> LiveCollection | None:
            try:
                answer = await self._request(
                    "GET", f"/collections/{quote(name, safe='')}", f"read collection {name}"
                )
            except NotFoundError:
                return None
            return LiveCollection.from_rest(name, answer["result"])

        found: LiveCollection | None = await self._shared(f"collection {name}", read)
        return found

    async def count(self, name: str) -> int:
        """How many points the collection holds, exactly."""

        async def count() -> int:
            path = f"/collections/{quote(name, safe='')}/points/count"
            answer = await self._request("POST", path, f"count the points of {name}", {"exact": True})
            return int(answer["result"]["count"])

        counted: int = await self._shared(f"count {name}", count)
        return counted

    async def create_collection(self, name: str, body: dict[str, Any]) -> None:
        """Create it. Raises `ConflictError` when it exists, `TimedOutError` when no answer came."""
        await self._write("PUT", self._collection_path(name), f"create collection {name}", body)

    async def update_collection(self, name: str, body: dict[str, Any]) -> None:
        """Change it in place."""
        await self._write("PATCH", self._collection_path(name), f"change collection {name}", body)

    async def delete_collection(self, name: str) -> None:
        """Delete it with everything in it; nothing happens when it is gone already."""
        await self._write("DELETE", self._collection_path(name), f"delete collection {name}")

    async def add_vector(self, name: str, vector: str, body: dict[str, Any]) -> None:
        """Add a named vector to an existing collection. Needs a server that can (1.18 or newer)."""
        path = f"/collections/{quote(name, safe='')}/vectors/{quote(vector, safe='')}"
        await self._write("PUT", path, f"add vector {vector} to {name}", body)

    async def create_index(self, name: str, field: str, schema: dict[str, Any]) -> None:
        """Build a payload index, in place of another one on the same field; returns when it is built."""
        body = {"field_name": field, "field_schema": schema}
        path = f"/collections/{quote(name, safe='')}/index?wait=true"
        try:
            await self._request("PUT", path, f"build index {field} of {name}", body)
        except NotFoundError:
            raise ProviderError(
                f"index {field}: collection {name} does not exist on {self.url}; "
                "declare it, and give the index its name as `collection=collection.name` so that it waits for it"
            ) from None

    async def delete_index(self, name: str, field: str) -> None:
        """Drop a payload index; nothing happens when it is gone already."""
        path = f"/collections/{quote(name, safe='')}/index/{quote(field, safe='')}?wait=true"
        await self._request("DELETE", path, f"drop index {field} of {name}")

    async def aliases(self) -> dict[str, str]:
        """All aliases and the collections they point to."""

        async def read() -> dict[str, str]:
            answer = await self._request("GET", "/aliases", "read the aliases")
            return {entry["alias_name"]: entry["collection_name"] for entry in answer["result"]["aliases"]}

        found: dict[str, str] = await self._shared("aliases", read)
        return found

    async def change_aliases(self, actions: list[dict[str, Any]], doing: str) -> None:
        """Carry out alias actions, all or none."""
        await self._write("POST", "/collections/aliases", doing, {"actions": actions})

    def _collection_path(self, name: str) -> str:
        return f"/collections/{quote(name, safe='')}"

    async def _write(self, method: str, path: str, doing: str, body: dict[str, Any] | None = None) -> None:
        await self._request(method, f"{path}?timeout={max(1, round(self.timeout))}", doing, body)

    async def _shared(self, key: str, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(start())
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        return await asyncio.shield(flight)

    async def _request(
        self, method: str, path: str, doing: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        if self._forward is not None:
            await self._forward.open()
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            try:
                response = await self._client.request(method, path, json=body)
            except (httpx.InvalidURL, httpx.UnsupportedProtocol):
                raise ProviderError(
                    f"qdrant:url: {self.url!r} is not a URL such as http://localhost:6333"
                ) from None
            except httpx.TimeoutException as error:
                if isinstance(error, httpx.ConnectTimeout):
                    raise self._unreachable("no answer") from None
                raise TimedOutError(
                    f"Qdrant at {self.url} did not answer within {self.timeout:g} s when asked to {doing}; "
                    "try again, or raise qdrant:timeout"
                ) from None
            except httpx.TransportError as error:
                if "CERTIFICATE" in str(error).upper() or "SSL" in str(error).upper():
                    raise ProviderError(
                        f"the TLS connection to {self.url} failed ({_reason(error)}); give the certificate "
                        "authority of the server as qdrant:tls_ca, or correct qdrant:url"
                    ) from None
                if last and self._forward is not None and self._forward.problem is not None:
                    raise self._forward.problem from None
                if last:
                    raise self._unreachable(_reason(error)) from None
            else:
                if response.status_code not in _BUSY or last:
                    return self._answer(response, doing)
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, why: str) -> ProviderError:
        return ProviderError(f"cannot reach Qdrant at {self.url} ({why}); start it, or correct qdrant:url")

    def _answer(self, response: httpx.Response, doing: str) -> dict[str, Any]:
        if response.is_success:
            try:
                answer = response.json()
            except ValueError:
                answer = None
            if isinstance(answer, dict):
                return answer
            raise ProviderError(f"{self.url} answered, but not as a Qdrant server does; correct qdrant:url")
        text = _server_text(response)
        match response.status_code:
            case 401:
                raise ProviderError(
                    f"Qdrant at {self.url} refused the API key ({text}); set qdrant:api_key or QDRANT_API_KEY "
                    f"to a valid one"
                )
            case 403:
                raise ProviderError(
                    f"the API key may not {doing} on {self.url} ({text}); "
                    "use a key with manage access, not a read-only one"
                )
            case 404 if "Not found" in text:
                raise NotFoundError(f"Qdrant at {self.url} could not {doing}: {text}")
            case 404:
                raise ProviderError(
                    f"{self.url} does not know the request to {doing}; correct qdrant:url, or upgrade the server"
                )
            case 409:
                raise ConflictError(f"Qdrant at {self.url} could not {doing}: {text}")
            case 408 | 504:
                raise TimedOutError(
                    f"Qdrant at {self.url} timed out when asked to {doing} ({text}); try again, or raise "
                    f"qdrant:timeout"
                )
        if response.status_code >= 500 and re.search(r"time[d]? ?out", text, re.IGNORECASE):
            raise TimedOutError(
                f"Qdrant at {self.url} timed out when asked to {doing} ({text}); try again, or raise qdrant:timeout"
            )
        raise ProviderError(f"Qdrant at {self.url} could not {doing}: {text} (HTTP {response.status_code})")


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return "connection refused" if "All connection attempts failed" in text or "refused" in text else text


def _server_text(response: httpx.Response) -> str:
    try:
        answer = response.json()
    except ValueError:
        answer = response.text
    if isinstance(answer, dict) and isinstance(answer.get("status"), dict):
        answer = answer["status"].get("error", "")
    return " ".join(str(answer or response.reason_phrase).split())[:500]
