"""The server: which version answers."""

from __future__ import annotations

from ops.collectors.base import Target
from ops.metrics import QDRANT_INFO
from ops.snapshot import Sample


class ServerCollector:
    """One request. Whether it worked is what `comemory_qdrant_up` shows."""

    name = "server"

    def collect(self, target: Target) -> list[Sample]:
        """Ask for the version."""
        return [Sample(QDRANT_INFO, (target.session.version(),), 1.0)]
