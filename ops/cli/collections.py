"""`comemory collections`: what is on the server, and what of it is looked after."""

from __future__ import annotations

from typing import Any

from comemory.live import LiveCollection
from ops.cli import output
from ops.cli.options import AsJson, SettingsFile, read_settings
from ops.jobs.base import looked_after
from ops.jobs.registry import connect


def collections(settings_file: SettingsFile = None, as_json: AsJson = False) -> None:
    """List the collections on the server: points, status, vectors, aliases, and which are looked after."""
    settings = read_settings(settings_file)
    with connect(settings) as session:
        aliases = session.aliases()
        ours = looked_after(session, settings.collections)
        found: list[dict[str, Any]] = []
        for name in session.collections():
            live = LiveCollection.from_rest(name, session.collection(name))
            found.append(
                {
                    "name": name,
                    "looked_after": name in ours,
                    "points": live.points,
                    "status": live.status,
                    "vectors": {
                        vector or "(unnamed)": f"{config.get('size')} {config.get('distance')}"
                        for vector, config in live.settings["vectors"].items()
                    },
                    "indexes": len(live.indexes),
                    "strict_mode": bool((live.settings.get("strict_mode_config") or {}).get("enabled")),
                    "managed_by": live.metadata.get("managed_by"),
                    "stack": live.metadata.get("stack"),
                    "aliases": sorted(alias for alias, target in aliases.items() if target == name),
                }
            )
    if as_json:
        output.print_json({"format": 1, "url": settings.qdrant.url, "collections": found})
        return
    rows = [
        (
            item["name"],
            "yes" if item["looked_after"] else "no",
            f"{item['points']:,}",
            item["status"],
            ", ".join(f"{vector} {shape}" for vector, shape in item["vectors"].items()),
            str(item["indexes"]),
            "on" if item["strict_mode"] else "off",
            item["stack"] or item["managed_by"] or "",
            ", ".join(item["aliases"]),
        )
        for item in found
    ]
    names = ("collection", "looked after", "points", "status", "vectors", "indexes", "strict", "owner", "aliases")
    output.table(names, rows, right=["points", "indexes"])
