"""What a person may set of a cluster. What is left out is secure and able to grow.

docs/configuration.md is made of the descriptions here.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from comemory.specs import Spec
from infra.components.qdrant_cluster.reserved import reserved_problems, reserved_variable
from infra.kubernetes_values import (
    Annotations,
    EntryKey,
    Host,
    LabelKey,
    Labels,
    Name,
    ObjectName,
    Repository,
    Tag,
)
from infra.quantity import Quantity, Size, amount

Text = Annotated[str, StringConstraints(min_length=1)]
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ImageSettings(Spec):
    """Which Qdrant runs. Upgrade one minor version at a time; see `allow_version_jump`."""

    repository: Repository = Field("docker.io/qdrant/qdrant", description="Repository of the image, without a tag.")
    version: str = Field(
        "1.19.1",
        pattern=r"^\d+\.\d+\.\d+$",
        description="Version of Qdrant in the image. The tag is `v<version>-unprivileged` unless `tag` is given.",
    )
    tag: Tag | None = Field(None, description="Tag, where a mirror names its images otherwise.")
    digest: Text | None = Field(
        None, description="`sha256:...` of the image; it goes before the tag. `version` should say what it holds."
    )
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field(
        "IfNotPresent", description="When the node fetches it."
    )
    pull_secrets: tuple[ObjectName, ...] = Field((), description="Secrets with the credentials of the registry.")

    @field_validator("digest")
    @classmethod
    def _a_digest(cls, value: str | None) -> str | None:
        if value is not None and not DIGEST.fullmatch(value):
            raise ValueError("should be `sha256:` and 64 hexadecimal digits")
        return value

    def reference(self) -> str:
        """The image as a pod names it."""
        if self.digest:
            return f"{self.repository}@{self.digest}"
        return f"{self.repository}:{self.tag or f'v{self.version}-unprivileged'}"


class KeysSettings(Spec):
    """The key with all rights and the key that only reads."""

    secret: ObjectName | None = Field(
        None,
        description="Existing Secret of the namespace with both keys. It is only referred to: neither the state "
        "nor the configuration holds them. Default: both are generated.",
    )
    api_key: EntryKey = Field("api-key", description="Entry of the Secret that is the key with all rights.")
    read_only_api_key: EntryKey = Field("read-only-api-key", description="Entry that is the key that only reads.")
    generation: int = Field(
        1, ge=1, description="Raise it to generate new keys, or to restart the pods after the Secret has changed."
    )


class IssuerSettings(Spec):
    """Who signs, where cert-manager runs in the cluster."""

    name: ObjectName = Field(description="Name of the Issuer.")
    kind: Literal["Issuer", "ClusterIssuer"] = Field("Issuer", description="Of the namespace, or of the cluster.")
    group: Text = Field("cert-manager.io", description="API group of the issuer.")
    duration: str = Field("2160h", pattern=r"^\d+h$", description="For how long a certificate is valid, in hours.")
    renew_before: str = Field("720h", pattern=r"^\d+h$", description="How long before its end it is renewed.")


class TlsSettings(Spec):
    """Certificates: one Secret with `tls.crt`, `tls.key` and `ca.crt` for clients and peers."""

    secret: ObjectName | None = Field(None, description="Existing Secret of the namespace.")
    issuer: IssuerSettings | None = Field(
        None, description="Issuer of cert-manager, which then makes the Secret and renews it."
    )
    peers: bool = Field(True, description="Encrypt between the pods of the cluster as well.")
    ca: Text | None = Field(
        None,
        description="The authority's certificate for clients of this stack. Default: `ca.crt` of the Secret.",
    )
    names: tuple[Host, ...] = Field(
        (), description="Further DNS names for the certificate that the issuer signs, such as that of an ingress."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.secret is None) == (self.issuer is None):
            raise ValueError("give either `secret` (an existing one) or `issuer` (of cert-manager)")
        return self


class VolumeSettings(Spec):
    """A volume that each pod has of its own."""

    size: Size = Field(
        "20Gi", description="Size. It can be raised at any time, if the storage class can expand; never lowered."
    )
    storage_class: ObjectName | None = Field(
        None, description="Storage class; fixed once the cluster exists. Default: the default of Kubernetes."
    )


class S3Settings(Spec):
    """A bucket for snapshots."""

    bucket: Text = Field(description="Name of the bucket.")
    region: Text = Field("us-east-1", description="Region of the bucket.")
    endpoint: str | None = Field(
        None, pattern=r"^https?://[^/\s]+/?$", description="Address of an S3 other than that of AWS."
    )
    secret: ObjectName | None = Field(
        None,
        description="Existing Secret with the credentials. Without it the pods' service account has to have the "
        "right; see `service_account_annotations`.",
    )
    access_key: EntryKey = Field("access-key", description="Entry of the Secret that is the access key.")
    secret_key: EntryKey = Field("secret-key", description="Entry of the Secret that is the secret key.")


class StorageSettings(VolumeSettings):
    """Volumes: the data, and the snapshots."""

    snapshots: VolumeSettings | None = Field(
        VolumeSettings(),
        description="Volume for snapshots; fixed once the cluster exists, except its size. Null: a temporary "
        "folder on the node, for a cluster whose snapshots go to S3.",
    )
    s3: S3Settings | None = Field(None, description="Bucket that snapshots are kept in. Default: the volume.")
    when_destroyed: Literal["retain", "delete"] = Field(
        "retain", description="What becomes of the volumes when the cluster leaves the stack."
    )


class Resources(Spec):
    """What a pod asks for, and what it may not exceed."""

    cpu: Quantity = Field("500m", description="Processors that a pod is promised.")
    memory: Size = Field("2Gi", description="Memory that a pod is promised and may not exceed.")
    cpu_limit: Quantity | None = Field(
        None, description="Processors that a pod may not exceed. Default: what the node has to spare."
    )


class Peer(Spec):
    """Pods by their labels. Both given: pods with these labels in namespaces with those."""

    pod_labels: Labels = Field({}, description="Labels of the pods. Empty: all pods of these namespaces.")
    namespace_labels: Labels | None = Field(
        None, description="Labels of their namespaces. Empty: all namespaces. Default: the cluster's own namespace."
    )

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if not self.pod_labels and not self.namespace_labels:
            raise ValueError("give labels of pods, of namespaces, or both; without any it would let everybody in")
        return self


class NetworkSettings(Spec):
    """Who may connect: pods with the client label, the peers, monitoring, and nobody else."""

    policy: bool = Field(True, description="Make a NetworkPolicy. It needs a network that enforces them.")
    client_label: LabelKey | None = Field(
        None, description='Label that a client\'s pod carries with the value "true". Default: `<name>-client`.'
    )
    client_namespaces: Labels | None = Field(
        None,
        description="Labels of further namespaces whose pods with that label are clients. Empty: all.",
    )
    clients: tuple[Peer, ...] = Field(
        (), description="Further clients without the label, such as an ingress controller."
    )
    monitoring: tuple[Peer, ...] = Field(
        (Peer(pod_labels={"app.kubernetes.io/name": "prometheus"}, namespace_labels={}),),
        description="Who reads the metrics. Default: pods of any namespace with "
        "`app.kubernetes.io/name: prometheus`.",
    )
    restrict_egress: bool = Field(
        True, description="Let the pods reach only each other, name resolution, and S3 where it is used."
    )


class ServiceSettings(Spec):
    """The service that clients use."""

    type: Literal["ClusterIP", "LoadBalancer", "NodePort"] = Field("ClusterIP", description="Type of the service.")
    annotations: Annotations = Field({}, description="Annotations, for example of a load balancer.")


class IngressSettings(Spec):
    """A way in from outside, for REST."""

    host: Host = Field(description="Host name.")
    class_name: ObjectName | None = Field(None, description="Class of the ingress controller.")
    annotations: Annotations = Field(
        {}, description="Annotations for the controller, such as that the pods speak https."
    )
    tls_secret: ObjectName | None = Field(None, description="Secret with the certificate of the host.")


class Toleration(Spec):
    """A taint of nodes that pods bear."""

    key: LabelKey | None = Field(None, description="Key of the taint. Default: every taint (operator `Exists`).")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="How the value is compared.")
    value: str | None = Field(None, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint. Default: all."
    )


class SchedulingSettings(Spec):
    """Where the pods run."""

    one_per_node: Literal["required", "preferred", "off"] = Field(
        "required", description="No two pods of the cluster on one node."
    )
    zone_spread: Literal["required", "preferred", "off"] = Field(
        "preferred", description="The same number of pods in each zone, give or take one."
    )
    node_selector: Labels = Field({}, description="Labels of the nodes.")
    tolerations: tuple[Toleration, ...] = Field((), description="Taints that the pods bear.")
    priority_class: ObjectName | None = Field(None, description="Priority class.")


class EnvironmentVariable(Spec):
    """A variable of Qdrant's process: a plain value, or an entry of a Secret."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Name of the variable.")
    value: str | None = Field(None, description="Value that is no secret.")
    secret: ObjectName | None = Field(None, description="Existing Secret that holds the value.")
    key: EntryKey | None = Field(None, description="Entry of that Secret.")

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if (self.value is None) == (self.secret is None) or (self.secret is None) != (self.key is None):
            raise ValueError(f"{self.name}: give either `value`, or `secret` and `key`")
        if problem := reserved_variable(self.name):
            raise ValueError(problem)
        return self


