"""A Lease object (coordination.k8s.io/v1), held as client-go's leader election holds it.

Whether another holder is silent is judged by how long its record has not changed by our own steady clock, never by
comparing its times with our wall clock: clocks of two nodes differ. Every write names the `resourceVersion` it was
decided on, so that of two who try at once one is refused (409).
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from ops import logs
from ops.errors import SettingsError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where the API server is and how to be let in.

    `token_file` is read at every request, since the kubelet renews the token; `ca_file` None trusts the system's.
    """

    url: str
    namespace: str
    token_file: Path | None = None
    ca_file: Path | None = None


def in_cluster(namespace: str | None = None, *, account: Path = ACCOUNT) -> ApiServer:
    """The API server as a pod sees it.

    Raises:
        SettingsError: this is no pod, or it has no service account token.
    """
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    token = account / "token"
    if not host or not token.exists():
        raise SettingsError(
            "lease.kind: 'kubernetes' works in a pod with a service account token only, and this is none; "
            "use 'file' or 'none'."
        )
    if namespace is None:
        namespace = (account / "namespace").read_text(encoding="utf-8").strip()
    bracketed = f"[{host}]" if ":" in host else host
    return ApiServer(f"https://{bracketed}:{port}", namespace, token, account / "ca.crt")


class KubernetesLease:
    """A Lease object held by `identity`.

    Args:
        api: The API server.
        name: The object's name; it is made when it does not exist.
        identity: Who holds it; no two processes share one.
        duration: Seconds after which a holder that does not renew has lost it.
        clock: Steady seconds; a parameter so that a test need not wait.
    """

    def __init__(
        self,
        api: ApiServer,
        name: str,
        identity: str,
        *,
        duration: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._name = name
        self._identity = identity
        self._duration = duration
        self._clock = clock
        self._renewed: float | None = None
        self._seen: dict[str, Any] | None = None
        self._seen_at = 0.0
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
        self._http = httpx.Client(
            base_url=api.url,
            verify=ssl.create_default_context(cafile=api.ca_file) if api.ca_file is not None else True,
            timeout=max(1.0, duration / 6),
        )

    def hold(self) -> bool:
        """Take it, renew it, or see that another has it.

        While the API server does not answer, a holder goes on for two thirds of the duration: nobody else can
        have taken it by then.

        Raises:
            SettingsError: the service account may not read or write Leases.
        """
        asked = self._clock()
        try:
            held = self._try()
        except (httpx.TransportError, OSError, ValueError) as error:
            return self._unanswered(str(error) or type(error).__name__)
        except httpx.HTTPStatusError as error:
            code = error.response.status_code
            if code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
                self._renewed = None
                raise SettingsError(
                    f"lease: the service account may not get, create and update Lease '{self._name}' in namespace "
                    f"'{self._api.namespace}' ({code}); give it a Role that allows it."
                ) from None
            return self._unanswered(f"it answered {code}")
        # Counted from before the request: the others count from when the server wrote it, which is later.
        self._renewed = asked if held else None
        return held

    def release(self) -> None:
        """Say in the object that nobody holds it; when that fails, its duration ends it."""
        try:
            if self._renewed is not None:
                lease = self._read()
                if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
                    lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
                    self._write(lease)
        except httpx.HTTPError as error:
            logs.get().warning("lease", problem=f"not given up: {type(error).__name__}")
        finally:
            self._renewed = None
            self._http.close()

    def _unanswered(self, why: str) -> bool:
        logs.get().warning("lease", problem=f"the API server did not answer: {why}")
        if self._renewed is not None and self._clock() - self._renewed < self._duration * 2 / 3:
            return True
        self._renewed = None
        return False

    def _try(self) -> bool:
        lease = self._read()
        if lease is None:
            return self._create()
        spec = lease.setdefault("spec", {})
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._identity) and not self._silent(spec):
            return False
        if holder != self._identity:
            spec |= {"acquireTime": _now(), "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        spec |= {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._duration)),
            "renewTime": _now(),
        }
        return self._write(lease)

    def _silent(self, spec: dict[str, Any]) -> bool:
        if spec != self._seen:
            self._seen, self._seen_at = dict(spec), self._clock()
            return False
        return self._clock() - self._seen_at >= float(spec.get("leaseDurationSeconds") or self._duration)

    def _read(self) -> dict[str, Any] | None:
        answer = self._request("GET", f"{self._path}/{self._name}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        lease: dict[str, Any] = answer.raise_for_status().json()
        return lease

    def _create(self) -> bool:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._api.namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": max(1, round(self._duration)),
                "acquireTime": _now(),
                "renewTime": _now(),
                "leaseTransitions": 0,
            },
        }
        return self._won(self._request("POST", self._path, lease))

    def _write(self, lease: dict[str, Any]) -> bool:
        return self._won(self._request("PUT", f"{self._path}/{self._name}", lease))

    @staticmethod
    def _won(answer: httpx.Response) -> bool:
        if answer.status_code == httpx.codes.CONFLICT:
            return False
        answer.raise_for_status()
        return True

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        headers = {}
        if self._api.token_file is not None:
            headers["authorization"] = f"Bearer {self._api.token_file.read_text(encoding='utf-8').strip()}"
        return self._http.request(method, path, json=body, headers=headers)


def _now() -> str:
    """A MicroTime as the API takes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
