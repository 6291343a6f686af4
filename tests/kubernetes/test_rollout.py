"""Waiting for the pods of a StatefulSet on a real control plane: for the newest ones, and not for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pulumi.provider.experimental import provider as protocol

from infra.provider.connection import Connection
from infra.provider.engine_log import EngineLog
from infra.provider.errors import ProviderError
from infra.provider.properties import to_properties
from infra.provider.resource import Context
from infra.provider.rollout import RolloutHandler
from tests.support.control_plane import ControlPlane

URN = "urn:pulumi:test::comemory::qdrant:index:Rollout::it"
HANDLER = RolloutHandler(Context(Connection(), EngineLog("unused")))
SAFE = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def apply(plane: ControlPlane, namespace: str, *, image: str, node: str | None = None) -> dict[str, Any]:
    """Declare two pods; with `node` on nodes that there are none of."""
    container = {"name": "memory", "image": f"registry.example/memory:{image}", "securityContext": SAFE}
    pods: dict[str, Any] = {"containers": [container], **({"nodeSelector": {"kind": node}} if node else {})}
    return plane.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "memory", "namespace": namespace},
            "spec": {
                "replicas": 2,
                "serviceName": "memory",
                "selector": {"matchLabels": {"app": "memory"}},
                "template": {"metadata": {"labels": {"app": "memory"}}, "spec": pods},
            },
        }
    )


def declared(plane: ControlPlane, namespace: str, **values: Any) -> dict[str, Any]:
    access = {"kubeconfig": str(plane.kubeconfig)}
    return {"namespace": namespace, "name": "memory", "revision": "1", "kubernetes": access, **values}


def waited(values: dict[str, Any], *, preview: bool = False) -> str | None:
    """The identity that a rollout gets when everything is ready."""
    request = protocol.CreateRequest(URN, to_properties(values), 0, preview)
    return asyncio.run(HANDLER.create(request)).resource_id


def test_it_waits_for_the_newest_pods_and_names_one_that_does_not_become_ready(
    kubernetes: ControlPlane, namespace: str
) -> None:
    wanted = declared(kubernetes, namespace)
    assert waited(wanted, preview=True) is None, "a preview waits for nothing"
    for image in ("1", "2"):
        apply(kubernetes, namespace, image=image)
        assert waited(wanted) == f"{namespace}/memory"
        pods = kubernetes.items(f"/api/v1/namespaces/{namespace}/pods")
        assert [pod["spec"]["containers"][0]["image"] for pod in pods] == [f"registry.example/memory:{image}"] * 2
    apply(kubernetes, namespace, image="3", node="none")
    kubernetes.until(
        "the first pod is restarted",
        lambda: kubernetes.items(f"/api/v1/namespaces/{namespace}/pods")[-1]["spec"].get("nodeSelector"),
    )
    with pytest.raises(ProviderError) as told:
        waited({**wanted, "seconds": 5})
    said = str(told.value)
    assert said.startswith(f"StatefulSet {namespace}/memory is not rolled out after 5 s: pod memory-1 is not ready")
    assert "nodes are available" in said and "run `pulumi up` again" in said


def test_a_stateful_set_that_cannot_be_read_is_said_when_the_time_is_over(
    kubernetes: ControlPlane, namespace: str
) -> None:
    with pytest.raises(ProviderError, match=r"not rolled out after 1 s: .*statefulsets.apps \"memory\" not found"):
        waited(declared(kubernetes, namespace, seconds=1))


def test_another_revision_waits_again_and_another_way_does_not() -> None:
    old = {"namespace": "n", "name": "memory", "revision": "1"}

    def changed(**values: Any) -> list[str]:
        request = protocol.DiffRequest(URN, "id", to_properties(old), to_properties({**old, **values}), [])
        return list(asyncio.run(HANDLER.diff(request)).diffs or [])

    assert changed() == [] == changed(seconds=9, kubernetes={"context": "other"})
    assert changed(revision="2") == ["revision"]
    request = protocol.CheckRequest(URN, {}, to_properties({**old, "seconds": 0}), b"")
    assert [one.property for one in asyncio.run(HANDLER.check(request)).failures or ()] == ["seconds"]
