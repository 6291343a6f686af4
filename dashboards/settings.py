"""What an installation may set: the prefix of Qdrant's metrics, its scrape jobs, where the runbooks are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_RUNBOOKS: Final = "docs/runbooks"


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """Everything in dashboards and rules that depends on the installation.

    Args:
        qdrant_prefix: What Qdrant puts before its metrics (`service.metrics_prefix`); by default nothing.
        qdrant_jobs: A regular expression of the scrape jobs of Qdrant. Without a prefix its metrics have names that
            others use too, such as `process_open_fds`.
        runbook_base: The address before `/<alert>.md` in `runbook_url`; by default the path in this repository.
        qdrant_memory_bytes: How much memory each instance of Qdrant may use. It is compared where nothing exports
            the container's own limit, as kube-state-metrics does.
    """

    qdrant_prefix: str = ""
    qdrant_jobs: str = ".*qdrant.*"
    runbook_base: str = DEFAULT_RUNBOOKS
    qdrant_memory_bytes: int | None = None
