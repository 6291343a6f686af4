"""Options that several commands share, written once: a dataclass, handed to each command as one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def takes(options: type[T]) -> Callable[[Callable[Concatenate[T, P], None]], Callable[..., None]]:
    """Let a command take the fields of `options` as options of its own; its first parameter gets them as a value.

    Example:
        @app.command()
        @takes(Common)
        def plan(common: Common, *, as_json: AsJson = False) -> None: ...
    """
    shared = list(inspect.signature(options, eval_str=True).parameters.values())

    def decorate(command: Callable[Concatenate[T, P], None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

        @functools.wraps(command)
        def call(**given: Any) -> None:
            value = options(**{one.name: given.pop(one.name) for one in shared})
            command(value, **given)  # type: ignore[call-arg]  # typer gives what the signature below asks for

        made: Any = call
        made.__signature__ = inspect.Signature([*shared, *own])
        made.__annotations__ = {one.name: one.annotation for one in (*shared, *own)}
        return call

    return decorate
