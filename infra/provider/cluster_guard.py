"""The resource `ClusterGuard`: remembers what a cluster on Kubernetes was last made with.

It refuses what would lose data or what Kubernetes could not do, in a preview already and before anything else is
touched. Kubernetes itself would take fewer replicas without a word, and refuses changes of a StatefulSet's volumes
with a list of fields. Here each refusal is one sentence with what to do instead.

A cluster that another stack has made is refused before the first object: Kubernetes would let this stack apply its
own declarations over those, one by one, and delete them in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi.provider.experimental import provider as protocol
from pydantic import Field

from comemory.specs import Spec
from infra.provider.errors import ConflictError
from infra.provider.port_forward import KubernetesAccess
from infra.provider.properties import UNKNOWN, has_unknown, plain_map, without_unknown
from infra.provider.resource import Context, invalid, validated
from infra.quantity import Quantity, amount

FIXED = {
    "name": "the name of a cluster and of its service",
    "namespace": "the namespace of a cluster",
    "storage_class": "the storage class of the data",
    "snapshots_class": "the storage class of the snapshots",
}
DEFAULT = "(default)"
SETTINGS = {
    "name": "cluster.name",
    "namespace": "namespace.name",
    "replicas": "cluster.replicas",
    "version": "cluster.image.version",
    "storage_size": "cluster.storage.size",
    "storage_class": "cluster.storage.storage_class",
    "snapshots_size": "cluster.storage.snapshots.size",
    "snapshots_class": "cluster.storage.snapshots.storage_class",
    "peer_tls": "cluster.tls.peers",
    "allow_scale_down": "cluster.allow_scale_down",
    "allow_version_jump": "cluster.allow_version_jump",
}
"""Where a person says it in a stack's file, under `comemory:`. The program makes the properties of these."""


class ClusterGuardSpec(Spec):
    """What of a cluster is watched. A class that is not given is the default class of Kubernetes."""

    name: str = Field(min_length=1, description="Name of the cluster.")
    namespace: str = Field(min_length=1, description="Its namespace.")
    replicas: int = Field(ge=1, description="Its pods.")
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="Version of Qdrant.")
    storage_size: Quantity = Field(description="Size of the data's volume.")
    storage_class: str | None = Field(None, description="Storage class of the data's volume.")
    snapshots_size: Quantity | None = Field(None, description="Size of the snapshots' volume, if there is one.")
    snapshots_class: str | None = Field(None, description="Storage class of the snapshots' volume.")
    peer_tls: bool = Field(False, description="Whether the pods encrypt between each other.")
    allow_scale_down: bool = Field(False, description="Permit fewer replicas.")
    allow_version_jump: bool = Field(False, description="Permit an older version or a skipped minor version.")
    kubernetes: KubernetesAccess | None = Field(
        None,
        description="The API server that is asked, when the guard is made, whether a StatefulSet of that name is "
        "there already. Default: none is asked.",
    )


