"""Options that commands share are options of each, with their defaults, and stand before its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ops.cli.sharing import takes

Size = Annotated[int, typer.Option("--size", min=1, help="How many.")]


@dataclass(frozen=True, kw_only=True)
class Common:
    """Two options."""

    size: Size = 3
    name: Annotated[str, typer.Option("--name")] = "a"


def app() -> typer.Typer:
    made = typer.Typer(pretty_exceptions_enable=False)

    @made.command()
    @takes(Common)
    def one(common: Common, *, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
        """Say it."""
        typer.echo(f"{common.name * common.size}{'!' if loud else ''}")

    @made.command()
    @takes(Common)
    def two(common: Common) -> None:
        """Say less."""
        typer.echo(f"{common.name}{common.size}")

    return made


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one"], "aaa"),
        (["one", "--size", "2", "--name", "b", "--loud"], "bb!"),
        (["two", "--size", "5"], "a5"),
    ],
)
def test_both_commands_take_the_shared_options_and_the_first_its_own(arguments: list[str], said: str) -> None:
    assert CliRunner().invoke(app(), arguments).output.strip() == said


def test_limits_of_a_shared_option_hold_and_another_commands_option_is_refused() -> None:
    assert CliRunner().invoke(app(), ["two", "--size", "0"]).exit_code == 2
    assert CliRunner().invoke(app(), ["two", "--loud"]).exit_code == 2
    shown = CliRunner().invoke(app(), ["one", "--help"]).output
    assert shown.index("--size") < shown.index("--loud") and "Say it." in shown
