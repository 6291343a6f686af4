"""What is asked of the API server: port-forwards to the pods of one Service, and how far a StatefulSet is.

All by the official client of Kubernetes and its reading of kubeconfigs.
"""

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
from kubernetes.client import ApiClient, ApiException, AppsV1Api, Configuration, CoreV1Api
from kubernetes.config import kube_config
from kubernetes.stream import portforward
from urllib3.exceptions import HTTPError

from infra.provider.errors import ProviderError
from infra.provider.port_forward import KubernetesAccess, KubernetesService


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
                self._configuration = _configuration(self._target, "qdrant:kubernetes")
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
        return _unreachable(error, self._configuration, "qdrant:kubernetes")


def has_stateful_set(access: KubernetesAccess, namespace: str, name: str) -> bool:
    """Whether the namespace has a StatefulSet of that name.

    Raises ProviderError, one sentence, when the API server cannot be reached or does not say.
    """
    found = _configuration(access, "the provider kubernetes")
    try:
        AppsV1Api(ApiClient(found)).read_namespaced_stateful_set(name, namespace, _request_timeout=10)
    except ApiException as error:
        if error.status == 404:
            return False
        raise ProviderError(
            f"the API server does not say whether there is a StatefulSet {namespace}/{name} "
            f"({_server_text(error)}); the account needs get on statefulsets"
        ) from None
    except (HTTPError, OSError) as error:
        raise _unreachable(error, found, "the provider kubernetes") from None
    return True


class StatefulSetStatus:
    """How far the pods of a StatefulSet are; asked again and again."""

    def __init__(self, access: KubernetesAccess, namespace: str, name: str) -> None:
        self._access, self._namespace, self._name = access, namespace, name
        self._configuration: Configuration | None = None

    def missing(self) -> str | None:
        """What is still waited for, as a clause that names a pod where there is one; None when all is done.

        An API server that does not answer is waited for too. Raises ProviderError when there is no way to it.
        """
        if self._configuration is None:
            self._configuration = _configuration(self._access, "the provider kubernetes")
        client = ApiClient(self._configuration)
        try:
            found: Any = AppsV1Api(client).read_namespaced_stateful_set(
                self._name, self._namespace, _request_timeout=10
            )
            status, wanted = found.status, found.spec.replicas
            if (status.observed_generation or 0) < found.metadata.generation:
                return "its controller has not seen the change yet"
            if {status.replicas or 0, status.updated_replicas or 0, status.ready_replicas or 0} == {wanted}:
                return None
            selector = ",".join(f"{key}={value}" for key, value in found.spec.selector.match_labels.items())
            pods: Any = CoreV1Api(client).list_namespaced_pod(
                self._namespace, label_selector=selector, _request_timeout=10
            )
        except ApiException as error:
            return f"the API server does not say how far it is ({_server_text(error)})"
        except (HTTPError, OSError) as error:
            return str(_unreachable(error, self._configuration, "the provider kubernetes"))
        return _behind(pods.items, status.update_revision) or f"not all of its {wanted} pods are there"


def _behind(pods: list[Any], revision: str) -> str | None:
    """The first pod that is not as it should be: one that is not ready before one that is yet to be restarted."""
    for pod in pods:
        if not _is_ready(pod):
            waiting = [one.state.waiting for one in pod.status.container_statuses or [] if one.state]
            reasons = [one.reason for one in waiting if one and one.reason]
            reasons += [one.message for one in pod.status.conditions or [] if one.status == "False" and one.message]
            return f"pod {pod.metadata.name} is not ready ({' '.join((reasons or [pod.status.phase])[0].split())})"
    old = [pod for pod in pods if (pod.metadata.labels or {}).get("controller-revision-hash") != revision]
    return f"pod {old[0].metadata.name} is not restarted yet" if old else None


def _unreachable(error: Exception, used: Configuration | None, of: str) -> ProviderError:
    server = used.host if used else "the API server"
    reason = getattr(error, "reason", None) or error
    return ProviderError(
        f"cannot reach the API server {server} of {of} "
        f"({re.sub(r'<[^>]*> ?', '', ' '.join(str(reason).split()))[:300]}); correct kubeconfig or context"
    )


def _configuration(target: KubernetesAccess, of: str) -> Configuration:
    """The connection to the API server that the kubeconfig describes, its login plugins included.

    Errors name `of`, where a person gives it.
    """
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
        raise ProviderError(f"the kubeconfig of {of} is not YAML") from None
    except (config.ConfigException, OSError) as error:
        said = " ".join(str(error).split())[:300]
        raise ProviderError(f"{of}: no way to the API server ({said}); give kubeconfig and context") from None
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