class ClusterGuardHandler:
    """Compares a cluster's declaration with the one before it; a new one's name with what is there."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Refuse what the cluster cannot become from what it is."""
        new, old = plain_map(request.new_inputs), plain_map(request.old_inputs)
        wrong = invalid(ClusterGuardSpec, new)
        if not wrong and old:
            wrong = [protocol.CheckFailure(key, f"{_setting(key)}: {why}") for key, why in refusals(old, new)]
        return protocol.CheckResponse(inputs=request.new_inputs, failures=wrong)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Whatever `check` lets pass is remembered in place. How the API server is reached is no part of that."""
        new, old = plain_map(request.new_inputs), plain_map(request.old_state)
        changed = sorted(
            key
            for key in ClusterGuardSpec.model_fields
            if key != "kubernetes" and (new.get(key) is UNKNOWN or new.get(key) != old.get(key))
        )
        kind = protocol.PropertyDiff(protocol.PropertyDiffKind.UPDATE, True)
        return protocol.DiffResponse(
            changes=bool(changed), diffs=changed, detailed_diff=dict.fromkeys(changed, kind)
        )

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Remember the declaration, unless there is such a cluster already."""
        properties = dict(request.properties)
        if request.preview:
            return protocol.CreateResponse(None, properties)
        wanted = validated(ClusterGuardSpec, plain_map(properties))
        if wanted.kubernetes is not None:
            # The client takes long to import, and most runs of the provider have no use for it.
            from infra.provider.kubernetes_api import has_stateful_set  # noqa: PLC0415

            if await asyncio.to_thread(has_stateful_set, wanted.kubernetes, wanted.namespace, wanted.name):
                raise ConflictError(
                    f"there is a StatefulSet {wanted.namespace}/{wanted.name} already that this stack has not "
                    "made; choose another comemory:cluster.name or namespace, or take it out of the other stack"
                )
        return protocol.CreateResponse(wanted.name, properties)

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """Nothing outside the state can have changed it."""
        return protocol.ReadResponse(request.resource_id, dict(request.properties), dict(request.inputs))

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Remember the new declaration."""
        return protocol.UpdateResponse(properties=dict(request.news))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """Forget it with the cluster."""


def refusals(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Which property cannot go from its old value to the new one, and why, one sentence each.

    What is not known yet in a preview is not judged; the update judges it.
    """
    cluster = f"cluster {old.get('name')}"
    known = without_unknown(new)
    for key, words in FIXED.items():
        if has_unknown(new.get(key)) or known.get(key) == old.get(key):
            continue
        if key == "snapshots_class" and ("snapshots_size" in known) != ("snapshots_size" in old):
            continue
        yield (
            key,
            f"{cluster}: {words} is {old.get(key, DEFAULT)} and cannot become {known.get(key, DEFAULT)}; declare a "
            "second cluster and move the collections there by snapshots",
        )
    yield from _volumes(cluster, old, new)
    yield from _pods(cluster, old, known)


def _volumes(cluster: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, words in (("storage_size", "the data"), ("snapshots_size", "the snapshots")):
        before, after = old.get(key), new.get(key)
        if has_unknown(after):
            continue
        if before is None or after is None:
            if before != after:
                verb = "be given a volume for snapshots" if before is None else "lose its volume for snapshots"
                yield (
                    key,
                    f"{cluster}: a cluster that exists cannot {verb}, since Kubernetes fixes the list of volumes; "
                    "declare a second cluster",
                )
        elif amount(after) < amount(before):
            yield (
                key,
                f"{cluster}: the volume of {words} has {before} and cannot shrink to {after}; no storage can do "
                "that, so declare a second cluster and move the collections there by snapshots",
            )


def _pods(cluster: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    replicas, before = new.get("replicas", 0), old.get("replicas", 0)
    if 0 < replicas < before and not new.get("allow_scale_down"):
        leaving = f"pod {replicas}" if before - replicas == 1 else f"pods {replicas} to {before - 1}"
        yield (
            "replicas",
            f"{cluster}: {before} replicas cannot become {replicas}: the shards on {leaving} would be out of "
            "reach; move them to the other pods and remove the peers from the cluster first, then set "
            f"{_setting('allow_scale_down')}",
        )
    # Peers with and without TLS cannot talk, and a pod that reaches no peer does not become ready.
    if before > 1 and new.get("peer_tls") is not None and bool(new["peer_tls"]) != bool(old.get("peer_tls")):
        yield (
            "peer_tls",
            f"{cluster}: encryption between {before} pods cannot be turned {'on' if new['peer_tls'] else 'off'} "
            "while they run, since a pod with it and one without do not understand each other; declare a second "
            "cluster and move the collections there by snapshots",
        )
    if "version" in new and "version" in old and not new.get("allow_version_jump"):
        was, will = _version(old["version"]), _version(new["version"])
        if will < was:
            yield (
                "version",
                f"{cluster}: Qdrant {old['version']} cannot become the older {new['version']}, which may not read "
                "what the newer one wrote; restore a snapshot in a second cluster, or set "
                f"{_setting('allow_version_jump')}",
            )
        elif will[0] != was[0] or will[1] > was[1] + 1:
            yield (
                "version",
                f"{cluster}: Qdrant {old['version']} cannot become {new['version']} in one step; upgrade to the "
                f"newest {was[0]}.{was[1] + 1} first, one minor version at a time, or set "
                f"{_setting('allow_version_jump')}",
            )


def _setting(key: str) -> str:
    return f"comemory:{SETTINGS[key]}"


def _version(text: str) -> tuple[int, int, int]:
    major, minor, patch = text.split(".")
    return int(major), int(minor), int(patch)
