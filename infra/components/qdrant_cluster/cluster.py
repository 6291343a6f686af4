"""The component `QdrantCluster`: everything of one cluster, in the order in which it has to be made."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from infra.components.qdrant_cluster import certificates, network, storage
from infra.components.qdrant_cluster.configuration import HTTP_PORT, config_map_data, metrics_prefix
from infra.components.qdrant_cluster.labels import labels, selector
from infra.components.qdrant_cluster.scheduling import disruption_budget
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from infra.components.qdrant_cluster.workload import stateful_set
from infra.quantity import amount
from infra.resources import ApiKey, ClusterGuard, Rollout

PATCH_FORCE = {"pulumi.com/patchForce": "true"}
"""The size of a claim belongs to Kubernetes' own controller at first."""
MINUTES_PER_POD = 10


@dataclass(frozen=True)
class KeysSecret:
    """The Secret with the keys, its entries, and a text that changes when the keys do."""

    name: pulumi.Output[str]
    api_key: str
    read_only_api_key: str
    revision: pulumi.Output[str]


class QdrantCluster(pulumi.ComponentResource):
    """A Qdrant cluster in a namespace that exists.

    It needs a provider for Kubernetes in `opts`, or the default one, which has to change ConfigMaps and Secrets in
    place (`enable_config_map_mutable`, `enable_secret_mutable`). What cannot be changed, or would lose data, is
    refused by a `ClusterGuard` before anything else is touched; with `access` (`kubeconfig` and `context` of that
    provider, or an empty mapping for the defaults) so is a cluster that is there already, and a change is done when
    all pods have been restarted with it. Volumes stay when the
    component is deleted, unless the settings say otherwise; all the rest goes.
    """

    url: pulumi.Output[str]
    """Address inside the Kubernetes cluster, known when the pods are ready."""
    namespace: pulumi.Output[str]
    service_name: str
    """Name of the service that clients use; REST is its port 6333, gRPC 6334."""
    api_key: pulumi.Output[str] | None
    """The key with all rights, secret; None when it is in an existing Secret."""
    read_only_api_key: pulumi.Output[str] | None
    """The key that only reads, secret; None when it is in an existing Secret."""
    keys_secret: KeysSecret
    tls: bool
    """Whether clients have to use https."""
    tls_secret: str | None
    """The Secret with `ca.crt`, beside the pods' own certificate; None without TLS."""
    ca: pulumi.Output[str] | None
    """The authority's certificate as PEM; None without TLS. Its value is None where a public authority signs."""
    client_labels: Mapping[str, str]
    """Labels that a client's pod has to carry to be let in."""
    pod_labels: Mapping[str, str]
    """Labels that select the pods."""
    replicas: int
    metrics_prefix: str
    """What Qdrant puts before the names of its metrics."""
    memory_bytes: int | None
    """Memory that a pod may not exceed."""
    ready: pulumi.Output[str]
    """Name of the cluster, known when all pods are ready and all volumes have their size."""

    def __init__(
        self,
        name: str,
        settings: QdrantClusterSettings,
        *,
        namespace: pulumi.Input[str],
        access: Mapping[str, pulumi.Input[str]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("comemory:index:QdrantCluster", name, None, opts)
        self._settings = settings
        self.namespace = pulumi.Output.from_input(namespace)
        self.service_name = settings.name
        self.tls = settings.tls is not None
        self.tls_secret = certificates.secret_name(settings)
        self.client_labels = settings.client_labels
        self.pod_labels = selector(settings)
        self.replicas = settings.replicas
        self.metrics_prefix = metrics_prefix(settings)
        self.memory_bytes = int(amount(settings.resources.memory))

        guard = self._guard(name, access)
        self._below = pulumi.ResourceOptions(parent=self, depends_on=[guard])
        self._before: list[pulumi.Resource] = []
        self.api_key, self.read_only_api_key, self.keys_secret = self._keys(name)
        before = [*self._before, *self._access(name), *self._network(name), *self._certificate(name)]
        pods = k8s.apps.v1.StatefulSet(
            name,
            metadata=self._metadata(settings.name),
            spec=stateful_set(settings, keys_secret=self.keys_secret.name, keys_revision=self.keys_secret.revision),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[guard, *before],
                # Kubernetes fixes the templates; the claims are set to their size one by one.
                ignore_changes=["spec.volumeClaimTemplates"],
                custom_timeouts=self._patience(),
            ),
        )
        rolled = self._rollout(name, pods, access) if access is not None else pods
        grown = self._claims(name, rolled)
        self.ready = pulumi.Output.all(rolled.id, *(claim.id for claim in grown)).apply(lambda _: settings.name)
        scheme = "https" if self.tls else "http"
        self.url = pulumi.Output.all(self.namespace, self.ready).apply(
            lambda known: f"{scheme}://{settings.name}.{known[0]}.svc.{settings.cluster_domain}:{HTTP_PORT}"
        )
        self.ca = self._authority(name, rolled)
        self.register_outputs({"url": self.url, "service_name": self.service_name, "replicas": self.replicas})

    def _metadata(self, object_name: str, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": object_name,
            "namespace": self.namespace,
            "labels": labels(self._settings),
        }
        return {**found, "annotations": dict(annotations)} if annotations else found

    def _guard(self, name: str, access: Mapping[str, pulumi.Input[str]] | None) -> ClusterGuard:
        settings = self._settings
        snapshots = settings.storage.snapshots
        return ClusterGuard(
            f"{name}-guard",
            name=settings.name,
            namespace=self.namespace,
            replicas=settings.replicas,
            version=settings.image.version,
            storage_size=settings.storage.size,
            storage_class=settings.storage.storage_class,
            snapshots_size=snapshots.size if snapshots else None,
            snapshots_class=snapshots.storage_class if snapshots else None,
            peer_tls=bool(settings.tls and settings.tls.peers),
            allow_scale_down=settings.allow_scale_down,
            allow_version_jump=settings.allow_version_jump,
            kubernetes=access,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _keys(self, name: str) -> tuple[pulumi.Output[str] | None, pulumi.Output[str] | None, KeysSecret]:
        keys = self._settings.keys
        if keys.secret:
            there = pulumi.Output.from_input(keys.secret)
            revision = pulumi.Output.from_input(f"generation-{keys.generation}")
            return None, None, KeysSecret(there, keys.api_key, keys.read_only_api_key, revision)
        full, read_only = (
            ApiKey(f"{name}-{purpose}", generation=keys.generation, opts=self._below)
            for purpose in ("api-key", "read-only-api-key")
        )
        # Its name is no output: a provider that replaces a Secret would replace the StatefulSet that depends on it.
        held = f"{self._settings.name}-keys"
        secret = k8s.core.v1.Secret(
            f"{name}-keys",
            metadata=self._metadata(held),
            type="Opaque",
            string_data={keys.api_key: full.value, keys.read_only_api_key: read_only.value},
            opts=self._below,
        )
        self._before.append(secret)
        there = pulumi.Output.from_input(held)
        revision = pulumi.Output.concat(full.fingerprint, ".", read_only.fingerprint)
        return full.value, read_only.value, KeysSecret(there, keys.api_key, keys.read_only_api_key, revision)

    def _access(self, name: str) -> list[pulumi.Resource]:
        settings = self._settings
        account = k8s.core.v1.ServiceAccount(
            name,
            metadata=self._metadata(settings.name, settings.service_account_annotations),
            automount_service_account_token=False,
            opts=self._below,
        )
        files = k8s.core.v1.ConfigMap(
            name,
            metadata=self._metadata(settings.name),
            data=config_map_data(settings),
            opts=self._below,
        )
        made: list[pulumi.Resource] = [account, files]
        if budget := disruption_budget(settings):
            made.append(
                k8s.policy.v1.PodDisruptionBudget(
                    name, metadata=self._metadata(settings.name), spec=budget, opts=self._below
                )
            )
        return made

    def _network(self, name: str) -> list[pulumi.Resource]:
        settings = self._settings
        # Neither service waits for pods: the pods come later, and need the headless one to find each other.
        at_once = {"pulumi.com/skipAwait": "true"}
        made: list[pulumi.Resource] = [
            k8s.core.v1.Service(
                f"{name}-headless",
                metadata=self._metadata(settings.headless, at_once),
                spec=network.headless_service(settings),
                opts=self._below,
            ),
            k8s.core.v1.Service(
                name,
                metadata=self._metadata(settings.name, {**settings.service.annotations, **at_once}),
                spec=network.client_service(settings),
                opts=self._below,
            ),
        ]
        if settings.network.policy:
            made.append(
                k8s.networking.v1.NetworkPolicy(
                    name,
                    metadata=self._metadata(settings.name),
                    spec=network.network_policy(settings),
                    opts=self._below,
                )
            )
        if settings.ingress and (way_in := network.ingress(settings)):
            made.append(
                k8s.networking.v1.Ingress(
                    name,
                    metadata=self._metadata(settings.name, {**settings.ingress.annotations, **at_once}),
                    spec=way_in,
                    opts=self._below,
                )
            )
        return made

    def _certificate(self, name: str) -> list[pulumi.Resource]:
        settings = self._settings
        if settings.tls is None or settings.tls.issuer is None:
            return []
        return [
            k8s.apiextensions.CustomResource(
                name,
                api_version="cert-manager.io/v1",
                kind="Certificate",
                metadata=self._metadata(settings.name),
                spec=self.namespace.apply(lambda namespace: certificates.certificate(settings, namespace)),
                opts=self._below,
            )
        ]

    def _rollout(
        self, name: str, pods: k8s.apps.v1.StatefulSet, access: Mapping[str, pulumi.Input[str]]
    ) -> Rollout:
        settings = self._settings
        return Rollout(
            f"{name}-rollout",
            namespace=self.namespace,
            name=settings.name,
            # Kubernetes counts the changes of an object's specification.
            revision=pods.metadata.apply(lambda metadata: str(metadata.generation)),
            seconds=60 * MINUTES_PER_POD * (settings.replicas + 2),
            kubernetes=access,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[pods], custom_timeouts=self._patience()),
        )

    def _claims(self, name: str, pods: pulumi.Resource) -> list[pulumi.CustomResource]:
        return [
            k8s.core.v1.PersistentVolumeClaimPatch(
                f"{name}-{claim}",
                metadata={"name": claim, "namespace": self.namespace, "annotations": PATCH_FORCE},
                spec={"resources": {"requests": {"storage": size}}},
                # Without this, deleting the patch would take the size away from a claim that stays.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[pods], retain_on_delete=True),
            )
            for claim, size in storage.claims(self._settings).items()
        ]

    def _authority(self, name: str, pods: pulumi.CustomResource) -> pulumi.Output[str] | None:
        if (tls := self._settings.tls) is None:
            return None
        if tls.ca:
            return pulumi.Output.from_input(tls.ca)
        # Pods cannot start without this Secret, so it is there when they are ready.
        there = pulumi.Output.all(self.namespace, pods.id).apply(lambda known: f"{known[0]}/{self.tls_secret}")
        secret = k8s.core.v1.Secret.get(f"{name}-tls", there, opts=pulumi.ResourceOptions(parent=self))
        return pulumi.Output.unsecret(secret.data.apply(self._authority_of))

    def _authority_of(self, data: Mapping[str, str] | None) -> Any:
        """The text of `ca.crt`. Peers cannot do without it; a public authority needs none for clients."""
        encoded = (data or {}).get("ca.crt")
        if encoded is None and self._settings.tls and self._settings.tls.peers:
            raise pulumi.RunError(
                f"the Secret {self.tls_secret} has no entry ca.crt, by which the pods would know each other; add "
                "the authority's certificate, or set comemory:cluster.tls.peers to false"
            )
        return base64.b64decode(encoded).decode() if encoded else None

    def _patience(self) -> pulumi.CustomTimeouts:
        minutes = f"{MINUTES_PER_POD * (self._settings.replicas + 2)}m"
        return pulumi.CustomTimeouts(create=minutes, update=minutes, delete=minutes)
