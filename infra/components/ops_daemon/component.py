"""The component `OpsDaemon`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from comemory.declaration import CollectionSettings
from infra.components.ops_daemon.configuration import KEY_FILE, PORT, TOKEN_FILE, checksum, files
from infra.components.ops_daemon.settings import OpsDaemonSettings
from infra.components.ops_daemon.workload import deployment, labels, scheme, selector
from infra.resources import AccessToken, ApiKey


class OpsDaemon(pulumi.ComponentResource):
    """The ops daemon in a namespace that exists: one pod that keeps the declared collections in order.

    Args:
        name: Name of the component.
        settings: What a person may set.
        collections: The declared collections; the daemon is let into these and no others.
        namespace: Where it runs.
        url: Address of Qdrant.
        api_key: Qdrant's API key, which signs the daemon's token; None takes the key of the provider `qdrant`.
        ca: Certificate authority of Qdrant as PEM; None trusts the image's own.
        client_labels: Labels that Qdrant's network policy asks of a client's pod.

    It needs providers for Kubernetes and, for its keys, `qdrant` in `opts`, or the default ones; that for
    Kubernetes has to change ConfigMaps and Secrets in place. The daemon starts when the collections are there: name
    them in `depends_on`.
    """

    namespace: pulumi.Output[str]
    service_name: str
    port: int
    scheme: str
    """`http`, or `https` with a certificate."""
    tls_authority: str | None
    """The Secret whose `ca.crt` its certificate is known by; None for http or a public authority."""
    pod_labels: Mapping[str, str]
    """Labels that select the pod and the service."""
    metrics_secret: tuple[pulumi.Output[str], str] | None
    """The Secret and its entry with the bearer token of `/metrics`; None when none is asked for."""
    expires_at: pulumi.Output[str] | None
    """When its token ends; None for an existing key."""
    ready: pulumi.Output[str]
    """Its name, known when it runs."""

    def __init__(
        self,
        name: str,
        settings: OpsDaemonSettings,
        *,
        collections: Sequence[CollectionSettings],
        namespace: pulumi.Input[str],
        url: pulumi.Input[str],
        api_key: pulumi.Input[str] | None = None,
        ca: pulumi.Input[str | None] = None,
        client_labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("comemory:index:OpsDaemon", name, None, opts)
        self._settings = settings
        self._below = pulumi.ResourceOptions(parent=self)
        self.namespace = pulumi.Output.from_input(namespace)
        self.service_name, self.port, self.scheme = settings.name, PORT, scheme(settings)
        self.tls_authority = settings.tls_secret if settings.tls_authority else None
        self.pod_labels = selector(settings)

        self._before: list[pulumi.Resource] = []
        key, fingerprint = self._secret(name, [one.name for one in collections], api_key)
        entries = pulumi.Output.all(url, ca).apply(
            lambda known: files(settings, collections, url=str(known[0]), ca=known[1])
        )
        config = k8s.core.v1.ConfigMap(name, metadata=self._metadata(), data=entries, opts=self._below)
        before = [*self._before, config, *self._identity(name), *self._network(name), *self._state(name)]
        pods = k8s.apps.v1.Deployment(
            name,
            metadata=self._metadata(),
            spec=deployment(
                settings,
                key=key,
                metrics_token=self.metrics_secret,
                client_labels=client_labels or {},
                annotations={
                    "checksum/settings": entries.apply(checksum),
                    "checksum/secrets": fingerprint,
                    "comemory/restart": str(settings.restart),
                },
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=before),
        )
        self.ready = pods.id.apply(lambda _: settings.name)
        self.register_outputs({"ready": self.ready, "expires_at": self.expires_at})

    def _metadata(self, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self._settings.name,
            "namespace": self.namespace,
            "labels": labels(self._settings),
        }
        return {**found, "annotations": dict(annotations)} if annotations else found

    def _secret(
        self, name: str, collections: list[str], api_key: pulumi.Input[str] | None
    ) -> tuple[tuple[str, str], pulumi.Output[str]]:
        """Where the pod finds its key, and a text that changes with what is secret here."""
        wanted, made = self._settings, dict[str, pulumi.Input[str]]()
        self.expires_at = self.metrics_secret = None
        if wanted.key is None:
            token = AccessToken(
                f"{name}-token",
                collections=dict.fromkeys(collections, "rw"),
                api_key=api_key,
                valid_days=wanted.token.valid_days,
                renew_before_days=wanted.token.renew_before_days,
                subject=wanted.name,
                opts=self._below,
            )
            made[KEY_FILE], self.expires_at = token.token, token.expires_at
        if wanted.metrics_token:
            made[TOKEN_FILE] = ApiKey(f"{name}-metrics-token", opts=self._below).value
        key = (wanted.key.secret, wanted.key.key) if wanted.key else (wanted.name, KEY_FILE)
        if made:
            secret = k8s.core.v1.Secret(
                name, metadata=self._metadata(), type="Opaque", string_data=made, opts=self._below
            )
            self._before.append(secret)
            if wanted.metrics_token:
                self.metrics_secret = (pulumi.Output.from_input(wanted.name), TOKEN_FILE)
        values = pulumi.Output.all(*made.values())
        # The beginning of a hash of random texts tells nothing about them.
        return key, pulumi.Output.unsecret(values.apply(_fingerprint))

    def _identity(self, name: str) -> list[pulumi.Resource]:
        """An account that may hold one Lease. The Lease is made here: a right to make one cannot name it."""
        wanted = self._settings
        account = k8s.core.v1.ServiceAccount(
            name, metadata=self._metadata(), automount_service_account_token=False, opts=self._below
        )
        lease = k8s.coordination.v1.Lease(
            name,
            metadata=self._metadata(),
            # Who holds it is the daemon's to say.
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["spec"]),
        )
        role = k8s.rbac.v1.Role(
            name,
            metadata=self._metadata(),
            rules=[
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "resources": ["leases"],
                    "resourceNames": [wanted.name],
                    "verbs": ["get", "update"],
                }
            ],
            opts=self._below,
        )
        binding = k8s.rbac.v1.RoleBinding(
            name,
            metadata=self._metadata(),
            role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": wanted.name},
            subjects=[{"kind": "ServiceAccount", "name": wanted.name, "namespace": self.namespace}],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role, account]),
        )
        return [account, lease, role, binding]

    def _network(self, name: str) -> list[pulumi.Resource]:
        wanted = self._settings
        made: list[pulumi.Resource] = [
            k8s.core.v1.Service(
                name,
                # It does not wait for the pod, which comes later.
                metadata=self._metadata({"pulumi.com/skipAwait": "true"}),
                spec={
                    "selector": selector(wanted),
                    "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics", "protocol": "TCP"}],
                },
                opts=self._below,
            )
        ]
        if wanted.network_policy:
            peers = [
                {
                    "podSelector": {"matchLabels": peer.pod_labels},
                    **(
                        {"namespaceSelector": {"matchLabels": peer.namespace_labels}}
                        if peer.namespace_labels is not None
                        else {}
                    ),
                }
                for peer in wanted.monitoring
            ]
            ports = [{"port": PORT, "protocol": "TCP"}]
            made.append(
                k8s.networking.v1.NetworkPolicy(
                    name,
                    metadata=self._metadata(),
                    spec={
                        "podSelector": {"matchLabels": selector(wanted)},
                        "policyTypes": ["Ingress"],
                        # An entry without peers would let everybody in.
                        "ingress": [{"from": peers, "ports": ports}] if peers else [],
                    },
                    opts=self._below,
                )
            )
        return made

    def _state(self, name: str) -> list[pulumi.Resource]:
        if (wanted := self._settings.state) is None:
            return []
        spec: dict[str, Any] = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": wanted.size}},
            **({"storageClassName": wanted.storage_class} if wanted.storage_class else {}),
        }
        # A class that waits for the first pod would be waited for in vain.
        at_once = {"pulumi.com/skipAwait": "true"}
        return [
            k8s.core.v1.PersistentVolumeClaim(name, metadata=self._metadata(at_once), spec=spec, opts=self._below)
        ]


def _fingerprint(values: list[Any]) -> str:
    return hashlib.sha256("\n".join(map(str, values)).encode()).hexdigest()[:16]
