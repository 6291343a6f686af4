"""What a person may set of the daemon's deployment. The daemon's own settings are those that it reads itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from comemory.specs import Spec
from infra.components.qdrant_cluster.settings import DIGEST, Peer, Resources, Text, Toleration, VolumeSettings
from infra.kubernetes_values import Annotations, EntryKey, Labels, Name, ObjectName, Repository, Tag
from ops.settings import (
    AuditSettings,
    CensusSettings,
    DedupSettings,
    LogSettings,
    RetentionSettings,
)


class DaemonImageSettings(Spec):
    """The image that the repository's Dockerfile builds, in a registry of one's own."""

    repository: Repository = Field(description="Repository of the image, without a tag.")
    tag: Tag | None = Field(None, description="Tag. Give it, or better the digest.")
    digest: Annotated[str, StringConstraints(pattern=DIGEST.pattern)] | None = Field(
        None, description="`sha256:...` of the image; it goes before the tag."
    )
    pull_secrets: tuple[ObjectName, ...] = Field((), description="Secrets with the credentials of the registry.")

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if self.tag is None and self.digest is None:
            raise ValueError("give `tag` or `digest`, so that it is known which daemon deletes")
        return self

    def reference(self) -> str:
        """The image as a pod names it."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


class DaemonTokenSettings(Spec):
    """The token that is made for the daemon: write access to the declared collections and to nothing else."""

    valid_days: float = Field(90, gt=0, le=3650, description="Days that a token is valid.")
    renew_before_days: float = Field(
        30, ge=0, description="An update this many days before its end makes another and restarts the daemon."
    )


class SecretEntry(Spec):
    """An entry of an existing Secret of the namespace."""

    secret: ObjectName = Field(description="Name of the Secret.")
    key: EntryKey = Field(description="Entry of the Secret.")


class DaemonSettings(Spec):
    """The daemon's own settings (docs/settings.md). Where it runs and what it connects to is decided here."""

    exclude: tuple[str, ...] = Field((), description="Declared collections that it leaves alone.")
    ttl: RetentionSettings = Field(RetentionSettings(), description="Retention.")
    dedup: DedupSettings = Field(DedupSettings(), description="Deduplication.")
    audit: AuditSettings = Field(AuditSettings(), description="Audit.")
    census: CensusSettings = Field(CensusSettings(), description="Census.")
    log: LogSettings = Field(LogSettings(), description="Logs.")
    qdrant_timeout: float = Field(60, gt=0, description="Seconds that one request may take.")
    qdrant_retry_for: float = Field(30, ge=0, description="Seconds during which a busy server is asked again.")
    lease_seconds: int = Field(30, ge=5, description="Seconds after which a silent daemon has lost its lease.")
    shutdown_seconds: float = Field(20, gt=0, description="Seconds that the batch under way may take at the end.")

    @model_validator(mode="after")
    def _state_is_ours(self) -> Self:
        if self.dedup.state_file is not None:
            raise ValueError("dedup.state_file is decided by `state`; leave it out")
        return self


class OpsDaemonSettings(Spec):
    """The ops daemon on Kubernetes."""

    name: Annotated[Name, StringConstraints(max_length=40)] = Field(
        "comemory-daemon", description="Name of the daemon and of its objects."
    )
    image: DaemonImageSettings = Field(description="The image.")
    settings: DaemonSettings = Field(DaemonSettings(), description="The daemon's own settings.")
    token: DaemonTokenSettings = Field(
        DaemonTokenSettings(), description="The token that is made for it, unless `key` names an existing one."
    )
    key: SecretEntry | None = Field(
        None,
        description="Existing Secret with a key or token, in place of a token made here. Default: one is made.",
    )
    metrics_token: bool = Field(True, description="Ask for a (generated) bearer token at `/metrics` and `/status`.")
    tls_secret: ObjectName | None = Field(
        None, description="Existing Secret with `tls.crt` and `tls.key`; the daemon then serves https."
    )
    tls_authority: bool = Field(
        True,
        description="The Secret holds `ca.crt`, too, by which Prometheus knows the certificate. False: a public "
        "authority has signed it.",
    )
    listen: Text = Field("0.0.0.0", description="Address that it binds; `::` where pods have IPv6 only.")  # noqa: S104
    state: VolumeSettings | None = Field(
        None,
        description="Volume for what incremental deduplication remembers. Default: a temporary one; after a "
        "move to another node the first run is then a full one.",
    )
    resources: Resources = Field(
        Resources(cpu="100m", memory="512Mi"), description="Processors and memory of the pod."
    )
    monitoring: tuple[Peer, ...] = Field(
        (Peer(pod_labels={"app.kubernetes.io/name": "prometheus"}, namespace_labels={}),),
        description="Who reads the metrics. Default: pods of any namespace with "
        "`app.kubernetes.io/name: prometheus`.",
    )
    network_policy: bool = Field(True, description="Let nobody else connect.")
    node_selector: Labels = Field({}, description="Labels of the nodes.")
    tolerations: tuple[Toleration, ...] = Field((), description="Taints that the pod bears.")
    priority_class: ObjectName | None = Field(None, description="Priority class.")
    pod_labels: Labels = Field({}, description="Further labels of the pod.")
    pod_annotations: Annotations = Field({}, description="Further annotations; a changed one restarts the pod.")
    restart: int = Field(0, ge=0, description="Raise it to restart the daemon, such as after `key` has changed.")

    @model_validator(mode="after")
    def _own_labels(self) -> Self:
        if own := [key for key in self.pod_labels if key.startswith("app.kubernetes.io/")]:
            raise ValueError(f"pod_labels: {', '.join(own)} belong to the daemon; choose labels of your own")
        return self

    @property
    def grace_seconds(self) -> int:
        """How long the pod has to end: longer than the daemon gives itself."""
        return int(timedelta(seconds=self.settings.shutdown_seconds).total_seconds()) + 15
