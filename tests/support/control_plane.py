"""A Kubernetes control plane of one test run: real API server, controllers and scheduler, simulated nodes.

Every admission, controller and scheduling decision is the real one. kwok plays the nodes: a pod bound to a node
becomes ready at once, whatever its image or probes; a claim of the class `kwok-volume` gets a volume. No container
ever runs, so nothing answers on a pod's address; `ControlPlane.forward` lets a pod's port-forward end at an address
of the test instead.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml

from tests.support.certificates import Authority, private_key
from tools.control_plane.provision import Toolbox

HOST = "127.0.0.1"
START_SECONDS = 90.0
ZONES = ("zone-a", "zone-b", "zone-c")
STORAGE_CLASS = "kwok-volume"  # the name that kwok's volume stages act on
MANIFESTS = Path(__file__).resolve().parent / "crds"

Manifest = dict[str, Any]
T = TypeVar("T")

# kwok's own stages provision a volume but do not enlarge it; this is what a storage driver does with an expansion.
ENLARGE_VOLUME = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pvc-enlarge
spec:
  resourceRef: {apiGroup: v1, kind: PersistentVolumeClaim}
  selector:
    matchExpressions:
    - cel: {expression: "self.spec.storageClassName == 'kwok-volume'"}
    - cel: {expression: "!has(self.metadata.deletionTimestamp)"}
    - cel: {expression: "has(self.status.phase) && self.status.phase == 'Bound'"}
    - cel: {expression: "self.status.capacity.storage != self.spec.resources.requests.storage"}
  steps:
  - patch:
      root: status
      subresource: status
      template: |
        capacity:
        {{ YAML .spec.resources.requests 1 }}
"""


class ControlPlaneError(Exception):
    """A component died or did not become ready; the text holds the end of its log."""


@dataclass
class Component:
    """One process of the control plane and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise with the end of the log when the process is gone."""
        code = self.process.poll()
        if code is not None:
            raise ControlPlaneError(f"{self.name} ended with code {code}; the end of its log:\n{self.tail()}")

    def tail(self, lines: int = 25) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@dataclass
