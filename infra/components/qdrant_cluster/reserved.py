"""Keys of Qdrant's configuration that the cluster decides itself, each with where a person says it instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RESERVED = {
    "service.api_key": "keys are never in a file; use `keys`",
    "service.read_only_api_key": "keys are never in a file; use `keys`",
    "service.alt_api_key": "keys are never in a file; use `keys`",
    "service.jwt_rbac": "JWT access control is always on",
    "service.enable_tls": "use `tls`",
    "service.verify_https_client_certificate": "the probes of Kubernetes have no certificate to show",
    "service.host": "use `listen`",
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


SECTIONS = frozenset(key.split(".")[0] for key in RESERVED if "." in key)
VARIABLES = {"POD_NAME", "POD_NAMESPACE", "QDRANT_INIT_FILE_PATH"}
"""Variables that the start of a pod relies on."""


def reserved_problems(configuration: Mapping[str, Any]) -> list[str]:
    """One sentence for each key that cannot be given, with what to use instead.

    Qdrant reads its keys in any case. A section that is no mapping would take the place of what is decided in it.
    """
    lower = _lower(configuration)
    flat = [
        f"{section} cannot be {_kind(lower[section])}: it is a section; give keys in it, or leave it out"
        for section in sorted(SECTIONS & lower.keys())
        if not isinstance(lower[section], Mapping)
    ]
    found = [key for key in RESERVED if _has(lower, key.split("."))]
    return [*flat, *(f"{key} cannot be set here: {RESERVED[key]}" for key in found)]


def reserved_variable(name: str) -> str | None:
    """Why a variable of the environment cannot be given; None for one that can. Qdrant reads it in any case."""
    if name.upper() in VARIABLES:
        return f"{name} is set by the cluster itself"
    key = name.lower().removeprefix("qdrant__").replace("__", ".")
    if not name.lower().startswith("qdrant__"):
        return None
    for reserved, instead in RESERVED.items():
        if key == reserved or key.startswith(f"{reserved}.") or reserved.startswith(f"{key}."):
            return f"{name} cannot be set here: {instead}"
    return None


def _kind(value: Any) -> str:
    """A value as it is named in an error: never its text, which may be a secret."""
    return "null" if value is None else f"a {type(value).__name__}"


def _lower(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(key).lower(): _lower(value) if isinstance(value, Mapping) else value for key, value in values.items()
    }


def _has(values: Any, path: list[str]) -> bool:
    if not path:
        return True
    return isinstance(values, Mapping) and path[0] in values and _has(values[path[0]], path[1:])
