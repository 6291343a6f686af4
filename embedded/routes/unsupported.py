"""What a server does and this endpoint does not: each path answers 501 and names the feature."""

from __future__ import annotations

from typing import Any

from embedded.errors import Unsupported
from embedded.routes.base import Call, Route

_SNAPSHOTS = "snapshots (copy the stopped endpoint's folder instead)"
_SHARDS = "shards and shard keys (it keeps one shard a collection)"
_CLUSTER = "a cluster of several peers"
_MATRIX = "the distance matrix of a sample of points"
_QUOTAS = "quotas"

FEATURES: dict[tuple[str, str], str] = {
    ("POST", "/snapshots"): _SNAPSHOTS,
    ("GET", "/snapshots/{snapshot}"): _SNAPSHOTS,
    ("DELETE", "/snapshots/{snapshot}"): _SNAPSHOTS,
    ("POST", "/collections/{name}/snapshots"): _SNAPSHOTS,
    ("POST", "/collections/{name}/snapshots/upload"): _SNAPSHOTS,
    ("PUT", "/collections/{name}/snapshots/recover"): _SNAPSHOTS,
    ("GET", "/collections/{name}/snapshots/{snapshot}"): _SNAPSHOTS,
    ("DELETE", "/collections/{name}/snapshots/{snapshot}"): _SNAPSHOTS,
    ("GET", "/collections/{name}/shards"): _SHARDS,
    ("PUT", "/collections/{name}/shards"): _SHARDS,
    ("POST", "/collections/{name}/shards/delete"): _SHARDS,
    ("GET", "/collections/{name}/shards/{shard}/snapshot"): _SNAPSHOTS,
    ("GET", "/collections/{name}/shards/{shard}/snapshots"): _SNAPSHOTS,
    ("POST", "/collections/{name}/shards/{shard}/snapshots"): _SNAPSHOTS,
    ("PUT", "/collections/{name}/shards/{shard}/snapshots/recover"): _SNAPSHOTS,
    ("POST", "/collections/{name}/shards/{shard}/snapshots/upload"): _SNAPSHOTS,
    ("POST", "/collections/{name}/cluster"): _CLUSTER,
    ("GET", "/cluster/telemetry"): _CLUSTER,
    ("POST", "/cluster/recover"): _CLUSTER,
    ("DELETE", "/cluster/peer/{peer}"): _CLUSTER,
    ("POST", "/collections/{name}/points/search/matrix/offsets"): _MATRIX,
    ("POST", "/collections/{name}/points/search/matrix/pairs"): _MATRIX,
    ("GET", "/collections/{name}/optimizations"): "a list of optimizations",
    ("DELETE", "/issues"): "clearing issues",
    ("GET", "/quotas"): _QUOTAS,
    ("PUT", "/quotas"): _QUOTAS,
} | {
    ("POST", f"/collections/{{name}}/points/{old}"): f"`points/{old}`, which the query interface replaced"
    for base in ("search", "recommend", "discover")
    for old in (base, f"{base}/batch", f"{base}/groups")
    if old != "discover/groups"
}


def _refuse(feature: str) -> Any:
    def handle(_: Call) -> None:
        raise Unsupported(feature)

    return handle


ROUTES = [Route(method, path, _refuse(feature)) for (method, path), feature in FEATURES.items()]
