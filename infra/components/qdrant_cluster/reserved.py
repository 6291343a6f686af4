"""Keys of Qdrant's configuration that the cluster decides itself, each with where a person says it instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RESERVED = {
    "service.api_key": "keys are never in a file; use `keys`",
    "service.read_only_api_key": "keys are never in a file; use `keys`",
    "service.jwt_rbac": "JWT access control is always on",
    "service.enable_tls": "use `tls`",
    "service.verify_https_client_certificate": "the probes of Kubernetes have no certificate to show",
    "service.host": "the services of the cluster rely on it",
    "service.http_port": "the services of the cluster rely on it",
    "service.grpc_port": "the services of the cluster rely on it",
    "cluster.enabled": "the cluster mode is always on, so that a cluster of one can grow",
    "cluster.p2p": "use `tls.peers`",
    "storage.storage_path": "the volume is mounted there",
    "storage.snapshots_path": "the volume is mounted there",
    "storage.snapshots_config": "use `storage.s3`",
    "tls": "use `tls`",
    "log_level": "use `log_level`",
    "telemetry_disabled": "use `telemetry`",
}


def reserved_problems(configuration: Mapping[str, Any]) -> list[str]:
    """One sentence for each key that cannot be given, with what to use instead."""
    found = [key for key in RESERVED if _has(configuration, key.split("."))]
    return [f"{key} cannot be set here: {RESERVED[key]}" for key in found]


def _has(values: Any, path: list[str]) -> bool:
    if not path:
        return True
    return isinstance(values, Mapping) and path[0] in values and _has(values[path[0]], path[1:])