class QdrantClusterSettings(Spec):
    """A Qdrant cluster on Kubernetes."""

    name: Annotated[Name, StringConstraints(max_length=40)] = Field(
        "qdrant", description="Name of the cluster and of its objects; fixed once it exists."
    )
    replicas: int = Field(1, ge=1, le=100, description="Pods. More can be added at any time.")
    allow_scale_down: bool = Field(
        False,
        description="Permit fewer replicas than before. First move the shards away and remove the peers (see "
        "docs/kubernetes.md), else their data are out of reach.",
    )
    allow_version_jump: bool = Field(
        False, description="Permit an older version, or one more than one minor version ahead."
    )
    image: ImageSettings = Field(ImageSettings(), description="Which Qdrant runs.")
    keys: KeysSettings = Field(KeysSettings(), description="API keys. JWT access control is always on.")
    tls: TlsSettings | None = Field(None, description="Certificates. Default: http, held by the network policy.")
    storage: StorageSettings = Field(StorageSettings(), description="Volumes and snapshots.")
    resources: Resources = Field(Resources(), description="Processors and memory of a pod.")
    network: NetworkSettings = Field(NetworkSettings(), description="Who may connect.")
    service: ServiceSettings = Field(ServiceSettings(), description="The service that clients use.")
    ingress: IngressSettings | None = Field(None, description="A way in from outside. Default: none.")
    scheduling: SchedulingSettings = Field(SchedulingSettings(), description="Where the pods run.")
    configuration: dict[str, Any] = Field(
        {},
        description="Further keys of Qdrant's own configuration file, nested as there. What other keys here decide "
        "is refused.",
    )
    environment: tuple[EnvironmentVariable, ...] = Field((), description="Further environment variables.")
    log_level: Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR"] = Field("INFO", description="What Qdrant logs.")
    telemetry: bool = Field(False, description="Send usage statistics to Qdrant's makers.")
    grace_seconds: int = Field(
        120, ge=15, le=3600, description="Seconds that a pod has to write everything to disk before it is killed."
    )
    start_seconds: int = Field(
        3600, ge=60, description="Seconds that a pod may take to load its collections before it is restarted."
    )
    pod_labels: Labels = Field({}, description="Further labels of the pods.")
    pod_annotations: Annotations = Field(
        {}, description="Further annotations of the pods; a changed one restarts them one by one."
    )
    service_account_annotations: Annotations = Field(
        {}, description="Annotations of the service account, for a cloud's rights to the bucket."
    )
    listen: Literal["0.0.0.0", "::"] = Field(  # noqa: S104 - inside the pod; the network policy says who may connect
        "0.0.0.0",  # noqa: S104
        description="Address that Qdrant binds; `::` where pods have IPv6 only.",
    )
    cluster_domain: Host = Field("cluster.local", description="DNS domain of the Kubernetes cluster.")

    @field_validator("configuration")
    @classmethod
    def _nothing_twice(cls, value: dict[str, Any]) -> dict[str, Any]:
        if problems := reserved_problems(value):
            raise ValueError("; ".join(problems))
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.storage.snapshots is None and self.storage.s3 is None:
            raise ValueError(
                "storage.snapshots is null and no bucket (storage.s3) is given; snapshots would be lost"
            )
        if self.resources.cpu_limit and amount(self.resources.cpu_limit) < amount(self.resources.cpu):
            raise ValueError("resources.cpu_limit is below resources.cpu")
        names = [one.name.upper() for one in self.environment]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"environment: {', '.join(twice)} is given twice")
        own = [key for key in self.pod_labels if key.startswith("app.kubernetes.io/")]
        if own:
            raise ValueError(f"pod_labels: {', '.join(own)} belong to the cluster; choose labels of your own")
        return self

    @property
    def headless(self) -> str:
        """Name of the service that gives each pod a name."""
        return f"{self.name}-headless"

    @property
    def client_labels(self) -> dict[str, str]:
        """Labels that the network policy lets in."""
        return {self.network.client_label or f"{self.name}-client": "true"}