class ControlPlane:
    """A running control plane.

    `kubeconfig` is a file for an administrator. `api` is an HTTP client of the API server with the same rights, for
    whatever the methods below do not do: `api.get("/api/v1/namespaces/x/pods")`.
    """

    url: str
    kubeconfig: Path
    authority: Path
    token: str
    api: httpx.Client
    components: list[Component] = field(default_factory=list)

    def check(self) -> None:
        """Raise, with the end of the log, when a component has died."""
        for component in self.components:
            component.check()

    def get(self, path: str) -> Manifest | None:
        """The object or list at a path of the API; None when there is none."""
        answer = self.api.get(path)
        if answer.status_code == 404:
            return None
        return _answer(answer)

    def items(self, path: str) -> list[Manifest]:
        """The objects of a collection."""
        return list((self.get(path) or {}).get("items", []))

    def apply(self, manifest: Manifest) -> Manifest:
        """Create or change an object by server-side apply; refused with unknown fields."""
        answer = self.api.patch(
            self.path_of(manifest),
            params={"fieldManager": "tests", "force": "true", "fieldValidation": "Strict"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            content=json.dumps(manifest),
        )
        return _answer(answer)

    def delete(self, path: str) -> None:
        """Delete an object and what it owns; nothing when it is not there."""
        answer = self.api.delete(path, params={"propagationPolicy": "Background"})
        if answer.status_code != 404:
            _answer(answer)

    def evict(self, namespace: str, pod: str) -> httpx.Response:
        """Ask for a pod's eviction, as a drain does: 201 when granted, 429 when a disruption budget holds it."""
        return self.api.post(
            f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction",
            json={"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}},
        )

    def until(self, what: str, ask: Callable[[], T | None], seconds: float = 60.0) -> T:
        """Ask again and again until there is an answer that is true, and give it."""
        deadline = time.monotonic() + seconds
        while not (answer := ask()):
            self.check()
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"waited {seconds:.0f} s in vain until {what}")
            time.sleep(0.05)
        return answer

    @contextlib.contextmanager
    def forward(self, namespace: str, pod: str, ports: Mapping[int, tuple[str, int]]) -> Iterator[None]:
        """Let port-forwards to a pod end at addresses of the test: `{6333: ("127.0.0.1", 40123)}`.

        The pod need not exist yet. The client speaks to the API server as always, which speaks to the node (kwok).
        """
        manifest = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "PortForward",
            "metadata": {"name": pod, "namespace": namespace},
            "spec": {
                "forwards": [
                    {"ports": [port], "target": {"address": host, "port": target}}
                    for port, (host, target) in ports.items()
                ]
            },
        }
        self.apply(manifest)
        try:
            yield
        finally:
            self.delete(self.path_of(manifest))

    @contextlib.contextmanager
    def namespace(self, prefix: str = "test", *, enforce: str = "restricted") -> Iterator[str]:
        """A namespace of the test's own whose pods the admission judges by this Pod Security level."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        labels = {"pod-security.kubernetes.io/enforce": enforce}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        self.until(
            f"{name} has its service account",
            lambda: self.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"),
        )
        try:
            yield name
        finally:
            self.delete(f"/api/v1/namespaces/{name}")

    def path_of(self, manifest: Manifest) -> str:
        """The path of an object of a kind whose plural is the kind and an s."""
        version, metadata = manifest["apiVersion"], manifest["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kind = manifest["kind"].lower()
        plural = {"storageclass": "storageclasses", "networkpolicy": "networkpolicies"}.get(kind, f"{kind}s")
        scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        return f"{root}{scope}/{plural}/{metadata['name']}"


@contextlib.contextmanager
def control_plane(tools: Toolbox, folder: Path) -> Iterator[ControlPlane]:
    """Start everything, with its state in `folder`; stop everything at the end, also when the start fails."""
    started: list[Component] = []

    def start(name: str, *flags: str) -> Component:
        log = folder / f"{name}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [tools[name], *flags], cwd=folder, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        started.append(Component(name, process, log))
        return started[-1]

    try:
        with _start(tools, folder, start, started) as plane:
            yield plane
    finally:
        for component in reversed(started):  # killed: there is no state to keep
            component.process.kill()
        for component in started:
            component.process.wait()


@contextlib.contextmanager
def _start(
    tools: Toolbox, folder: Path, start: Callable[..., Component], started: list[Component]
) -> Iterator[ControlPlane]:
    etcd_port, peer_port, api_port, kwok_port = _free_ports(4)
    authority = Authority("control plane of the tests")
    ca = folder / "ca.crt"
    ca.write_bytes(authority.certificate)
    server = authority.sign(
        "kube-apiserver", HOST, "localhost", "kubernetes", "kubernetes.default.svc", "10.96.0.1"
    )
    certificate, key = server.write(folder, "apiserver")
    node_certificate, node_key = authority.sign("kwok", HOST).write(folder, "kwok")
    accounts = folder / "service-accounts.key"
    accounts.write_bytes(private_key())
    token = secrets.token_urlsafe(24)
    tokens = folder / "tokens.csv"
    tokens.touch(0o600)
    tokens.write_text(f'{token},admin,admin,"system:masters"\n')
    url = f"https://{HOST}:{api_port}"
    kubeconfig = _write_kubeconfig(folder / "kubeconfig", url, ca, token)

    start(
        "etcd", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
        "--listen-client-urls", f"http://{HOST}:{etcd_port}", "--advertise-client-urls", f"http://{HOST}:{etcd_port}",
        "--listen-peer-urls", f"http://{HOST}:{peer_port}",
        "--initial-advertise-peer-urls", f"http://{HOST}:{peer_port}",
        "--initial-cluster", f"default=http://{HOST}:{peer_port}",
    )  # fmt: skip
    start(
        "kube-apiserver", "--etcd-servers", f"http://{HOST}:{etcd_port}",
        "--bind-address", HOST, "--advertise-address", HOST, "--secure-port", str(api_port),
        "--tls-cert-file", str(certificate), "--tls-private-key-file", str(key),
        "--token-auth-file", str(tokens), "--anonymous-auth=false", "--authorization-mode", "RBAC",
        "--service-account-issuer", "https://kubernetes.default.svc",
        "--service-account-key-file", str(accounts), "--service-account-signing-key-file", str(accounts),
        "--service-cluster-ip-range", "10.96.0.0/16", "--endpoint-reconciler-type", "none",
        "--kubelet-certificate-authority", str(ca), "--kubelet-preferred-address-types", "InternalIP",
        "--allow-privileged=true", "--profiling=false",
    )  # fmt: skip

    verify = ssl.create_default_context(cafile=str(ca))
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, verify=verify, timeout=30, trust_env=False
    ) as api:
        plane = ControlPlane(url, kubeconfig, ca, token, api, started)
        plane.until("the API server is ready", lambda: _ready(api), START_SECONDS)
        common = ("--kubeconfig", str(kubeconfig))
        start(
            "kube-controller-manager", *common, "--leader-elect=false", "--secure-port=0",
            "--service-account-private-key-file", str(accounts), "--root-ca-file", str(ca),
            "--use-service-account-credentials=false", "--allocate-node-cidrs=false",
        )  # fmt: skip
        start("kube-scheduler", *common, "--leader-elect=false", "--secure-port=0")
        for file in (tools.kwok_files / "crds" / "portforwards.yaml", *sorted(MANIFESTS.glob("*.yaml"))):
            for manifest in filter(None, yaml.safe_load_all(file.read_text())):
                plane.apply(manifest)
        plane.until(
            "the kinds of kwok, cert-manager and Prometheus are served",
            lambda: all(_established(each) for each in plane.items(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")),
            START_SECONDS,
        )  # fmt: skip
        stages = [file.read_text() for file in sorted((tools.kwok_files / "stages").glob("*.yaml"))]
        config = folder / "kwok.yaml"
        config.write_text("\n---\n".join([*stages, ENLARGE_VOLUME]))
        start(
            "kwok", *common, "--config", str(config), "--manage-all-nodes", "--enable-crds", "PortForward",
            "--node-ip", HOST, "--node-port", str(kwok_port), "--server-address", f"{HOST}:{kwok_port}",
            "--tls-cert-file", str(node_certificate), "--tls-private-key-file", str(node_key),
        )  # fmt: skip
        _furnish(plane)
        yield plane


def _furnish(plane: ControlPlane) -> None:
    """Make the nodes and the storage class, and wait until nodes are ready and namespaces get their accounts."""
    for number, zone in enumerate(ZONES):
        name = f"node-{number}"
        plane.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {
                        "kubernetes.io/hostname": name,
                        "kubernetes.io/os": "linux",
                        "kubernetes.io/arch": "amd64",
                        "topology.kubernetes.io/region": "region-1",
                        "topology.kubernetes.io/zone": zone,
                    },
                },
            }
        )
        capacity = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
        _answer(
            plane.api.patch(
                f"/api/v1/nodes/{name}/status",
                headers={"Content-Type": "application/merge-patch+json"},
                json={"status": {"capacity": capacity, "allocatable": capacity}},
            )
        )
    plane.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "kwok.x-k8s.io/volume",
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": True,
        }
    )
    plane.until(
        "the nodes are ready and take pods",
        lambda: all(_takes_pods(node) for node in plane.items("/api/v1/nodes")),
        START_SECONDS,
    )
    plane.until(
        "the controllers work",
        lambda: plane.get("/api/v1/namespaces/default/serviceaccounts/default"),
        START_SECONDS,
    )


def _takes_pods(node: Manifest) -> bool:
    conditions = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions") or []}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def _established(definition: Manifest) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _ready(api: httpx.Client) -> bool:
    try:
        return api.get("/readyz").is_success
    except httpx.TransportError:
        return False


def _answer(answer: httpx.Response) -> Manifest:
    """The body of an answer that went well; else what the API server says."""
    if not answer.is_success:
        raise ControlPlaneError(
            f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text[:2000]}"
        )
    body: Manifest = answer.json()
    return body


def _write_kubeconfig(file: Path, url: str, ca: Path, token: str) -> Path:
    name = "tests"
    file.touch(0o600)
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": str(ca)}}],
                "users": [{"name": name, "user": {"token": token}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "current-context": name,
            }
        )
    )
    return file


def _free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
