"""Qdrant's configuration file and the script that starts it, both in one ConfigMap.

The keys are named as in https://github.com/qdrant/qdrant/blob/master/config/config.yaml. No secret is among them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import yaml

from infra.components.qdrant_cluster.settings import QdrantClusterSettings

HTTP_PORT, GRPC_PORT, PEER_PORT = 6333, 6334, 6335
CONFIGURATION_FILE, START_FILE = "production.yaml", "start.sh"
STORAGE_PATH, SNAPSHOTS_PATH, TLS_PATH = "/qdrant/storage", "/qdrant/snapshots", "/qdrant/tls"
CERTIFICATE_RELOAD_SECONDS = 3600
"""How often Qdrant reads a renewed certificate for REST; gRPC and peers read it when the pod starts."""


def configuration(settings: QdrantClusterSettings) -> dict[str, Any]:
    """Qdrant's configuration as nested keys."""
    tls = settings.tls
    snapshots: dict[str, Any] = {"snapshots_storage": "local"}
    if s3 := settings.storage.s3:
        bucket = {"bucket": s3.bucket, "region": s3.region, "endpoint_url": s3.endpoint}
        snapshots = {
            "snapshots_storage": "s3",
            "s3_config": {key: value for key, value in bucket.items() if value is not None},
        }
    own: dict[str, Any] = {
        "log_level": settings.log_level,
        "telemetry_disabled": not settings.telemetry,
        "storage": {
            "storage_path": STORAGE_PATH,
            "snapshots_path": SNAPSHOTS_PATH,
            "snapshots_config": snapshots,
        },
        "service": {
            "host": settings.listen,
            "http_port": HTTP_PORT,
            "grpc_port": GRPC_PORT,
            "enable_cors": False,
            "enable_tls": tls is not None,
            "jwt_rbac": True,
        },
        "cluster": {"enabled": True, "p2p": {"port": PEER_PORT, "enable_tls": bool(tls and tls.peers)}},
    }
    if tls is not None:
        own["tls"] = {
            "cert": f"{TLS_PATH}/tls.crt",
            "key": f"{TLS_PATH}/tls.key",
            "cert_ttl": CERTIFICATE_RELOAD_SECONDS,
            **({"ca_cert": f"{TLS_PATH}/ca.crt"} if tls.peers else {}),
        }
    return _merged(own, settings.configuration)


def metrics_prefix(settings: QdrantClusterSettings) -> str:
    """What Qdrant puts before the names of its metrics. It reads its keys in any case, and the environment last."""
    for variable in reversed(settings.environment):
        if variable.name.upper() == "QDRANT__SERVICE__METRICS_PREFIX" and variable.value is not None:
            return variable.value
    service = {key.lower(): one for key, one in configuration(settings).items()}["service"]
    return str({key.lower(): one for key, one in service.items()}.get("metrics_prefix") or "")


def start_script(settings: QdrantClusterSettings) -> str:
    """The script that starts a pod's Qdrant: the first pod founds the cluster, the others join it there.

    It becomes Qdrant (`exec`), so that Qdrant itself gets the signal to stop and writes everything to disk. A pod
    that has been in the cluster before finds the peers in its own storage, whatever its arguments.
    """
    scheme = "https" if settings.tls and settings.tls.peers else "http"
    domain = f"{settings.headless}.$POD_NAMESPACE.svc.{settings.cluster_domain}:{PEER_PORT}"
    return (
        "#!/bin/sh\n"
        "set -eu\n"
        f'own="{scheme}://$POD_NAME.{domain}"\n'
        f'first="{scheme}://{settings.name}-0.{domain}"\n'
        'if [ "$own" = "$first" ]; then\n'
        '  exec ./qdrant --uri "$own"\n'
        "fi\n"
        'exec ./qdrant --bootstrap "$first" --uri "$own"\n'
    )


def config_map_data(settings: QdrantClusterSettings) -> dict[str, str]:
    """The files of the ConfigMap."""
    return {
        CONFIGURATION_FILE: yaml.safe_dump(configuration(settings), sort_keys=True),
        START_FILE: start_script(settings),
    }


def checksum(settings: QdrantClusterSettings) -> str:
    """What a pod's annotation says of the files, so that another configuration restarts the pods."""
    return hashlib.sha256(json.dumps(config_map_data(settings), sort_keys=True).encode()).hexdigest()


def _merged(own: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(own)
    for key, value in further.items():
        there = result.get(key)
        result[key] = _merged(there, value) if isinstance(there, Mapping) and isinstance(value, Mapping) else value
    return result
