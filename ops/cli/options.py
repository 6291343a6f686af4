"""Options that several commands take, and reading the settings with them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from ops import logs
from ops.errors import SettingsError
from ops.files import read_secret
from ops.jobs.base import Selection
from ops.settings import LogSettings, Settings
from ops.settings_source import load
from ops.values import Duration

SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", metavar="FILE", help="The YAML file of settings; else $COMEMORY_SETTINGS, else none."
    ),
]
Collection = Annotated[
    str | None,
    typer.Option("--collection", metavar="NAME", help="Only this collection (or what this alias names)."),
]
Tenant = Annotated[str | None, typer.Option("--tenant", metavar="ID", help="Only this tenant, such as t_daarion.")]
Scope = Annotated[
    str | None, typer.Option("--scope", metavar="SCOPE", help="Only docs, messages, memory, artifacts or signals.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on stdout.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit with 4 when something was found.")]
MaxPoints = Annotated[int | None, typer.Option("--max-points", metavar="N", help="Delete at most N points.")]
MaxSeconds = Annotated[
    float | None, typer.Option("--max-seconds", metavar="S", help="End at the next batch boundary after S seconds.")
]
Batch = Annotated[int | None, typer.Option("--batch", metavar="N", help="Delete at most N points by one request.")]
Rate = Annotated[
    float | None, typer.Option("--points-per-second", metavar="N", help="Delete no faster than N points a second.")
]
SCOPES = ("docs", "messages", "memory", "artifacts", "signals")


def read_settings(file: Path | None) -> Settings:
    """The settings, with logs for a terminal: the command line tells its story by tables, not by events."""
    settings = load(file)
    secret = read_secret(settings.qdrant.api_key, settings.qdrant.api_key_file, "qdrant.api_key")
    logs.configure(LogSettings(format="console", level="error"), [secret])
    return settings


def override(settings: Settings, section: str, **values: Any) -> Settings:
    """The settings with values of one section replaced by what the command line gave (None: not given).

    Raises:
        SettingsError: naming the option whose value is out of range.
    """
    given = {key: value for key, value in values.items() if value is not None}
    if not given:
        return settings
    before = getattr(settings, section)
    try:
        after = type(before).model_validate({**dict(before), **given})
    except ValidationError as error:
        fault = error.errors(include_input=False)[0]
        option = str(fault["loc"][0]).replace("_", "-")
        raise SettingsError(f"--{option}: {fault['msg']}.") from None
    return settings.model_copy(update={section: after})


def limits(
    max_points: int | None, max_seconds: float | None, batch: int | None, points_per_second: float | None
) -> dict[str, Any]:
    """The options of every command that deletes, by the keys of its section."""
    return {
        "max_points": max_points,
        "max_seconds": max_seconds,
        "batch": batch,
        "points_per_second": points_per_second,
    }


def duration(text: str | None, option: str) -> timedelta | None:
    """A duration such as `7d`, `36h`, `P7D` or seconds, or None when not given.

    Raises:
        SettingsError: it is none of these.
    """
    if text is None:
        return None
    try:
        return TypeAdapter(Duration).validate_python(text)
    except ValidationError:
        raise SettingsError(
            f"{option}: '{text}' is no duration; write it as 7d, 36h, 90m, 30s or in ISO 8601 as P7D."
        ) from None


def selection(collection: str | None, tenant: str | None, scope: str | None) -> Selection:
    """What the run is about.

    Raises:
        SettingsError: a scope that does not exist would silently select nothing.
    """
    if scope is not None and scope not in SCOPES:
        raise SettingsError(f"--scope: '{scope}' is none of {', '.join(SCOPES)}.")
    for option, value in (("--collection", collection), ("--tenant", tenant)):
        if value is not None and not value.strip():
            raise SettingsError(f"{option}: it is empty; leave the option out to select all.")
    return Selection(collection, tenant, scope)
