"""Certificates: names that they have to hold, and the Certificate that cert-manager makes a Secret from."""

from __future__ import annotations

from typing import Any

from infra.components.qdrant_cluster.settings import QdrantClusterSettings


def secret_name(settings: QdrantClusterSettings) -> str | None:
    """The Secret with `tls.crt`, `tls.key` and `ca.crt`; None without TLS."""
    if settings.tls is None:
        return None
    return settings.tls.secret or f"{settings.name}-tls"


def names(settings: QdrantClusterSettings, namespace: str) -> list[str]:
    """The names under which clients and peers reach the pods; `localhost` is for a port-forward."""
    service = settings.name
    return [
        *(f"{service}{rest}" for rest in ("", f".{namespace}", f".{namespace}.svc")),
        f"{service}.{namespace}.svc.{settings.cluster_domain}",
        f"*.{settings.headless}.{namespace}.svc",
        f"*.{settings.headless}.{namespace}.svc.{settings.cluster_domain}",
        "localhost",
        *(settings.tls.names if settings.tls else ()),
    ]


def certificate(settings: QdrantClusterSettings, namespace: str) -> dict[str, Any] | None:
    """The specification of cert-manager's Certificate; None when nobody is asked to sign."""
    if settings.tls is None or (issuer := settings.tls.issuer) is None:
        return None
    return {
        "secretName": secret_name(settings),
        "duration": f"{issuer.duration}0m0s",
        "renewBefore": f"{issuer.renew_before}0m0s",
        "dnsNames": names(settings, namespace),
        "issuerRef": {"name": issuer.name, "kind": issuer.kind, "group": issuer.group},
        # Peers are servers and clients of each other.
        "usages": ["server auth", "client auth"],
        "privateKey": {"rotationPolicy": "Always"},
    }
