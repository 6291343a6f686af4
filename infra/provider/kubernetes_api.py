"""Port-forwards to the pods of one Service, by the official client of Kubernetes and its reading of kubeconfigs."""

from __future__ import annotations

import contextlib
import json
import random
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import config
from kubernetes.client import ApiClient, ApiException, Configuration, CoreV1Api
from kubernetes.config import kube_config
from kubernetes.stream import portforward
from urllib3.exceptions import HTTPError

from infra.provider.errors import ProviderError
from infra.provider.port_forward import KubernetesService


@dataclass(frozen=True)
class Forwarded:
    """One port-forward: the client's stream object, and the pod and port that it leads to."""

    stream: Any
    pod: str
    port: int


class Dialer:
    """Finds a ready pod and opens port-forwards to it; called from several threads."""

    def __init__(self, target: KubernetesService, port: int) -> None:
        self._target = target
        self._port = port
        self._lock = threading.Lock()
        self._configuration: Configuration | None = None
        self._pod: tuple[str, int] | None = None

    def forget(self) -> None:
        """Look for a pod anew the next time: the one in use does not answer."""
        self._pod = None

    def dial(self) -> Forwarded:
        """Open one. Raises ProviderError, one sentence for each way to fail."""
        with self._lock:
            if self._configuration is None:
                self._configuration = _configuration(self._target)
            # The stream client replaces a method of the API client while it dials: each has one of its own.
            api = CoreV1Api(ApiClient(self._configuration))
            try:
                self._pod = pod, port = self._pod or self._ready_pod(api)
            except ApiException as error:
                raise self._refused(error) from None
            except (HTTPError, OSError) as error:
                raise self._unreachable(error) from None
        try:
            stream = portforward(
                api.connect_get_namespaced_pod_portforward, pod, self._target.namespace, ports=str(port)
            )
        except ApiException as error:
            self.forget()
            raise self._refused(error) from None
        return Forwarded(stream, pod, port)

    def _ready_pod(self, api: CoreV1Api) -> tuple[str, int]:
        namespace = self._target.namespace
        service: Any = api.read_namespaced_service(self._target.service, namespace, _request_timeout=10)
        ports = service.spec.ports or []
        found = next((one for one in ports if one.port == self._port), None)
        if found is None:
            there = ", ".join(str(one.port) for one in ports) or "none"
            raise ProviderError(
                f"{self._target} has no port {self._port} (it has: {there}); correct qdrant:kubernetes.port"
            )
        if not service.spec.selector:
            raise ProviderError(f"{self._target} selects no pods; name one that does in qdrant:kubernetes.service")
        selector = ",".join(f"{key}={value}" for key, value in sorted(service.spec.selector.items()))
        pods: Any = api.list_namespaced_pod(namespace, label_selector=selector, _request_timeout=10).items
        ready = [pod for pod in pods if _is_ready(pod)]
        if not ready:
            raise ProviderError(
                f"no pod of {self._target} is ready ({len(pods)} there); wait for them, or look at their events"
            )
        pod = random.choice(ready)  # noqa: S311
        return str(pod.metadata.name), _container_port(pod, found.target_port or found.port, self._target)

    def _refused(self, error: Any) -> ProviderError:
        said = _server_text(error)
        match error.status:
            case 401:
                return ProviderError(
                    f"the API server does not know the account of qdrant:kubernetes ({said}); log in again, "
                    "or choose another context"
                )
            case 404:
                return ProviderError(f"there is no {self._target} ({said}); correct qdrant:kubernetes, or make it")
        return ProviderError(
            f"the API server opens no port-forward to {self._target} ({said}); the account needs get on services, "
            "list on pods, and get and create on pods/portforward"
        )

    def _unreachable(self, error: Exception) -> ProviderError:
        server = self._configuration.host if self._configuration else "the API server"
        reason = getattr(error, "reason", None) or error
        return ProviderError(
            f"cannot reach the API server {server} of qdrant:kubernetes "
            f"({re.sub(r'<[^>]*> ?', '', ' '.join(str(reason).split()))[:300]}); correct kubeconfig or context"
        )


def _configuration(target: KubernetesService) -> Configuration:
    """The connection to the API server that the kubeconfig describes, its login plugins included."""
    made = Configuration()
    load: Any = config  # its functions have no types
    try:
        if target.kubeconfig is not None and _is_text(target.kubeconfig):
            load.load_kube_config_from_dict(
                yaml.safe_load(target.kubeconfig), context=target.context, client_configuration=made
            )
        elif target.kubeconfig is not None or target.context is not None or _default_exists():
            path = None if target.kubeconfig is None else str(Path(target.kubeconfig).expanduser())
            load.load_kube_config(path, context=target.context, client_configuration=made)
        else:
            load.load_incluster_config(client_configuration=made)
    except yaml.YAMLError:
        raise ProviderError("qdrant:kubernetes.kubeconfig is not YAML") from None
    except (config.ConfigException, OSError) as error:
        said = " ".join(str(error).split())[:300]
        raise ProviderError(
            f"qdrant:kubernetes: no way to the API server ({said}); give kubeconfig and context"
        ) from None
    return made


def _is_text(kubeconfig: str) -> bool:
    return "\n" in kubeconfig or kubeconfig.lstrip().startswith("{") or "apiVersion:" in kubeconfig


def _default_exists() -> bool:
    return any(Path(path).expanduser().exists() for path in kube_config.KUBE_CONFIG_DEFAULT_LOCATION.split(":"))


def _is_ready(pod: Any) -> bool:
    conditions = pod.status.conditions or []
    return pod.metadata.deletion_timestamp is None and any(
        one.type == "Ready" and one.status == "True" for one in conditions
    )


def _container_port(pod: Any, wanted: int | str, target: KubernetesService) -> int:
    """The number of the port; the one of that name among the pod's containers."""
    if isinstance(wanted, int) or str(wanted).isdigit():
        return int(wanted)
    for container in pod.spec.containers:
        for port in container.ports or []:
            if port.name == wanted:
                return int(port.container_port)
    raise ProviderError(f"pod {pod.metadata.name} of {target} has no port named {wanted}")


def _server_text(error: Any) -> str:
    """What the API server says, out of its Status object or out of a failed handshake that quotes one."""
    # The library puts headers and body of a refused handshake at the end of its text.
    reason = str(error.reason or error.status)
    for text in (error.body if isinstance(error.body, str) else "", reason.rsplit("-+-+-", 1)[-1]):
        with contextlib.suppress(ValueError):
            answer = json.loads(text)
            if isinstance(answer, dict) and answer.get("message"):
                return " ".join(str(answer["message"]).split())[:300]
    return " ".join(reason.split("-+-+-", maxsplit=1)[0].split())[:300]
