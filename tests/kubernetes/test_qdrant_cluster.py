"""Clusters on a real control plane: admitted under Pod Security `restricted`, changed, rolled, grown, destroyed.

One long story per variant, since each `pulumi up` takes seconds.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi import automation

from infra.components.qdrant_cluster.cluster import QdrantCluster
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from tests.support.certificates import Authority
from tests.support.control_plane import ControlPlane
from tests.support.kubernetes_stack import KubernetesStack

Make = Callable[..., KubernetesStack]
ROLLING = "controller-revision-hash"


class Deployed:
    """A stack with one cluster, whose settings a test changes between runs."""

    def __init__(self, make: Make, plane: ControlPlane, namespace: str, **settings: Any) -> None:
        self.plane, self.namespace, self.settings = plane, namespace, settings
        self.stack = make(self._program)

    def _program(self, options: pulumi.ResourceOptions) -> None:
        settings = QdrantClusterSettings.model_validate(self.settings)
        cluster = QdrantCluster(
            "cluster",
            settings,
            namespace=self.namespace,
            access={"kubeconfig": str(self.plane.kubeconfig)},
            opts=pulumi.ResourceOptions(providers=[options.provider] if options.provider else None),
        )
        pulumi.export("url", cluster.url)
        pulumi.export("ca", cluster.ca)
        pulumi.export("api_key", cluster.api_key)

    def up(self, **changes: Any) -> dict[str, int]:
        self.settings.update(changes)
        return self.stack.up()

    def refused(self, namespace: str | None = None, **changes: Any) -> str:
        """What a preview says when it refuses; everything is as before afterwards."""
        before = dict(self.settings), self.namespace
        self.settings.update(changes)
        self.namespace = namespace or self.namespace
        with pytest.raises(automation.CommandError) as told:
            self.stack.preview()
        self.settings, self.namespace = before
        return str(told.value)

    def settled(self) -> bool:
        """Whether a preview would change nothing; what is only read from the cluster counts as nothing."""
        return set(self.stack.preview()) - {"read"} == {"same"}

    def items(self, group: str, kind: str) -> list[dict[str, Any]]:
        return self.plane.items(f"{group}/namespaces/{self.namespace}/{kind}")

    def pods(self) -> list[dict[str, Any]]:
        return sorted(
            (pod for pod in self.items("/api/v1", "pods") if "deletionTimestamp" not in pod["metadata"]),
            key=lambda pod: pod["metadata"]["name"],
        )

    def revisions(self) -> set[str]:
        return {pod["metadata"]["labels"][ROLLING] for pod in self.pods()}

    def one(self, group: str, kind: str, name: str = "qdrant") -> dict[str, Any]:
        found = self.plane.get(f"{group}/namespaces/{self.namespace}/{kind}/{name}")
        assert found is not None, f"there is no {kind}/{name}"
        return found

    def stateful_set(self) -> dict[str, Any]:
        return self.one("/apis/apps/v1", "statefulsets")

    def waited_for(self) -> str:
        """The change of the StatefulSet's specification that the last update has waited for."""
        deployment = self.stack.stack.export_stack().deployment or {}
        (rollout,) = (one for one in deployment["resources"] if one["type"] == "qdrant:index:Rollout")
        return str(rollout["inputs"]["revision"])

    def sizes(self) -> dict[str, str]:
        claims = self.items("/api/v1", "persistentvolumeclaims")
        return {one["metadata"]["name"]: one["spec"]["resources"]["requests"]["storage"] for one in claims}


def ready(pod: dict[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def secret(plane: ControlPlane, namespace: str, name: str, entries: dict[str, bytes]) -> None:
    data = {key: base64.b64encode(value).decode() for key, value in entries.items()}
    plane.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}
    )


