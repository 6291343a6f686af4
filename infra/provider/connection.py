"""What the provider is configured with, and the connection that comes of it, made when it is first needed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pydantic
from pulumi.provider.experimental.provider import CheckFailure

from infra.address import key_problem, url_problem
from infra.provider.errors import ProviderError
from infra.provider.port_forward import QDRANT_PORT, KubernetesService, PortForward
from infra.provider.properties import UNKNOWN, failures, has_unknown
from infra.provider.rest import Rest

DEFAULT_TIMEOUT_SECONDS = 60.0
KEYS = ("url", "api_key", "timeout", "tls_ca", "owner", "kubernetes")


@dataclass
class Connection:
    """The provider's configuration. `owner` is the name that marks collections; None means `project/stack`."""

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    tls_ca: str | None = None
    owner: str | None = None
    kubernetes: KubernetesService | None = field(default=None, repr=False)
    known: bool = True
    _rest: Rest | None = field(default=None, repr=False)

    @classmethod
    def from_config(cls, values: Mapping[str, Any]) -> Connection:
        """Take the values given, then `QDRANT_URL` and `QDRANT_API_KEY`; what comes from there is in no
        state file.
        """
        if has_unknown({key: values.get(key) for key in KEYS}):
            return cls(known=False)
        service = values.get("kubernetes")
        target = KubernetesService.model_validate(_opened(service)) if service else None
        url = values.get("url")
        return cls(
            # A Service has an address of its own: what the environment says is about another server.
            url=url or (target.url(tls=bool(values.get("tls_ca"))) if target else os.environ.get("QDRANT_URL")),
            api_key=values.get("api_key") or os.environ.get("QDRANT_API_KEY"),
            timeout=float(values.get("timeout") or DEFAULT_TIMEOUT_SECONDS),
            tls_ca=values.get("tls_ca"),
            owner=values.get("owner"),
            kubernetes=target,
        )

    def rest(self) -> Rest:
        """The one client of this process. Raises `ProviderError` when there is no address."""
        if self._rest is None:
            if not self.known:
                raise ProviderError(
                    "the address of Qdrant is not known yet; run `pulumi up` to make the server first"
                )
            if not self.url:
                raise ProviderError(
                    "no address of Qdrant is configured; run `pulumi config set qdrant:url http://localhost:6333`, "
                    "set QDRANT_URL, or pass url to the provider resource"
                )
            if problem := url_problem(self.url):
                raise ProviderError(f"the address in qdrant:url or QDRANT_URL {problem}")
            if self.api_key and (problem := key_problem(self.api_key)):
                raise ProviderError(f"the key in qdrant:api_key or QDRANT_API_KEY {problem}")
            self._rest = Rest(self.url, self.api_key, self.timeout, self.tls_ca, self._forward())
        return self._rest

    def _forward(self) -> PortForward | None:
        if self.kubernetes is None:
            return None
        return PortForward(self.kubernetes, self.kubernetes.port or urlsplit(self.url or "").port or QDRANT_PORT)


def check_config(values: Mapping[str, Any]) -> list[CheckFailure]:
    """What is wrong with the provider's configuration; values that are not known yet are taken on trust."""
    wrong = [CheckFailure(key, "there is no such setting of the provider") for key in values if key not in _ALLOWED]
    url = values.get("url")
    # Pulumi prints the value of a property that a failure names, so these two are named in the text alone.
    if url is not None and url is not UNKNOWN and (problem := url_problem(url)):
        wrong.append(CheckFailure("", f"qdrant:url {problem}"))
    timeout = values.get("timeout")
    if timeout is not None and timeout is not UNKNOWN:
        try:
            valid = float(timeout) > 0
        except (TypeError, ValueError):
            valid = False
        if not valid:
            wrong.append(CheckFailure("timeout", f"{timeout!r} is not a number of seconds above 0"))
    wrong += [
        CheckFailure(key, f"must be a text, not {type(values[key]).__name__}")
        for key in ("api_key", "tls_ca", "owner")
        if values.get(key) is not None and values[key] is not UNKNOWN and not isinstance(values[key], str)
    ]
    key = values.get("api_key")
    if isinstance(key, str) and (problem := key_problem(key)):
        wrong.append(CheckFailure("", f"qdrant:api_key {problem}"))
    service = values.get("kubernetes")
    if service is not None and service is not UNKNOWN:
        # The kubeconfig may hold credentials: the texts repeat no value.
        try:
            KubernetesService.model_validate(_opened(service))
        except pydantic.ValidationError as error:
            wrong += [
                CheckFailure("", f"qdrant:kubernetes.{one.property}: {one.reason.split(', not ')[0]}")
                for one in failures(error)
            ]
        except ValueError:
            wrong.append(CheckFailure("", "qdrant:kubernetes should be a mapping with service and namespace"))
    return wrong


def _opened(value: Any) -> Any:
    """Pulumi carries a mapping of a provider's configuration as JSON. Raises ValueError for what is neither."""
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
        raise ValueError("not a mapping")  # noqa: TRY004
    return found


_ALLOWED = frozenset({*KEYS, "version", "pluginDownloadURL"})
