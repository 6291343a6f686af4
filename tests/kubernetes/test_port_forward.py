"""Qdrant behind a Service, reached by the provider's own port-forward through the real API server."""

from __future__ import annotations

import asyncio
import http.server
import json
import shutil
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pulumi
import pytest
import yaml

from infra.provider.errors import ProviderError
from infra.provider.port_forward import FOLDER_PREFIX, KubernetesService, PortForward
from infra.provider.rest import IDLE_SECONDS_FORWARDED, Rest
from infra.resources import Collection, PayloadIndex, Provider
from tests.conftest import Endpoint
from tests.support.certificates import Authority
from tests.support.control_plane import ControlPlane
from tests.support.kubernetes_stack import KubernetesStack

pytestmark = pytest.mark.embedded_only("a pod's port-forward ends at an endpoint of the test")
LABELS = {"app": "qdrant"}
SAFE = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def add_service(kubernetes: ControlPlane, namespace: str, selector: dict[str, str] | None = None) -> None:
    ports = [{"name": "http", "port": 6333, "targetPort": "http"}]
    kubernetes.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "qdrant", "namespace": namespace},
            "spec": {"ports": ports, **({"selector": selector} if selector else {})},
        }
    )


def add_pod(kubernetes: ControlPlane, namespace: str, name: str = "qdrant-0") -> None:
    container = {
        "name": "qdrant",
        "image": "registry.example/qdrant:1",
        "securityContext": SAFE,
        "ports": [{"name": "http", "containerPort": 6333}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS},
        "spec": {"containers": [container]},
    }
    kubernetes.apply(pod)

    def ready() -> bool:
        status = (kubernetes.get(kubernetes.path_of(pod)) or {}).get("status", {})
        return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))

    kubernetes.until(f"{name} is ready", ready)


def target(kubernetes: ControlPlane, namespace: str, **values: Any) -> KubernetesService:
    given = {"service": "qdrant", "namespace": namespace, "kubeconfig": str(kubernetes.kubeconfig), **values}
    return KubernetesService(**given)


def ask(service: KubernetesService, what: Callable[[Rest], Awaitable[Any]], ca: str | None = None) -> Any:
    async def run() -> Any:
        forward = PortForward(service, service.port or 6333)
        try:
            return await what(Rest(service.url(tls=ca is not None), None, 30, ca, forward))
        finally:
            forward.close()
            assert not forward.socket.exists()

    return asyncio.run(run())


def said(service: KubernetesService, ca: str | None = None) -> str:
    with pytest.raises(ProviderError) as told:
        ask(service, Rest.aliases, ca)
    return str(told.value)


def address(endpoint: Endpoint) -> tuple[str, int]:
    return "127.0.0.1", int(endpoint.url.rsplit(":", 1)[1])


def test_requests_reach_the_pod_and_a_connection_that_was_dropped_is_made_anew(
    kubernetes: ControlPlane, namespace: str, start_endpoint: Callable[..., Endpoint]
) -> None:
    add_service(kubernetes, namespace, LABELS)
    add_pod(kubernetes, namespace)
    endpoint = start_endpoint()
    body = {"vectors": {"dense": {"size": 4, "distance": "Cosine"}}}

    async def work(rest: Rest) -> list[Any]:
        await rest.create_collection("cm_a_4_v1", body)
        # More at once than there are connections, each of which is a port-forward of its own.
        found = await asyncio.gather(*(rest.count("cm_a_4_v1") for _ in range(4)), rest.aliases())
        # Every connection is closed at the far end, which kwok keeps to itself: they must not be used again.
        await asyncio.to_thread(endpoint.stop)
        await asyncio.to_thread(endpoint.restart)
        await asyncio.sleep(IDLE_SECONDS_FORWARDED)
        return [*found, (await rest.collection("cm_a_4_v1")) is not None]

    with kubernetes.forward(namespace, "qdrant-0", {6333: address(endpoint)}):
        assert ask(target(kubernetes, namespace), work) == [0, 0, 0, 0, {}, True]


