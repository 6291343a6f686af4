"""The commands put together."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from ops.cli import (
    audit,
    census,
    collections,
    daemon,
    dashboards,
    dedup,
    doctor,
    migrate,
    plan,
    rollover,
    settings,
    tenant,
    ttl,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Keep the memory collections of agent teams in order: retention, duplicates, audit, numbers.",
)


@app.callback(invoke_without_command=True)
def root(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Take the options that belong to no command."""
    if show_version:
        typer.echo(f"comemory {installed_version()}")
        raise typer.Exit


def installed_version() -> str:
    """The version of the installed package, or `unknown` in a checkout that is not installed."""
    try:
        return version("comemory")
    except PackageNotFoundError:
        return "unknown"


app.command()(daemon.daemon)
app.command()(ttl.ttl)
app.command()(dedup.dedup)
app.command()(audit.audit)
app.command()(census.census)
app.command()(collections.collections)
app.command()(doctor.doctor)
app.command()(plan.plan)
app.add_typer(migrate.app, name="migrate")
app.add_typer(rollover.app, name="rollover")
app.add_typer(tenant.app, name="tenant")
app.add_typer(dashboards.app, name="dashboards")
app.add_typer(settings.app, name="settings")
