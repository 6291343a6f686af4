"""Requests through a port-forward, and what is said when there is no way."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from infra.provider.connection import Connection, check_config
from infra.provider.errors import ProviderError
from infra.provider.port_forward import KubernetesService, PortForward
from infra.provider.rest import Rest
from tests.conftest import SERVER_KEY, SERVER_URL
from tests.support.forward_server import NAMESPACE, SERVICE, ForwardServer

KEY = SERVER_KEY if SERVER_URL else None


@pytest.fixture
def server(qdrant_url: str) -> Iterator[ForwardServer]:
    parts = urlsplit(qdrant_url)
    with ForwardServer(target=(str(parts.hostname), parts.port or 6333)) as running:
        yield running


def ask(server: ForwardServer, folder: Path, what: Callable[[Rest], Awaitable[Any]], **values: Any) -> Any:
    given = {"service": SERVICE, "namespace": NAMESPACE, "kubeconfig": server.kubeconfig(folder), **values}
    service = KubernetesService(**given)

    async def run() -> Any:
        forward = PortForward(service, service.port or 6333)
        try:
            return await what(Rest(service.url(tls=False), KEY, 30, None, forward))
        finally:
            forward.close()
            assert not forward.socket.parent.exists()

    return asyncio.run(run())


def said(server: ForwardServer, folder: Path, **values: Any) -> str:
    with pytest.raises(ProviderError) as told:
        ask(server, folder, Rest.aliases, **values)
    assert str(told.value).count("\n") == 0
    return str(told.value)


def test_requests_reach_a_ready_pod_and_a_dropped_connection_is_made_anew(server, tmp_path, collection_name):
    server.waiting = ["qdrant-1"]

    async def work(rest: Rest) -> list[Any]:
        found = [await rest.collection(collection_name)]
        await rest.create_collection(collection_name, {"vectors": {"dense": {"size": 4, "distance": "Cosine"}}})
        server.drop()
        found += await asyncio.gather(*(rest.count(collection_name) for _ in range(3)), rest.aliases())
        server.drop()
        # The pod is replaced by another.
        server.pods = ["qdrant-2"]
        return [*found, (await rest.collection(collection_name)) is not None]

    missing, *counts, aliases, there = ask(server, tmp_path, work)
    assert missing is None and counts == [0, 0, 0] and isinstance(aliases, dict) and there
    assert len(server.opened) >= 3 and set(server.opened) == {"qdrant-0", "qdrant-2"}


def test_nobody_else_may_enter_the_folder_of_the_socket(server):
    forward = PortForward(KubernetesService(service=SERVICE), 6333)
    assert stat.S_IMODE(forward.socket.parent.stat().st_mode) == 0o700
    forward.close()


def test_what_is_wrong_on_the_way_is_said_in_one_sentence(server, tmp_path):
    assert "there is no Service other in namespace memory" in said(server, tmp_path, service="other")
    assert "has no port 80 (it has: 6333)" in said(server, tmp_path, port=80)
    server.may_forward = False
    assert 'cannot create "pods/portforward"' in said(server, tmp_path)
    server.may_forward, server.target = True, None
    refused = said(server, tmp_path)
    assert "pod qdrant-0 of Service qdrant" in refused and "connection refused" in refused
    server.pods, server.waiting = [], ["qdrant-0"]
    assert "no pod of Service qdrant in namespace memory is ready (1 there)" in said(server, tmp_path)
    server.selector = None
    assert "selects no pods" in said(server, tmp_path)
    (stranger := tmp_path / "stranger").mkdir()
    wrong = said(server, tmp_path, kubeconfig=server.kubeconfig(stranger, token="S3CRET"))
    assert "does not know the account" in wrong and "S3CRET" not in wrong
    assert "no way to the API server" in said(server, tmp_path, context="elsewhere")
    assert "no way to the API server" in said(server, tmp_path, kubeconfig=str(tmp_path / "none"))
    away = yaml.safe_load(server.kubeconfig(tmp_path))
    away["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
    assert "cannot reach the API server http://127.0.0.1:9" in said(
        server, tmp_path, kubeconfig=yaml.safe_dump(away)
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("S3CRET", "should be a mapping with service and namespace"),
        ("[1]", "should be a mapping with service and namespace"),
        ('{"namespace": "n"}', "qdrant:kubernetes.service: Field required"),
        ('{"service": "q", "port": "S3CRET"}', "qdrant:kubernetes.port: Input should be a valid integer"),
        ('{"service": "q", "pod": "S3CRET"}', "qdrant:kubernetes.pod: there is no such property"),
        ({"service": "q", "kubeconfig": 7}, "qdrant:kubernetes.kubeconfig: Input should be a valid string"),
    ],
)
def test_a_wrong_configuration_names_the_key_and_repeats_no_value(value, reason):
    (failure,) = check_config({"kubernetes": value})
    assert failure.property == "" and reason in failure.reason
    assert "S3CRET" not in failure.reason


def test_the_service_has_an_address_of_its_own_unless_one_is_given(monkeypatch):
    monkeypatch.setenv("QDRANT_URL", "http://elsewhere:6333")
    service = {"service": "qdrant", "namespace": "memory"}
    assert Connection.from_config({"kubernetes": service}).url == "http://qdrant.memory.svc:6333"
    assert Connection.from_config({"kubernetes": service, "tls_ca": "/ca"}).url == "https://qdrant.memory.svc:6333"
    given = {"kubernetes": service, "url": "https://qdrant.example:7000"}
    assert Connection.from_config(given).url == "https://qdrant.example:7000"