@pytest.mark.timeout(1800)
def test_a_single_pod_grows_is_upgraded_and_goes(kubernetes: ControlPlane, namespace: str, stack: Make) -> None:
    one = Deployed(stack, kubernetes, namespace, image={"version": "1.18.2"})
    one.up()
    (pod,) = one.pods()
    assert ready(pod)
    assert one.stack.outputs["url"] == f"http://qdrant.{namespace}.svc.cluster.local:6333"
    assert one.items("/apis/policy/v1", "poddisruptionbudgets") == [], "it would hold every drain"
    keys = one.one("/api/v1", "secrets", "qdrant-keys")["data"]
    generated = {name: base64.b64decode(value).decode() for name, value in keys.items()}
    assert generated["api-key"] == one.stack.outputs["api_key"] != generated["read-only-api-key"]
    written = b"".join(file.read_bytes() for file in one.stack.folder.rglob("*") if file.is_file())
    for name, key in generated.items():
        assert key not in str(one.stateful_set()) and key not in str(one.items("/api/v1", "configmaps"))
        assert key.encode() not in written and keys[name].encode() not in written
    assert one.settled()
    one.stack.refresh()
    assert one.settled()

    made, before = one.stateful_set()["metadata"]["uid"], one.revisions()
    changed = one.up(
        replicas=2,
        storage={"size": "30Gi", "snapshots": {"size": "25Gi"}},
        keys={"generation": 2},
        image={"version": "1.19.1"},
        configuration={"storage": {"performance": {"max_search_threads": 2}}},
    )
    assert one.stateful_set()["metadata"]["uid"] == made, "it was never replaced"
    assert one.waited_for() == str(one.stateful_set()["metadata"]["generation"]) != "1"
    assert "replace" not in changed, "nor was what the pods read, which an old pod may still need"
    renewed = one.one("/api/v1", "secrets", "qdrant-keys")["data"]
    assert not set(renewed.values()) & set(keys.values())
    assert "max_search_threads: 2" in one.one("/api/v1", "configmaps")["data"]["production.yaml"]
    assert len(one.pods()) == 2 and all(ready(pod) for pod in one.pods())
    assert one.revisions().isdisjoint(before), "another key, version or configuration restarts the pods"
    assert one.stack.outputs["api_key"] != generated["api-key"]
    assert len(one.items("/apis/policy/v1", "poddisruptionbudgets")) == 1
    # The claims of the new replica were made from the template with the size of old.
    assert one.sizes() == {
        "storage-qdrant-0": "30Gi", "snapshots-qdrant-0": "25Gi",
        "storage-qdrant-1": "30Gi", "snapshots-qdrant-1": "25Gi",
    }  # fmt: skip
    assert one.settled()

    told = one.refused(replicas=1, storage={"size": "20Gi", "storage_class": "other"}, image={"version": "1.18.2"})
    for said in (
        "the shards on pod 1 would be out of reach",
        "cannot shrink to 20Gi",
        "cannot become other",
        "cannot become the older 1.18.2",
    ):
        assert said in told
    assert len(one.pods()) == 2

    one.up(replicas=1, allow_scale_down=True)
    kubernetes.until("one pod is left", lambda: [pod["metadata"]["name"] for pod in one.pods()] == ["qdrant-0"])
    assert len(one.sizes()) == 4, "the volumes of the pod that went are kept"
    one.stack.destroy()
    assert left_over(one) == {f"persistentvolumeclaims/{name}" for name in one.sizes()}
    assert len(one.sizes()) == 4


def left_over(one: Deployed) -> set[str]:
    """What is still in the namespace, except what Kubernetes itself puts into each and what is on its way out."""
    kinds = {
        "/api/v1": ("pods", "services", "configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims"),
        "/apis/apps/v1": ("statefulsets",),
        "/apis/policy/v1": ("poddisruptionbudgets",),
        "/apis/networking.k8s.io/v1": ("networkpolicies", "ingresses"),
        "/apis/cert-manager.io/v1": ("certificates",),
    }
    return {
        f"{kind}/{item['metadata']['name']}"
        for group, names in kinds.items()
        for kind in names
        for item in one.items(group, kind)
        if item["metadata"]["name"] not in ("default", "kube-root-ca.crt")
        and "deletionTimestamp" not in item["metadata"]
    }


