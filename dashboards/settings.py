"""What an installation may set: the prefix of Qdrant's metrics, its scrape jobs, where the runbooks are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

METRIC_PREFIX: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)?")
"""What can stand before the name of a metric."""

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

    Raises:
        ValueError: Rules and dashboards that Prometheus refuses would be made of one of them; it is named.
    """

    qdrant_prefix: str = ""
    qdrant_jobs: str = ".*qdrant.*"
    runbook_base: str = DEFAULT_RUNBOOKS
    qdrant_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if not METRIC_PREFIX.fullmatch(self.qdrant_prefix):
            raise ValueError(
                f"the prefix {self.qdrant_prefix!r} cannot begin a metric's name; use letters, digits and _ only"
            )
        try:
            jobs_expression(self.qdrant_jobs)
        except ValueError as error:
            raise ValueError(f"the jobs {self.qdrant_jobs!r}: {error}") from None
        if self.qdrant_memory_bytes is not None and self.qdrant_memory_bytes <= 0:
            raise ValueError(f"the memory must be more than 0 bytes, not {self.qdrant_memory_bytes}")


def jobs_expression(text: str) -> str:
    """It, if it can stand in quotes in every rule and dashboard; else ValueError says why not."""
    if not text:
        raise ValueError("is empty; name at least one scrape job of Qdrant")
    if re.search(r'["\\\n]', text):
        raise ValueError('cannot hold " or a backslash; write [.] for a point')
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return text
