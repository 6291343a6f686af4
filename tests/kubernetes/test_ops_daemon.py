"""The daemon on a real control plane: admitted, ready, restarted by a change, and let near its own Lease alone."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pulumi
import pytest
import yaml

from comemory.declaration import CollectionSettings
from infra.components.ops_daemon.component import OpsDaemon
from infra.components.ops_daemon.settings import OpsDaemonSettings
from ops.errors import SettingsError
from ops.kubernetes import ApiServer, KubernetesLease
from tests.support.control_plane import ControlPlane
from tests.support.kubernetes_stack import KubernetesStack

KEY = "an-api-key-of-more-than-thirty-two-bytes"
COLLECTIONS = [CollectionSettings(name="cm_text_4_v1", embedding_model="m", dimension=4)]


def declared(namespace: str, **values: Any) -> Callable[[pulumi.ResourceOptions], None]:
    image = {"repository": "registry.example/comemory-daemon", "tag": "1"}
    settings = OpsDaemonSettings.model_validate({"image": image, "state": {"size": "1Gi"}, **values})

    def program(options: pulumi.ResourceOptions) -> None:
        OpsDaemon(
            "daemon",
            settings,
            collections=COLLECTIONS,
            namespace=namespace,
            url=f"https://qdrant.{namespace}.svc:6333",
            api_key=KEY,
            ca="-----BEGIN CERTIFICATE-----\n",
            client_labels={"qdrant-client": "true"},
            opts=options,
        )

    return program


def lease_of(kubernetes: ControlPlane, namespace: str, folder: Path, name: str) -> KubernetesLease:
    """A Lease held with the right of the daemon's service account alone."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/comemory-daemon/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = kubernetes.api.post(path, json=request)
    answer.raise_for_status()
    token = folder / "token"
    token.write_text(answer.json()["status"]["token"])
    api = ApiServer(kubernetes.url, namespace, token, kubernetes.authority)
    return KubernetesLease(api, name, "me", duration=30)


def test_the_daemon_from_its_creation_to_its_end(
    kubernetes: ControlPlane, namespace: str, stack: Callable[..., KubernetesStack], tmp_path: Path
) -> None:
    core, root = f"/api/v1/namespaces/{namespace}", f"/apis/apps/v1/namespaces/{namespace}"

    def the_pod() -> dict[str, Any]:
        (pod,) = [one for one in kubernetes.items(f"{core}/pods") if "deletionTimestamp" not in one["metadata"]]
        return pod

    deployed = stack(declared(namespace))
    deployed.up()
    first = the_pod()
    assert first["metadata"]["labels"]["qdrant-client"] == "true"
    assert kubernetes.items(f"{root}/deployments")[0]["status"]["readyReplicas"] == 1
    (claim,) = kubernetes.items(f"{core}/persistentvolumeclaims")
    assert claim["status"]["phase"] == "Bound"
    secret = kubernetes.get(f"{core}/secrets/comemory-daemon") or {}
    token = base64.b64decode(secret["data"]["qdrant-key"]).decode()
    claims = jwt.decode(token, KEY, ["HS256"])
    assert claims["access"] == [{"collection": "cm_text_4_v1", "access": "rw"}]
    config = (kubernetes.get(f"{core}/configmaps/comemory-daemon") or {})["data"]
    assert yaml.safe_load(config["settings.yaml"])["qdrant"]["url"] == f"https://qdrant.{namespace}.svc:6333"

    # It may hold its own Lease and read no other; what it writes there is no difference to Pulumi.
    own = lease_of(kubernetes, namespace, tmp_path, "comemory-daemon")
    assert own.hold() and own.hold()
    with pytest.raises(SettingsError, match="may not get, create and update Lease 'another'"):
        lease_of(kubernetes, namespace, tmp_path, "another").hold()
    assert set(deployed.preview()) == {"same"}
    own.release()

    deployed.program = declared(namespace, settings={"ttl": {"batch": 7}})
    changed = deployed.up()
    assert changed["update"] == 2 and "replace" not in changed, "the pod, and the files that it reads, in place"
    second = the_pod()
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    secret = kubernetes.get(f"{core}/secrets/comemory-daemon") or {}
    assert base64.b64decode(secret["data"]["qdrant-key"]).decode() == token, "the token is still good"

    written = b"".join(path.read_bytes() for path in deployed.folder.rglob("*") if path.is_file())
    assert KEY.encode() not in written and token.encode() not in written
    deployed.destroy()
    kubernetes.until("the pods are gone", lambda: not kubernetes.items(f"{core}/pods"))
    assert not kubernetes.items(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
