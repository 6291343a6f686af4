"""Which Qdrant the steps work with: that of `QDRANT_URL`, else the laptop endpoint, started if need be."""

from __future__ import annotations

import os
from dataclasses import dataclass

from qdrant_client import QdrantClient

from infra.settings import DEFAULT_PORT, checked_address
from tools.endpoint import LocalEndpoint
from tools.errors import StepError
from tools.workplace import Workplace

TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Server:
    """An address, and what was done to have it."""

    url: str
    embedded: bool
    told: str

    def client(self) -> QdrantClient:
        """A client with the key of the environment."""
        return QdrantClient(
            url=self.url,
            api_key=os.environ.get("QDRANT_API_KEY"),
            timeout=TIMEOUT_SECONDS,
            check_compatibility=False,
        )


def choose(place: Workplace) -> Server:
    """Find the server; from here on `QDRANT_URL` names it, for the program and for the provider.

    Raises StepError when the address is none, or the endpoint cannot be started.
    """
    given = os.environ.get("QDRANT_URL")
    if given:
        try:
            url = checked_address(given)
        except ValueError as error:
            raise StepError(f"the address in QDRANT_URL {error}") from None
        return Server(url, embedded=False, told=f"Qdrant of QDRANT_URL: {url}")
    port = os.environ.get("COMEMORY_PORT")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise StepError(f"COMEMORY_PORT is {port!r}; it should be a port from 1 to 65535")
    endpoint = LocalEndpoint(place.root, place.endpoint)
    running, started = endpoint.start(int(port or DEFAULT_PORT), port_given=bool(port))
    os.environ["QDRANT_URL"] = running.url
    # A key in this shell is meant for another server: the laptop endpoint asks for none.
    os.environ.pop("QDRANT_API_KEY", None)
    how = "started" if started else "runs already"
    return Server(
        running.url,
        embedded=True,
        told=f"laptop endpoint {how}: {running.url}, data in {place.shown(endpoint.data)}",
    )
