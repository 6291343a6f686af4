"""The whole program on a real control plane: one `up` from nothing ends with a cluster and its collections on it.

Nothing answers in a simulated pod. Its port-forward ends at an embedded endpoint instead, so that the way to it is
the one that the provider takes by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pulumi import automation
from qdrant_client import QdrantClient

from comemory.indexes import PAYLOAD_INDEXES
from infra.program import declare_stack
from infra.settings import load
from tests.conftest import Endpoint
from tests.support.control_plane import ControlPlane
from tests.support.kubernetes_stack import KubernetesStack

COLLECTION = {"name": "cm_text_4_v1", "embedding_model": "m", "dimension": 4, "profile": "small"}
DAEMON = {"image": {"repository": "registry.example/comemory", "tag": "1"}}
Make = Callable[..., KubernetesStack]


def declared(**values: Any) -> Callable[..., None]:
    settings = load(
        {f"comemory:{key}": one if isinstance(one, str) else json.dumps(one) for key, one in values.items()}
    )
    return lambda *_: declare_stack(settings)


def beside(first: KubernetesStack, program: Callable[[], None], name: str) -> automation.Stack:
    """Another stack of the same project and the same state."""
    workspace = first.stack.workspace
    return automation.create_stack(
        stack_name=name,
        project_name="comemory",
        program=program,
        opts=automation.LocalWorkspaceOptions(
            work_dir=workspace.work_dir, pulumi_command=workspace.pulumi_command, env_vars=workspace.env_vars
        ),
    )


@pytest.fixture
def place(kubernetes: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A name for a namespace that the program makes; it is gone afterwards."""
    monkeypatch.setenv("KUBECONFIG", str(kubernetes.kubeconfig))
    for name in ("QDRANT_URL", "QDRANT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with kubernetes.namespace("program") as used:
        name = f"{used}-own"
        yield name
    kubernetes.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.timeout(1800)
@pytest.mark.embedded_only("the port-forward of a pod ends at an endpoint of the test")
def test_one_up_from_nothing_ends_with_cluster_collections_daemon_and_monitoring(
    kubernetes: ControlPlane, place: str, stack: Make, start_endpoint: Callable[..., Endpoint]
) -> None:
    endpoint = start_endpoint()
    port = int(endpoint.url.rsplit(":", 1)[1])
    whole = stack(
        declared(
            namespace={"name": place},
            cluster={
                "storage": {"when_destroyed": "delete"},
                "configuration": {"service": {"metrics_prefix": "vec_"}},
            },
            collections=[COLLECTION],
            daemon=DAEMON,
            monitoring={},
        )
    )
    foreseen = whole.preview()
    assert foreseen["create"] > len(PAYLOAD_INDEXES), "collections and indexes are shown before the cluster exists"
    # What simulates the pod's port-forward has to be in the namespace before the program makes it its own.
    kubernetes.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    with kubernetes.forward(place, "qdrant-0", {6333: ("127.0.0.1", port)}):
        whole.up()
        outputs = whole.outputs
        assert outputs["url"] == f"http://qdrant.{place}.svc.cluster.local:6333"
        assert outputs["collections"] == ["cm_text_4_v1"] and outputs["indexes"] == len(PAYLOAD_INDEXES)
        with_client = QdrantClient(url=endpoint.url, check_compatibility=False)
        assert len(with_client.get_collection("cm_text_4_v1").payload_schema) == len(PAYLOAD_INDEXES)
        with_client.close()
        labels = (kubernetes.get(f"/api/v1/namespaces/{place}") or {})["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        pods = {pod["metadata"]["name"] for pod in kubernetes.items(f"/api/v1/namespaces/{place}/pods")}
        assert "qdrant-0" in pods and any(name.startswith("comemory-daemon-") for name in pods)
        monitors = f"/apis/monitoring.coreos.com/v1/namespaces/{place}"
        assert len(kubernetes.items(f"{monitors}/podmonitors")) == 1
        assert len(kubernetes.items(f"{monitors}/servicemonitors")) == 1
        (rules,) = kubernetes.items(f"{monitors}/prometheusrules")
        text = json.dumps(rules["spec"])
        assert f'vec_memory_resident_bytes{{job=~".*qdrant.*"}} / {2 * 1024**3} '.replace('"', '\\"') in text, (
            "what the cluster knows of itself reaches the rules"
        )
        assert set(whole.preview()) - {"read"} == {"same"}
        whole.destroy()
    kubernetes.until("the pods are gone", lambda: not kubernetes.items(f"/api/v1/namespaces/{place}/pods"))
    there = kubernetes.get(f"/api/v1/namespaces/{place}") or {}
    assert "deletionTimestamp" not in there["metadata"], "the namespace was there before, and others may be in it"


@pytest.mark.timeout(1800)
@pytest.mark.embedded_only("the port-forward of a pod ends at an endpoint of the test")
def test_cluster_and_collections_may_be_two_stacks(
    kubernetes: ControlPlane, place: str, stack: Make, start_endpoint: Callable[..., Endpoint]
) -> None:
    endpoint = start_endpoint()
    port = int(endpoint.url.rsplit(":", 1)[1])
    cluster = stack(declared(namespace={"name": place}, cluster={}, collections=[]), "cluster")
    cluster.up()
    wide = {**COLLECTION, "replication_factor": 2}
    there = "organization/comemory/cluster"
    with kubernetes.forward(place, "qdrant-0", {6333: ("127.0.0.1", port)}):
        second = beside(cluster, declared(cluster_stack=there, collections=[wide]), "collections")
        with pytest.raises(automation.CommandError) as told:
            second.preview(color="never")
        assert "comemory:collections[0].replication_factor: 2 copies of cm_text_4_v1 need 2 replicas" in str(
            told.value
        )
        made = second.up(color="never", program=declared(cluster_stack=there, collections=[COLLECTION]))
        assert made.outputs["collections"].value == ["cm_text_4_v1"]
        assert made.outputs["url"].value == cluster.outputs["url"]
        assert cluster.outputs["cluster"]["memory_bytes"] == 2 * 1024**3
        assert cluster.outputs["cluster"]["metrics_prefix"] == ""
        key = cluster.outputs["api_key"]
        assert isinstance(key, str) and key not in made.stdout
        second.destroy(color="never")
    # A third stack that declares the same cluster neither takes it over nor, when it goes, takes anything away.
    rival = beside(cluster, declared(namespace={"name": place}, cluster={}, collections=[]), "rival")
    with pytest.raises(automation.CommandError) as told:
        rival.up(color="never")
    assert f"there is a StatefulSet {place}/qdrant already that this stack has not made; choose another" in str(
        told.value
    )
    rival.destroy(color="never")
    assert set(cluster.preview()) == {"same"}
    services = kubernetes.items(f"/api/v1/namespaces/{place}/services")
    assert {one["metadata"]["name"] for one in services} == {"qdrant", "qdrant-headless"}
    cluster.destroy()
    assert "deletionTimestamp" not in (kubernetes.get(f"/api/v1/namespaces/{place}") or {})["metadata"]
    claims = kubernetes.items(f"/api/v1/namespaces/{place}/persistentvolumeclaims")
    assert {claim["metadata"]["name"] for claim in claims} == {"storage-qdrant-0", "snapshots-qdrant-0"}