@pytest.mark.timeout(1800)
def test_three_pods_with_everything_on(kubernetes: ControlPlane, namespace: str, stack: Make) -> None:
    authority = Authority("the issuer")
    # What cert-manager would do: here nothing signs.
    secret(kubernetes, namespace, "qdrant-tls", {"ca.crt": authority.certificate, "tls.crt": b"x", "tls.key": b"x"})
    secret(kubernetes, namespace, "own-keys", {"full": b"k" * 43, "read": b"r" * 43})
    secret(kubernetes, namespace, "bucket", {"access-key": b"a", "secret-key": b"s"})
    priority(kubernetes, "important", 1000)
    one = Deployed(
        stack,
        kubernetes,
        namespace,
        replicas=3,
        image={"version": "1.19.1", "digest": "sha256:" + "0f" * 32, "pull_secrets": ["registry"]},
        keys={"secret": "own-keys", "api_key": "full", "read_only_api_key": "read"},
        tls={"issuer": {"name": "ca", "kind": "ClusterIssuer"}, "names": ["q.example"]},
        storage={
            "size": "50Gi", "storage_class": "kwok-volume", "when_destroyed": "delete",
            "snapshots": {"size": "10Gi"}, "s3": {"bucket": "b", "secret": "bucket"},
        },
        resources={"cpu": "1", "memory": "4Gi", "cpu_limit": "4"},
        network={"client_namespaces": {}, "clients": [{"pod_labels": {"app": "ingress"}, "namespace_labels": {}}]},
        service={"annotations": {"example.com/lb": "internal"}},
        ingress={"host": "q.example", "class_name": "nginx", "tls_secret": "q-example"},
        scheduling={
            "priority_class": "important", "tolerations": [{"key": "for", "value": "qdrant"}],
            "node_selector": {"kubernetes.io/os": "linux"},
        },
        environment=[{"name": "RUST_BACKTRACE", "value": "1"}],
        pod_labels={"team": "memory"}, pod_annotations={"example.com/note": "one"},
        service_account_annotations={"example.com/role": "snapshots"},
    )  # fmt: skip
    one.up()
    pods = one.pods()
    assert len(pods) == 3 and all(ready(pod) for pod in pods)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
    assert one.stack.outputs["ca"] == authority.certificate.decode()
    assert one.stack.outputs.get("api_key") is None, "it is in a Secret that is only referred to"
    assert one.stack.outputs["url"] == f"https://qdrant.{namespace}.svc.cluster.local:6333"
    for pod in pods:
        assert not [volume for volume in pod["spec"]["volumes"] if "projected" in volume], "no token of an account"
        assert pod["spec"]["priority"] == 1000
    labels = pods[0]["metadata"]["labels"]
    for name in ("name", "instance", "component", "managed-by", "part-of", "version"):
        assert labels[f"app.kubernetes.io/{name}"]
    (certificate,) = one.items("/apis/cert-manager.io/v1", "certificates")
    assert f"*.qdrant-headless.{namespace}.svc.cluster.local" in certificate["spec"]["dnsNames"]
    assert one.settled()

    # A drain takes one pod and has to wait for it before it takes another.
    policy = one.one("/apis/policy/v1", "poddisruptionbudgets")
    assert policy["spec"]["maxUnavailable"] == 1
    kubernetes.until(
        "the budget counts three pods",
        lambda: one.one("/apis/policy/v1", "poddisruptionbudgets")["status"].get("disruptionsAllowed") == 1,
    )
    for node in ("node-0", "node-1", "node-2"):
        cordon(kubernetes, node, True)
    try:
        assert kubernetes.evict(namespace, "qdrant-0").status_code == 201
        kubernetes.until("the budget sees that one is away", lambda: one.one(
            "/apis/policy/v1", "poddisruptionbudgets")["status"].get("disruptionsAllowed") == 0)  # fmt: skip
        assert kubernetes.evict(namespace, "qdrant-1").status_code == 429
    finally:
        for node in ("node-0", "node-1", "node-2"):
            cordon(kubernetes, node, False)
    kubernetes.until("all three are back", lambda: len(one.pods()) == 3 and all(ready(pod) for pod in one.pods()))

    made, before = one.stateful_set()["metadata"]["uid"], one.revisions()
    # What is not of the pods changes in place without a restart.
    one.up(
        network={"monitoring": []},
        service={"type": "NodePort", "annotations": {}},
        ingress=None,
        storage={**one.settings["storage"], "size": "60Gi"},
    )
    assert one.revisions() == before
    assert one.one("/api/v1", "services")["spec"]["type"] == "NodePort"
    assert one.items("/apis/networking.k8s.io/v1", "ingresses") == []
    assert set(one.sizes().values()) == {"60Gi", "10Gi"} and len(one.sizes()) == 6
    # What is of the pods restarts all of them.
    one.up(
        keys={**one.settings["keys"], "generation": 2},
        resources={"memory": "6Gi"},
        scheduling={"one_per_node": "preferred"},
        pod_annotations={"example.com/note": "two"},
        grace_seconds=60,
    )
    assert one.revisions().isdisjoint(before) and len(one.revisions()) == 1
    assert one.stateful_set()["metadata"]["uid"] == made
    told = one.refused("elsewhere", tls=None, storage={**one.settings["storage"], "snapshots": None})
    for said in (
        "encryption between 3 pods cannot be turned off",
        "cannot lose its volume for snapshots",
        f"the namespace of a cluster is {namespace} and cannot become elsewhere",
    ):
        assert said in told

    one.stack.destroy()
    kubernetes.until("the volumes went with the cluster", lambda: one.sizes() == {})
    kept = {"secrets/qdrant-tls", "secrets/own-keys", "secrets/bucket"}
    kubernetes.until("nothing else is left", lambda: left_over(one) == kept)


def priority(plane: ControlPlane, name: str, value: int) -> None:
    answer = plane.api.post(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        json={
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        },
    )
    assert answer.is_success, answer.text


def cordon(plane: ControlPlane, node: str, unschedulable: bool) -> None:
    answer = plane.api.patch(
        f"/api/v1/nodes/{node}",
        headers={"Content-Type": "application/merge-patch+json"},
        json={"spec": {"unschedulable": unschedulable}},
    )
    assert answer.is_success, answer.text
