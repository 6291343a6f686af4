"""The provider's resources as classes for Pulumi programs in Python.

Properties are named as in Qdrant's REST interface and take what `comemory.catalog` and `comemory.indexes`
declare, or plain dictionaries of the same shape. What is left out is not declared, and never shows as a
difference. See docs/provider.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pydantic import BaseModel

from comemory.catalog import (
    CollectionSpec,
    DeletionPolicy,
    HnswSpec,
    OptimizersSpec,
    QuantizationSpec,
    SparseVectorSpec,
    StrictModeSpec,
    VectorSpec,
)
from comemory.indexes import IndexSpec, IndexType, StemmerSpec, StopwordsSpec

__all__ = ["AccessToken", "Alias", "ApiKey", "ClusterGuard", "Collection", "PayloadIndex", "Provider", "Rollout"]


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _given(**properties: Any) -> dict[str, Any]:
    return {key: _plain(value) for key, value in properties.items() if value is not None}


class Provider(pulumi.ProviderResource):
    """A connection to one Qdrant server.

    `url` and `api_key` default to QDRANT_URL and QDRANT_API_KEY. `timeout` is in seconds and holds for each
    request; `tls_ca` is the path or the text of a PEM file; `owner` is the name that marks collections as this
    stack's (default `project/stack`). `kubernetes` names a Service (`service`, `namespace`, `port`, `kubeconfig`,
    `context`) that is reached by a port-forward for the time of the operation. The key and the kubeconfig are
    encrypted in the state.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        url: pulumi.Input[str] | None = None,
        api_key: pulumi.Input[str] | None = None,
        timeout: pulumi.Input[float] | None = None,
        tls_ca: pulumi.Input[str] | None = None,
        owner: pulumi.Input[str] | None = None,
        kubernetes: Mapping[str, pulumi.Input[Any]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        key = pulumi.Output.secret(api_key) if api_key is not None else None
        # Pulumi carries a provider's configuration as texts.
        seconds = pulumi.Output.from_input(timeout).apply(str) if timeout is not None else None
        service: pulumi.Output[str] | None = None
        if kubernetes is not None:
            text: pulumi.Output[str] = pulumi.Output.json_dumps(dict(kubernetes))
            service = pulumi.Output.secret(text)
        super().__init__(
            "qdrant",
            resource_name,
            _given(url=url, api_key=key, timeout=seconds, tls_ca=tls_ca, owner=owner, kubernetes=service),
            opts,
        )


class Collection(pulumi.CustomResource):
    """A collection with named vectors; every property is documented in docs/provider.md.

    `deletion_policy` says what leaving the program means: `delete_if_empty` (default), `retain` or `delete`.
    `adopt` takes over an existing collection that belongs to no stack, with its data, if its immutable
    parameters agree.
    """

    name: pulumi.Output[str]
    """Name on the server; give it to indexes and aliases so that they wait for the collection."""
    owner: pulumi.Output[dict[str, str]]
    """The ownership marks in the collection's metadata."""

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vectors: Mapping[str, VectorSpec | Mapping[str, Any]],
        sparse_vectors: Mapping[str, SparseVectorSpec | Mapping[str, Any]] | None = None,
        hnsw_config: HnswSpec | Mapping[str, Any] | None = None,
        optimizers_config: OptimizersSpec | Mapping[str, Any] | None = None,
        quantization_config: QuantizationSpec | Mapping[str, Any] | None = None,
        strict_mode_config: StrictModeSpec | Mapping[str, Any] | None = None,
        shard_number: pulumi.Input[int] | None = None,
        sharding_method: pulumi.Input[str] | None = None,
        replication_factor: pulumi.Input[int] | None = None,
        write_consistency_factor: pulumi.Input[int] | None = None,
        on_disk_payload: pulumi.Input[bool] | None = None,
        metadata: Mapping[str, Any] | None = None,
        embedding_model: pulumi.Input[str] | None = None,
        deletion_policy: pulumi.Input[DeletionPolicy] | None = None,
        adopt: pulumi.Input[bool] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = _given(
            name=name,
            vectors=vectors,
            sparse_vectors=sparse_vectors,
            hnsw_config=hnsw_config,
            optimizers_config=optimizers_config,
            quantization_config=quantization_config,
            strict_mode_config=strict_mode_config,
            shard_number=shard_number,
            sharding_method=sharding_method,
            replication_factor=replication_factor,
            write_consistency_factor=write_consistency_factor,
            on_disk_payload=on_disk_payload,
            metadata=metadata,
            embedding_model=embedding_model,
            deletion_policy=deletion_policy,
            adopt=adopt,
        )
        super().__init__("qdrant:index:Collection", resource_name, {**properties, "owner": None}, opts)

    @classmethod
    def from_spec(
        cls, spec: CollectionSpec, *, resource_name: str | None = None, opts: pulumi.ResourceOptions | None = None
    ) -> Collection:
        """The resource of a declared collection, named as the collection unless another name is given."""
        return cls(resource_name or spec.name, **spec.declared(), opts=opts)


class PayloadIndex(pulumi.CustomResource):
    """A payload index. Make it before data arrives; changing type or parameters drops and rebuilds it.

    `deletion_policy` goes before that of the collection: by default an index of a collection that holds points
    is not dropped.
    """

    collection: pulumi.Output[str]
    """Name of the collection."""
    field: pulumi.Output[str]
    """Payload key, dots for nesting."""

    def __init__(
        self,
        resource_name: str,
        *,
        collection: pulumi.Input[str],
        field: pulumi.Input[str],
        type: pulumi.Input[IndexType],
        is_tenant: pulumi.Input[bool] | None = None,
        is_principal: pulumi.Input[bool] | None = None,
        on_disk: pulumi.Input[bool] | None = None,
        enable_hnsw: pulumi.Input[bool] | None = None,
        lookup: pulumi.Input[bool] | None = None,
        range: pulumi.Input[bool] | None = None,
        tokenizer: pulumi.Input[str] | None = None,
        min_token_len: pulumi.Input[int] | None = None,
        max_token_len: pulumi.Input[int] | None = None,
        lowercase: pulumi.Input[bool] | None = None,
        phrase_matching: pulumi.Input[bool] | None = None,
        stopwords: str | StopwordsSpec | Mapping[str, Any] | None = None,
        ascii_folding: pulumi.Input[bool] | None = None,
        stemmer: StemmerSpec | Mapping[str, Any] | None = None,
        deletion_policy: pulumi.Input[DeletionPolicy] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = _given(
            collection=collection,
            field=field,
            type=type,
            is_tenant=is_tenant,
            is_principal=is_principal,
            on_disk=on_disk,
            enable_hnsw=enable_hnsw,
            lookup=lookup,
            range=range,
            tokenizer=tokenizer,
            min_token_len=min_token_len,
            max_token_len=max_token_len,
            lowercase=lowercase,
            phrase_matching=phrase_matching,
            stopwords=stopwords,
            ascii_folding=ascii_folding,
            stemmer=stemmer,
            deletion_policy=deletion_policy,
        )
        super().__init__("qdrant:index:PayloadIndex", resource_name, properties, opts)

    @classmethod
    def from_spec(
        cls,
        spec: IndexSpec,
        collection: pulumi.Input[str],
        *,
        resource_name: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> PayloadIndex:
        """The resource of a declared index."""
        return cls(resource_name, collection=collection, **spec.declared(), opts=opts)


class Alias(pulumi.CustomResource):
    """Another name for a collection; pointing it to another collection is one step, without a moment in between."""

    name: pulumi.Output[str]
    """The alias."""
    collection: pulumi.Output[str]
    """The collection that it points to."""

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        collection: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("qdrant:index:Alias", resource_name, _given(name=name, collection=collection), opts)


class AccessToken(pulumi.CustomResource):
    """A JSON Web Token for one purpose, signed with the server's API key; the server needs `service.jwt_rbac`.

    Give `collections` (name to `r` or `rw`) or `access` (`r` or `m`, for everything); a token without either
    would have full rights and is refused. The first update within `renew_before_days` of its end makes it anew.
    Both the key and the token are encrypted in the state.
    """

    token: pulumi.Output[str]
    """The token (secret), sent as the header `api-key` or as bearer token."""
    expires_at: pulumi.Output[str]
    """When the server takes it no longer, RFC 3339."""

    def __init__(
        self,
        resource_name: str,
        *,
        collections: Mapping[str, pulumi.Input[str]] | pulumi.Output[Mapping[str, str]] | None = None,
        access: pulumi.Input[str] | None = None,
        api_key: pulumi.Input[str] | None = None,
        valid_days: pulumi.Input[float] | None = None,
        renew_before_days: pulumi.Input[float] | None = None,
        subject: pulumi.Input[str] | None = None,
        value_exists: Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = _given(
            collections=collections,
            access=access,
            api_key=pulumi.Output.secret(api_key) if api_key is not None else None,
            valid_days=valid_days,
            renew_before_days=renew_before_days,
            subject=subject,
            value_exists=value_exists,
        )
        secret = pulumi.ResourceOptions(additional_secret_outputs=["token", "api_key"])
        super().__init__(
            "qdrant:index:AccessToken",
            resource_name,
            {**properties, "token": None, "expires_at": None},
            pulumi.ResourceOptions.merge(secret, opts),
        )


class ApiKey(pulumi.CustomResource):
    """A random key of 256 bits, encrypted in the state; another `generation` makes another key in its place."""

    value: pulumi.Output[str]
    """The key (secret)."""
    fingerprint: pulumi.Output[str]
    """Beginning of the key's SHA-256: no secret, and another one for another key."""

    def __init__(
        self,
        resource_name: str,
        *,
        generation: pulumi.Input[int] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        secret = pulumi.ResourceOptions(additional_secret_outputs=["value"])
        super().__init__(
            "qdrant:index:ApiKey",
            resource_name,
            {**_given(generation=generation), "value": None, "fingerprint": None},
            pulumi.ResourceOptions.merge(secret, opts),
        )


class ClusterGuard(pulumi.CustomResource):
    """Remembers what a cluster on Kubernetes was last made with; refuses what would lose data.

    It changes nothing on a server. Let the cluster's objects depend on it, so that a refusal comes before any
    change. With `kubernetes` (`kubeconfig` and `context`, or an empty mapping for the defaults; encrypted in the
    state) a new guard refuses a cluster that is there already.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        namespace: pulumi.Input[str],
        replicas: pulumi.Input[int],
        version: pulumi.Input[str],
        storage_size: pulumi.Input[str],
        storage_class: pulumi.Input[str] | None = None,
        snapshots_size: pulumi.Input[str] | None = None,
        snapshots_class: pulumi.Input[str] | None = None,
        peer_tls: pulumi.Input[bool] | None = None,
        allow_scale_down: pulumi.Input[bool] | None = None,
        allow_version_jump: pulumi.Input[bool] | None = None,
        kubernetes: Mapping[str, pulumi.Input[str]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = _given(
            name=name,
            namespace=namespace,
            replicas=replicas,
            version=version,
            storage_size=storage_size,
            storage_class=storage_class,
            snapshots_size=snapshots_size,
            snapshots_class=snapshots_class,
            peer_tls=peer_tls,
            allow_scale_down=allow_scale_down,
            allow_version_jump=allow_version_jump,
            kubernetes=pulumi.Output.secret(dict(kubernetes)) if kubernetes is not None else None,
        )
        secret = pulumi.ResourceOptions(additional_secret_outputs=["kubernetes"])
        super().__init__(
            "qdrant:index:ClusterGuard", resource_name, properties, pulumi.ResourceOptions.merge(secret, opts)
        )


class Rollout(pulumi.CustomResource):
    """Waits until every pod of a StatefulSet is ready with the newest of its templates.

    Another `revision` waits again; give it the object's generation. `seconds` is how long that may take (600).
    `kubernetes` is `kubeconfig` and `context`, encrypted in the state; without it the defaults are taken.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: pulumi.Input[str],
        name: pulumi.Input[str],
        revision: pulumi.Input[str],
        seconds: pulumi.Input[int] | None = None,
        kubernetes: Mapping[str, pulumi.Input[str]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = _given(
            namespace=namespace,
            name=name,
            revision=revision,
            seconds=seconds,
            kubernetes=pulumi.Output.secret(dict(kubernetes)) if kubernetes is not None else None,
        )
        secret = pulumi.ResourceOptions(additional_secret_outputs=["kubernetes"])
        super().__init__(
            "qdrant:index:Rollout", resource_name, properties, pulumi.ResourceOptions.merge(secret, opts)
        )
