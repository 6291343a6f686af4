"""Logs: one event per batch and per run, as JSON lines or for people, on stderr; never content, never a key.

What is logged are names, counts, times and error sentences. Known secrets are masked as a last line of defence,
since a library could put one into a message of its own.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any

import orjson
import structlog
from pydantic import SecretStr

from ops.settings import LogSettings

MASK = "**********"
_LIBRARIES = ("apscheduler", "httpx", "httpcore", "uvicorn", "uvicorn.error", "asyncio")


class Masking:
    """A processor that takes known secrets out of every text of an event."""

    def __init__(self, secrets: Iterable[SecretStr | None]) -> None:
        self._secrets = [s.get_secret_value() for s in secrets if s is not None and s.get_secret_value()]

    def __call__(self, _logger: Any, _method: str, event: Any) -> Any:
        """The event without secrets."""
        return self._masked(event)

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, MASK)
            return value
        if isinstance(value, dict):
            return {key: self._masked(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(item) for item in value]
        return value


def _as_json(event: dict[str, Any], **_: Any) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_UTC_Z).decode()


def configure(settings: LogSettings, secrets: Iterable[SecretStr | None] = ()) -> None:
    """Set up structlog and the libraries' own logging; call it once, before the first event."""
    masking = Masking(secrets)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        masking,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer(serializer=_as_json)
        if settings.format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, masking, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        # apscheduler warns of each skipped overlap, which `ops.schedule` reports in words of its own.
        logger.setLevel(logging.ERROR if name == "apscheduler" else logging.WARNING)


def get(**values: Any) -> Any:
    """A logger whose events all carry these values."""
    return structlog.get_logger(**values)