def test_what_is_wrong_on_the_way_is_said_in_one_sentence(kubernetes: ControlPlane, namespace: str) -> None:
    assert f"there is no Service qdrant in namespace {namespace}" in said(target(kubernetes, namespace))
    add_service(kubernetes, namespace)
    assert "selects no pods" in said(target(kubernetes, namespace))
    add_service(kubernetes, namespace, LABELS)
    assert "no pod of Service qdrant" in said(target(kubernetes, namespace))
    assert "has no port 80 (it has: 6333)" in said(target(kubernetes, namespace, port=80))
    add_pod(kubernetes, namespace)
    silent = said(target(kubernetes, namespace))
    assert "pod qdrant-0 of Service qdrant" in silent and "does not answer on port 6333" in silent

    login = yaml.safe_load(kubernetes.kubeconfig.read_text())
    login["users"][0]["user"] = {"token": "S3CRET"}
    unknown = said(target(kubernetes, namespace, kubeconfig=yaml.safe_dump(login)))
    assert "does not know the account" in unknown and "S3CRET" not in unknown
    login["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    assert "cannot reach the API server https://127.0.0.1:9" in said(
        target(kubernetes, namespace, kubeconfig=yaml.safe_dump(login))
    )
    assert "no way to the API server" in said(target(kubernetes, namespace, context="elsewhere"))


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Start a server that answers as Qdrant with no aliases, by https under a certificate for the names given."""
    started: list[http.server.ThreadingHTTPServer] = []

    class NoAliases(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"result": {"aliases": []}, "status": "ok"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    def start(authority: Authority, *names: str) -> int:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoAliases)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.sign("qdrant", *names).write(tmp_path, f"server-{len(started)}"))
        # The handshake belongs to the connection's own thread: one that is broken off would hold up all others.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server.server_port

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def test_the_certificate_is_checked_against_the_name_of_the_service(
    kubernetes: ControlPlane, namespace: str, tls_server: Callable[..., int]
) -> None:
    add_service(kubernetes, namespace, LABELS)
    add_pod(kubernetes, namespace)
    authority, stranger = Authority(), Authority("stranger")
    good = tls_server(authority, f"qdrant.{namespace}.svc")
    other = tls_server(authority, "localhost", "127.0.0.1")
    service, ca = target(kubernetes, namespace), authority.certificate.decode()
    with kubernetes.forward(namespace, "qdrant-0", {6333: ("127.0.0.1", good)}):
        assert ask(service, Rest.aliases, ca) == {}
        assert "qdrant:tls_ca" in said(service, stranger.certificate.decode())
    with kubernetes.forward(namespace, "qdrant-0", {6333: ("127.0.0.1", other)}):
        assert "certificate is not valid for" in said(service, ca)


@pytest.fixture
def own_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_stack_makes_collections_through_it_and_leaves_no_socket(
    kubernetes: ControlPlane,
    namespace: str,
    stack: Callable[..., KubernetesStack],
    start_endpoint: Callable[..., Endpoint],
    own_tmp: Path,
) -> None:
    add_service(kubernetes, namespace, LABELS)
    add_pod(kubernetes, namespace)
    key = "the-key-of-the-test-with-thirty-two-bytes"
    endpoint = start_endpoint(api_key=key)

    def program(_: pulumi.ResourceOptions) -> None:
        way = {"service": "qdrant", "namespace": namespace, "kubeconfig": kubernetes.kubeconfig.read_text()}
        options = pulumi.ResourceOptions(provider=Provider("qdrant", api_key=key, kubernetes=way))
        vectors = {"dense": {"size": 4, "distance": "Cosine"}}
        made = Collection("memory", name="cm_a_4_v1", vectors=vectors, opts=options)
        PayloadIndex("tenant", collection=made.name, field="tenant_id", type="keyword", opts=options)

    deployed = stack(program)
    with kubernetes.forward(namespace, "qdrant-0", {6333: address(endpoint)}):
        assert deployed.up()["create"] >= 4
        answer = httpx.get(f"{endpoint.url}/collections/cm_a_4_v1", headers={"api-key": key})
        assert set(answer.json()["result"]["payload_schema"]) == {"tenant_id"}
        assert set(deployed.preview()) == {"same"}
        deployed.destroy()
    assert not list(own_tmp.glob(f"{FOLDER_PREFIX}*"))
    token = yaml.safe_load(kubernetes.kubeconfig.read_text())["users"][0]["user"]["token"].encode()
    written = b"".join(path.read_bytes() for path in deployed.folder.rglob("*") if path.is_file())
    assert token not in written and key.encode() not in written
