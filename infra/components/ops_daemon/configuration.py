"""The files that the daemon reads: its settings, the declared collections, and where the secrets are laid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import yaml

from comemory.declaration import CollectionSettings
from infra.components.ops_daemon.settings import OpsDaemonSettings
from ops.settings import Settings

PORT = 9464
SETTINGS_PATH = PurePosixPath("/etc/comemory/settings")
SECRETS_PATH = PurePosixPath("/etc/comemory/secrets")
TLS_PATH = PurePosixPath("/etc/comemory/tls")
STATE_PATH = PurePosixPath("/var/lib/comemory")
SETTINGS_FILE, DECLARED_FILE, CA_FILE = "settings.yaml", "collections.yaml", "ca.crt"
KEY_FILE, TOKEN_FILE = "qdrant-key", "metrics-token"


def files(
    wanted: OpsDaemonSettings, collections: Sequence[CollectionSettings], *, url: str, ca: str | None
) -> dict[str, str]:
    """The entries of the ConfigMap: the settings file and what it names."""
    made = {
        SETTINGS_FILE: _yaml(daemon_settings(wanted, collections, url=url, with_ca=ca is not None)),
        DECLARED_FILE: _yaml([one.model_dump(mode="json", exclude_unset=True) for one in collections]),
    }
    return {**made, CA_FILE: ca} if ca is not None else made


def daemon_settings(
    wanted: OpsDaemonSettings, collections: Sequence[CollectionSettings], *, url: str, with_ca: bool
) -> dict[str, Any]:
    """What the daemon is told, only that which departs from its defaults; valid by its own model."""
    own = wanted.settings
    sections: dict[str, Any] = {
        name: getattr(own, name).model_dump(mode="json", exclude_unset=True)
        for name in ("ttl", "dedup", "audit", "census", "log")
    }
    sections["dedup"]["state_file"] = str(STATE_PATH / "dedup.json")
    sections["qdrant"] = {
        "url": url,
        "api_key_file": str(SECRETS_PATH / KEY_FILE),
        "timeout": own.qdrant_timeout,
        "retry_for": own.qdrant_retry_for,
        **({"ca_file": str(SETTINGS_PATH / CA_FILE)} if with_ca else {}),
    }
    sections["collections"] = {
        "include": [one.name for one in collections],
        "exclude": list(own.exclude),
        "declared": str(SETTINGS_PATH / DECLARED_FILE),
    }
    sections["http"] = {
        "host": wanted.listen,
        "port": PORT,
        **({"token_file": str(SECRETS_PATH / TOKEN_FILE)} if wanted.metrics_token else {}),
        **(
            {"tls_certificate": str(TLS_PATH / "tls.crt"), "tls_key": str(TLS_PATH / "tls.key")}
            if wanted.tls_secret
            else {}
        ),
    }
    sections["lease"] = {"kind": "kubernetes", "name": wanted.name, "duration": own.lease_seconds}
    sections["shutdown_seconds"] = own.shutdown_seconds
    Settings(**sections)
    return {name: value for name, value in sections.items() if value != {}}


def checksum(entries: Mapping[str, str]) -> str:
    """Another text for other files, so that the pod is made anew when they change."""
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]


def _yaml(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=True, allow_unicode=True)
