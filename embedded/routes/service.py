"""Health, version, metrics and what a single node says of its cluster."""

from __future__ import annotations

from typing import Any

from embedded.routes.base import Bare, Call, Route, Text

# The server whose answers this endpoint is compared with; qdrant-client checks it against its own version.
VERSION = "1.19.0"
TITLE = "qdrant - vector search engine (embedded endpoint, not a server)"


def _root(_: Call) -> Bare:
    return Bare({"title": TITLE, "version": VERSION, "commit": "embedded"})


def _health(_: Call) -> Text:
    return Text("healthz check passed")


def _ready(_: Call) -> Text:
    return Text("all shards are ready")


def _metrics(call: Call) -> Text:
    call.everything()
    return Text(call.metrics.render(call.store), "text/plain; version=0.0.4; charset=utf-8")


def _cluster(call: Call) -> dict[str, Any]:
    call.everything()
    return {"status": "disabled"}


def _telemetry(call: Call) -> dict[str, Any]:
    call.everything()
    return {
        "id": "embedded",
        "app": {"name": "qdrant-embedded", "version": VERSION, "startup": call.metrics.started.isoformat()},
        "collections": {"number_of_collections": len(call.store.collections)},
        "cluster": {"enabled": False},
    }


def _issues(call: Call) -> dict[str, Any]:
    call.everything()
    return {"issues": []}


def _snapshots(call: Call) -> list[Any]:
    if "name" in call.path:
        call.collection()
    else:
        call.everything()
    return []


ROUTES = [
    Route("GET", "/", _root),
    Route("GET", "/healthz", _health),
    Route("GET", "/livez", _health),
    Route("GET", "/readyz", _ready),
    Route("GET", "/metrics", _metrics),
    Route("GET", "/telemetry", _telemetry),
    Route("GET", "/issues", _issues),
    Route("GET", "/cluster", _cluster),
    Route("GET", "/snapshots", _snapshots),
    Route("GET", "/collections/{name}/snapshots", _snapshots),
]
