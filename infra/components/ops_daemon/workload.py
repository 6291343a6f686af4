"""The daemon's pod: passes Pod Security `restricted`, writes nowhere but to its state, reads secrets from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from infra.components.ops_daemon.configuration import (
    KEY_FILE,
    PORT,
    SECRETS_PATH,
    SETTINGS_FILE,
    SETTINGS_PATH,
    STATE_PATH,
    TLS_PATH,
    TOKEN_FILE,
)
from infra.components.ops_daemon.settings import OpsDaemonSettings

USER = GROUP = 10001
"""As in the Dockerfile; a test compares them."""


def selector(wanted: OpsDaemonSettings) -> dict[str, str]:
    """Labels that select the pod; they never change."""
    return {
        "app.kubernetes.io/name": "comemory-daemon",
        "app.kubernetes.io/instance": wanted.name,
        "app.kubernetes.io/component": "daemon",
    }


def labels(wanted: OpsDaemonSettings) -> dict[str, str]:
    """Labels of every object."""
    return {
        **selector(wanted),
        "app.kubernetes.io/part-of": "comemory",
        "app.kubernetes.io/managed-by": "pulumi",
    }


def scheme(wanted: OpsDaemonSettings) -> str:
    """How the daemon is spoken to."""
    return "https" if wanted.tls_secret else "http"


def deployment(
    wanted: OpsDaemonSettings,
    *,
    key: tuple[pulumi.Input[str], str],
    metrics_token: tuple[pulumi.Input[str], str] | None,
    client_labels: Mapping[str, str],
    annotations: Mapping[str, pulumi.Input[str]],
) -> dict[str, Any]:
    """The specification of the Deployment.

    `key` and `metrics_token` are entries of Secrets; other `annotations` restart the pod.
    """
    return {
        "replicas": 1,
        # Two at once do no harm, since one holds the lease; but a volume for one pod would hold up the second.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selector(wanted)},
        "template": {
            "metadata": {
                "labels": {**labels(wanted), **wanted.pod_labels, **client_labels},
                "annotations": {**wanted.pod_annotations, **annotations},
            },
            "spec": _pod(wanted, key, metrics_token),
        },
    }


def _pod(
    wanted: OpsDaemonSettings,
    key: tuple[pulumi.Input[str], str],
    metrics_token: tuple[pulumi.Input[str], str] | None,
) -> dict[str, Any]:
    entries = {KEY_FILE: key, **({TOKEN_FILE: metrics_token} if metrics_token else {})}
    sources = [
        {"secret": {"name": secret, "items": [{"key": entry, "path": file}]}}
        for file, (secret, entry) in entries.items()
    ]
    state = (
        {"persistentVolumeClaim": {"claimName": wanted.name}}
        if wanted.state
        else {"emptyDir": {"sizeLimit": "256Mi"}}
    )
    volumes: list[dict[str, Any]] = [
        {"name": "settings", "configMap": {"name": wanted.name, "defaultMode": 0o444}},
        # Readable by the pod's group, which `fsGroup` makes that of the files.
        {"name": "secrets", "projected": {"sources": sources, "defaultMode": 0o440}},
        {"name": "state", **state},
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
    ]
    mounts: list[dict[str, Any]] = [
        {"name": "settings", "mountPath": str(SETTINGS_PATH), "readOnly": True},
        {"name": "secrets", "mountPath": str(SECRETS_PATH), "readOnly": True},
        {"name": "state", "mountPath": str(STATE_PATH)},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
    ]
    if wanted.tls_secret:
        volumes.append({"name": "tls", "secret": {"secretName": wanted.tls_secret, "defaultMode": 0o440}})
        mounts.append({"name": "tls", "mountPath": str(TLS_PATH), "readOnly": True})
    spec: dict[str, Any] = {
        "serviceAccountName": wanted.name,
        # For the Lease, and for nothing else: see the Role.
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": wanted.grace_seconds,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": GROUP,
            "fsGroup": GROUP,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(wanted, mounts)],
        "volumes": volumes,
        "tolerations": [one.declared() for one in wanted.tolerations],
        "nodeSelector": wanted.node_selector,
    }
    if wanted.priority_class:
        spec["priorityClassName"] = wanted.priority_class
    if wanted.image.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in wanted.image.pull_secrets]
    return spec


def _container(wanted: OpsDaemonSettings, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    asked = wanted.resources
    return {
        "name": "daemon",
        "image": wanted.image.reference(),
        "imagePullPolicy": "IfNotPresent",
        "args": ["daemon"],
        "env": [{"name": "COMEMORY_SETTINGS", "value": str(SETTINGS_PATH / SETTINGS_FILE)}],
        "ports": [{"name": "metrics", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": asked.cpu, "memory": asked.memory},
            "limits": {"memory": asked.memory, **({"cpu": asked.cpu_limit} if asked.cpu_limit else {})},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": _probe(wanted, "/healthz", period=2, failures=60),
        "livenessProbe": _probe(wanted, "/healthz", period=15, failures=4),
        "readinessProbe": _probe(wanted, "/readyz", period=10, failures=3),
        "volumeMounts": mounts,
    }


def _probe(wanted: OpsDaemonSettings, path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "metrics", "scheme": scheme(wanted).upper()},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }
