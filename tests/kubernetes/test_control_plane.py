"""The control plane that tests run on does what a real one does: schedule, admit, refuse, hold, provision."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pulumi
import pulumi_kubernetes as k8s
import pytest
from kubernetes import client, config, stream
from pulumi import automation

from tests.support.control_plane import ControlPlane, ControlPlaneError, Manifest, control_plane
from tests.support.kubernetes_stack import KubernetesStack
from tools.control_plane.provision import Toolbox

LABELS = {"app": "memory"}
IMAGE = "registry.example/memory:1"
SAFE = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def stateful_set(namespace: str, *, image: str = IMAGE, security: Manifest | None = None) -> Manifest:
    return {
        "metadata": {"name": "memory", "namespace": namespace},
        "spec": {
            "replicas": 3,
            "serviceName": "memory",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "containers": [
                        {
                            "name": "memory",
                            "image": image,
                            "securityContext": security or SAFE,
                            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                        }
                    ],
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "topology.kubernetes.io/zone",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "labelSelector": {"matchLabels": LABELS},
                        }
                    ],
                },
            },
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        },
    }


def pod(namespace: str, name: str, security: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS},
        "spec": {"containers": [{"name": "memory", "image": IMAGE, "securityContext": security}]},
    }


def ready(kubernetes: ControlPlane, namespace: str, name: str) -> bool:
    found = kubernetes.get(f"/api/v1/namespaces/{namespace}/pods/{name}") or {}
    conditions = found.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_pulumi_creates_rolls_and_destroys_a_stateful_set(
    kubernetes: ControlPlane, namespace: str, stack: Callable[..., KubernetesStack]
) -> None:
    def program(image: str) -> Callable[[pulumi.ResourceOptions], None]:
        def run(options: pulumi.ResourceOptions) -> None:
            k8s.apps.v1.StatefulSet("memory", **stateful_set(namespace, image=image), opts=options)

        return run

    deployed = stack(program(IMAGE))
    assert deployed.up()["create"] == 3  # the stack, the provider, the set
    pods = kubernetes.items(f"/api/v1/namespaces/{namespace}/pods")
    assert {each["metadata"]["name"] for each in pods} == {"memory-0", "memory-1", "memory-2"}
    assert all(ready(kubernetes, namespace, each["metadata"]["name"]) for each in pods)
    zones = {each["metadata"]["name"]: each["metadata"]["labels"]["topology.kubernetes.io/zone"]
             for each in kubernetes.items("/api/v1/nodes")}  # fmt: skip
    assert len({zones[each["spec"]["nodeName"]] for each in pods}) == 3, "the scheduler spread them"
    claims = kubernetes.items(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")
    assert [each["status"]["phase"] for each in claims] == ["Bound"] * 3
    assert deployed.preview() == {"same": 3}

    deployed.program = program("registry.example/memory:2")
    assert deployed.up()["update"] == 1
    pods = kubernetes.items(f"/api/v1/namespaces/{namespace}/pods")
    assert {each["spec"]["containers"][0]["image"] for each in pods} == {"registry.example/memory:2"}

    deployed.destroy()
    kubernetes.until("the pods are gone", lambda: not kubernetes.items(f"/api/v1/namespaces/{namespace}/pods"))
    assert len(kubernetes.items(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")) == 3


def test_pod_security_refuses_a_privileged_pod(kubernetes: ControlPlane, namespace: str) -> None:
    with pytest.raises(ControlPlaneError, match="violates PodSecurity"):
        kubernetes.apply(pod(namespace, "greedy", {"privileged": True}))
    kubernetes.apply(pod(namespace, "modest", SAFE))
    with kubernetes.namespace(enforce="privileged") as lenient:
        kubernetes.apply(pod(lenient, "greedy", {"privileged": True}))


def test_pulumi_reports_what_the_admission_refuses(
    kubernetes: ControlPlane, namespace: str, stack: Callable[..., KubernetesStack]
) -> None:
    manifest = pod(namespace, "greedy", {"privileged": True})

    def program(options: pulumi.ResourceOptions) -> None:
        k8s.core.v1.Pod("greedy", metadata=manifest["metadata"], spec=manifest["spec"], opts=options)

    with pytest.raises(automation.CommandError, match="violates PodSecurity"):
        stack(program).up()


def test_a_disruption_budget_holds_a_drain(kubernetes: ControlPlane, namespace: str) -> None:
    for name in ("first", "second"):
        kubernetes.apply(pod(namespace, name, SAFE))
    kubernetes.until("both are ready", lambda: all(ready(kubernetes, namespace, n) for n in ("first", "second")))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "memory", "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
    }
    kubernetes.apply(budget)
    path = kubernetes.path_of(budget)
    kubernetes.until(
        "the budget allows one",
        lambda: (kubernetes.get(path) or {}).get("status", {}).get("disruptionsAllowed") == 1,
    )
    assert kubernetes.evict(namespace, "first").status_code == 201
    held = kubernetes.evict(namespace, "second")
    assert held.status_code == 429, held.text
    assert "disruption budget" in held.text


def test_a_claim_gets_a_volume_and_is_enlarged_but_never_made_smaller(
    kubernetes: ControlPlane, namespace: str
) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kubernetes.apply(claim)
    path = kubernetes.path_of(claim)

    def capacity() -> str | None:
        status = (kubernetes.get(path) or {})["status"]
        return status["capacity"]["storage"] if status.get("phase") == "Bound" else None

    kubernetes.until("the claim is bound", capacity)
    claim["spec"]["resources"]["requests"]["storage"] = "2Gi"
    kubernetes.apply(claim)
    kubernetes.until("the volume is larger", lambda: capacity() == "2Gi")
    claim["spec"]["resources"]["requests"]["storage"] = "1Gi"
    with pytest.raises(ControlPlaneError, match="can not be less than"):
        kubernetes.apply(claim)


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "wrong"),
    [
        (
            "cert-manager.io/v1",
            "Certificate",
            {"secretName": "tls", "issuerRef": {"name": "ca", "kind": "Issuer"}, "dnsNames": ["memory"]},
            "dnsName",
        ),
        (
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            {"selector": {"matchLabels": LABELS}, "endpoints": [{"port": "http", "interval": "30s"}]},
            "endpoint",
        ),
        (
            "monitoring.coreos.com/v1",
            "PodMonitor",
            {"selector": {"matchLabels": LABELS}, "podMetricsEndpoints": [{"port": "http"}]},
            "endpoints",
        ),
        (
            "monitoring.coreos.com/v1",
            "PrometheusRule",
            {"groups": [{"name": "memory", "rules": [{"alert": "Down", "expr": "up == 0", "for": "5m"}]}]},
            "rules",
        ),
    ],
)
def test_kinds_of_operators_are_known_with_their_fields(
    kubernetes: ControlPlane, namespace: str, api_version: str, kind: str, spec: Manifest, wrong: str
) -> None:
    manifest = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "memory", "namespace": namespace},
        "spec": spec,
    }
    kubernetes.apply(manifest)
    with pytest.raises(ControlPlaneError, match=wrong):
        kubernetes.apply({**manifest, "spec": {**spec, wrong: []}})


def test_without_a_token_nothing_is_served(kubernetes: ControlPlane) -> None:
    assert kubernetes.api.get("/api/v1/nodes", headers={"Authorization": ""}).status_code == 401


@pytest.fixture
def web_server() -> Iterator[int]:
    """A server that says hello, for a port-forward to end at."""

    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"hello {self.path}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_port_forward_to_a_pod_ends_at_an_address_of_the_test(
    kubernetes: ControlPlane, namespace: str, web_server: int
) -> None:
    kubernetes.apply(pod(namespace, "memory-0", SAFE))
    kubernetes.until("it is ready", lambda: ready(kubernetes, namespace, "memory-0"))
    api = client.CoreV1Api(config.new_client_from_config(str(kubernetes.kubeconfig)))
    with kubernetes.forward(namespace, "memory-0", {6333: ("127.0.0.1", web_server)}):
        forward = stream.portforward(
            api.connect_get_namespaced_pod_portforward, "memory-0", namespace, ports="6333"
        )
        channel = forward.socket(6333)
        channel.settimeout(30)
        channel.sendall(b"GET /there HTTP/1.0\r\n\r\n")
        answer = b""
        while not answer.endswith(b"hello /there"):  # kwok leaves the stream open when the far end has closed
            chunk = channel.recv(65536)
            assert chunk, (answer, forward.error(6333))
            answer += chunk
        assert forward.error(6333) is None
        channel.close()


def test_a_component_that_dies_is_named_with_the_end_of_its_log(toolbox: Toolbox, tmp_path: Path) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho cannot allocate memory >&2\nexit 3\n")
    broken.chmod(0o755)
    tools = Toolbox({**toolbox.programs, "kube-apiserver": broken}, toolbox.kwok_files)
    with (
        pytest.raises(ControlPlaneError, match=r"(?s)kube-apiserver ended with code 3.*cannot allocate memory"),
        control_plane(tools, tmp_path),
    ):
        pass
    left = [file for file in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in _read(file)]
    assert not left, "what had been started is stopped"


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
