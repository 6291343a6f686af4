"""What a server says of a collection, read into the shape of the declaration to lay the two side by side.

Unknown keys, of a newer server, are carried along and never looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LiveIndex:
    """A payload index on the server; `points` is how many points have a value in it."""

    type: str
    params: Mapping[str, Any] = field(default_factory=dict)
    points: int = 0


@dataclass(frozen=True)
class LiveCollection:
    """A collection on the server.

    `settings` has the keys of `CollectionSpec`; `points` is the server's own estimate.
    """

    name: str
    settings: Mapping[str, Any]
    indexes: Mapping[str, LiveIndex] = field(default_factory=dict)
    points: int = 0
    status: str = "green"

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The collection's metadata; empty where there is none."""
        found: Mapping[str, Any] = self.settings.get("metadata") or {}
        return found

    @classmethod
    def from_rest(cls, name: str, result: Mapping[str, Any]) -> LiveCollection:
        """Read the `result` of `GET /collections/{name}`."""
        config = result["config"]
        settings = {**config["params"]}
        vectors = settings.get("vectors") or {}
        # An unnamed vector is answered without the level of names.
        settings["vectors"] = {"": vectors} if "size" in vectors and "distance" in vectors else vectors
        settings["hnsw_config"] = config.get("hnsw_config") or {}
        settings["optimizers_config"] = config.get("optimizer_config") or {}
        for key in ("quantization_config", "strict_mode_config", "metadata"):
            if config.get(key) is not None:
                settings[key] = config[key]
        indexes = {
            field_name: LiveIndex(
                type=info["data_type"],
                params={key: value for key, value in (info.get("params") or {}).items() if key != "type"},
                points=info.get("points", 0),
            )
            for field_name, info in (result.get("payload_schema") or {}).items()
        }
        return cls(name, settings, indexes, result.get("points_count") or 0, result.get("status", "green"))
