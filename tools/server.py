"""Which Qdrant the steps work with: that of `QDRANT_URL`, else the laptop endpoint, started if need be."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import yaml
from qdrant_client import QdrantClient

from infra.address import key_problem
from infra.settings import DEFAULT_PORT, NAMESPACE, checked_address
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
        # A key that stays on this machine needs no TLS; for any other address the client's warning is right.
        if urlsplit(self.url).hostname in {"127.0.0.1", "localhost", "::1"}:
            warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        return QdrantClient(
            url=self.url,
            api_key=os.environ.get("QDRANT_API_KEY"),
            timeout=TIMEOUT_SECONDS,
            check_compatibility=False,
        )


def stack_configuration(place: Workplace) -> dict[str, Any]:
    """What the stack's file says under `config`, each key with its namespace; empty where there is no file yet.

    Raises StepError when it is not YAML.
    """
    if not place.configuration.exists():
        return {}
    try:
        content = yaml.safe_load(place.configuration.read_text())
    except yaml.YAMLError as error:
        raise StepError(f"{place.configuration.name} is not YAML: {_one_line(error)}") from None
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict):
        return {}
    return {key if ":" in key else f"{NAMESPACE}:{key}": value for key, value in config.items()}


def _configured(place: Workplace) -> str | None:
    """The address that the stack's configuration gives: the program takes it before that of the environment."""
    endpoint = stack_configuration(place).get(f"{NAMESPACE}:endpoint")
    return endpoint.get("url") if isinstance(endpoint, dict) else None


def _one_line(error: yaml.YAMLError) -> str:
    """What is wrong and where; never the lines around it, which may hold a key."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"{error.problem} in line {mark.line + 1}, column {mark.column + 1}"
    return "it cannot be read"


def choose(place: Workplace) -> Server:
    """Find the server; from here on `QDRANT_URL` names it, for the program and for the provider.

    Raises StepError when the address is none, or the endpoint cannot be started.
    """
    configured = _configured(place)
    given = configured or os.environ.get("QDRANT_URL")
    if given:
        where = place.configuration.name if configured else "QDRANT_URL"
        try:
            url = checked_address(given)
        except ValueError as error:
            raise StepError(f"the address in {where} {error}") from None
        if problem := key_problem(os.environ.get("QDRANT_API_KEY", "")):
            raise StepError(f"the key in QDRANT_API_KEY {problem}")
        os.environ["QDRANT_URL"] = url
        return Server(url, embedded=False, told=f"Qdrant of {where}: {url}")
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
