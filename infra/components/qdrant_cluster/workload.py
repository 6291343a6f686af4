"""The StatefulSet: pods that pass Pod Security `restricted`, start together, and stop without losing a write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from infra.components.qdrant_cluster.certificates import secret_name
from infra.components.qdrant_cluster.configuration import (
    CONFIGURATION_FILE,
    GRPC_PORT,
    HTTP_PORT,
    PEER_PORT,
    START_FILE,
    TLS_PATH,
    checksum,
)
from infra.components.qdrant_cluster.labels import labels, selector
from infra.components.qdrant_cluster.scheduling import placement
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from infra.components.qdrant_cluster.storage import claim_templates, mounts

USER = GROUP = 1000
"""The user of Qdrant's unprivileged images."""
CONFIGURATION_PATH = "/qdrant/config"
DRAIN_SECONDS = 10
"""How long a pod still answers after it was told to stop, until the service has no more address of it."""


def stateful_set(
    settings: QdrantClusterSettings, *, keys_secret: pulumi.Input[str], keys_revision: pulumi.Input[str]
) -> dict[str, Any]:
    """The specification of the StatefulSet. Another `keys_revision` restarts the pods."""
    policy = "Retain" if settings.storage.when_destroyed == "retain" else "Delete"
    return {
        "serviceName": settings.headless,
        "replicas": settings.replicas,
        # A new cluster's pods wait for each other; and one that is stuck must not hold up the rest.
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate"},
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": selector(settings)},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy, "whenScaled": "Retain"},
        "template": {
            "metadata": {
                "labels": {**labels(settings), **settings.pod_labels},
                "annotations": {
                    **settings.pod_annotations,
                    "checksum/configuration": checksum(settings),
                    "checksum/keys": keys_revision,
                },
            },
            "spec": _pod(settings, keys_secret),
        },
        "volumeClaimTemplates": claim_templates(settings),
    }


def _pod(settings: QdrantClusterSettings, keys_secret: pulumi.Input[str]) -> dict[str, Any]:
    mounted, volumes = mounts(settings)
    config = {"name": "configuration", "readOnly": True}
    mounted = [
        *mounted,
        *(
            {**config, "mountPath": f"{CONFIGURATION_PATH}/{name}", "subPath": name}
            for name in (CONFIGURATION_FILE, START_FILE)
        ),
    ]
    volumes = [
        *volumes,
        {"name": "configuration", "configMap": {"name": settings.name, "defaultMode": 0o444}},
    ]
    if certificate := secret_name(settings):
        mounted.append({"name": "tls", "mountPath": TLS_PATH, "readOnly": True})
        volumes.append({"name": "tls", "secret": {"secretName": certificate, "defaultMode": 0o440}})
    spec: dict[str, Any] = {
        "serviceAccountName": settings.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.grace_seconds,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": GROUP,
            "fsGroup": GROUP,
            # A large volume is not walked through at each start.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(settings, keys_secret, mounted)],
        "volumes": volumes,
        **placement(settings),
    }
    if settings.image.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image.pull_secrets]
    return spec


def _container(
    settings: QdrantClusterSettings, keys_secret: pulumi.Input[str], mounted: list[dict[str, Any]]
) -> dict[str, Any]:
    wanted = settings.resources
    return {
        "name": "qdrant",
        "image": settings.image.reference(),
        "imagePullPolicy": settings.image.pull_policy,
        "workingDir": "/qdrant",
        "command": ["/bin/sh", f"{CONFIGURATION_PATH}/{START_FILE}"],
        "env": _environment(settings, keys_secret),
        "ports": [
            {"name": name, "containerPort": number, "protocol": "TCP"}
            for name, number in (("http", HTTP_PORT), ("grpc", GRPC_PORT), ("p2p", PEER_PORT))
        ],
        "resources": {
            "requests": {"cpu": wanted.cpu, "memory": wanted.memory},
            "limits": {"memory": wanted.memory, **({"cpu": wanted.cpu_limit} if wanted.cpu_limit else {})},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # These paths answer without a key.
        "startupProbe": _probe(settings, "/livez", period=5, failures=-(-settings.start_seconds // 5)),
        "livenessProbe": _probe(settings, "/livez", period=10, failures=6),
        "readinessProbe": _probe(settings, "/readyz", period=5, failures=3),
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", f"sleep {DRAIN_SECONDS}"]}}},
        "volumeMounts": mounted,
    }


def _environment(settings: QdrantClusterSettings, keys_secret: pulumi.Input[str]) -> list[dict[str, Any]]:
    keys = settings.keys
    entries: dict[str, tuple[pulumi.Input[str], str]] = {
        "QDRANT__SERVICE__API_KEY": (keys_secret, keys.api_key),
        "QDRANT__SERVICE__READ_ONLY_API_KEY": (keys_secret, keys.read_only_api_key),
    }
    if (s3 := settings.storage.s3) and s3.secret:
        prefix = "QDRANT__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__"
        entries[f"{prefix}ACCESS_KEY"] = (s3.secret, s3.access_key)
        entries[f"{prefix}SECRET_KEY"] = (s3.secret, s3.secret_key)
    for one in settings.environment:
        if one.secret and one.key:
            entries[one.name] = (one.secret, one.key)
    fields: Mapping[str, str] = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
        # Qdrant writes this file when it has started, by default beside itself, where nothing can be written.
        {"name": "QDRANT_INIT_FILE_PATH", "value": "/tmp/.qdrant-initialized"},  # noqa: S108
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
            for name, (secret, key) in entries.items()
        ),
        *({"name": one.name, "value": one.value} for one in settings.environment if one.value is not None),
    ]


def _probe(settings: QdrantClusterSettings, path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http", "scheme": "HTTPS" if settings.tls else "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }
