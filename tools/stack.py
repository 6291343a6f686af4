"""The Pulumi stack of a checkout, driven through the Automation API with the program inline.

Inline, because the built CLI comes without the language plugin; where the plugin is there, `pulumi up` by hand runs
the same function (`infra.program.program`).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation.events import EngineEvent, OpType

from infra.program import program
from tools.errors import StepError
from tools.locks import forget_dead
from tools.workplace import STACK, Workplace

PROJECT = "comemory"
PROGRESS_SECONDS = 2.0
_LAST_WORDS = frozenset({
    "update failed", "preview failed", "resource registration failed",
    "Resource monitor has terminated, shutting down",
})  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What an update did: how many resources per operation (`create`, `same`, …), and the stack's outputs."""

    operations: dict[str, int]
    outputs: dict[str, Any]

    @property
    def changed(self) -> int:
        """Number of resources that were touched."""
        return sum(count for name, count in self.operations.items() if name != "same")


class LocalStack:
    """The stack `local` of one checkout."""

    def __init__(self, workplace: Workplace, cli: Path) -> None:
        self._workplace = workplace
        # The command is looked for on PATH; plugins beside the CLI are found there as well.
        os.environ["PATH"] = f"{cli.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        # It goes before the passphrase file, and may belong to another project of this shell.
        os.environ.pop("PULUMI_CONFIG_PASSPHRASE", None)
        os.environ.update(workplace.pulumi_environment())
        if forget_dead(workplace.state):
            print("    the last run was killed: its lock on the stack is taken away", flush=True)
        try:
            self._stack = automation.create_or_select_stack(
                STACK,
                project_name=PROJECT,
                program=program,
                opts=automation.LocalWorkspaceOptions(work_dir=str(workplace.root)),
            )
        except automation.CommandError as error:
            raise StepError(self._reason(error, [])) from error

    def outputs(self) -> dict[str, Any]:
        """The outputs of the last update; empty before the first."""
        return {name: output.value for name, output in self._stack.outputs().items()}

    def up(self) -> Outcome:
        """Create, change and mend what the program declares. Raises StepError with the reasons."""
        watch = _Watch("pulumi up")
        log: list[str] = []
        try:
            # A refresh first: the laptop's data may be gone, or QDRANT_URL may name another server than last time.
            # It runs the program: without that the engine would ask the server of last time, with today's key.
            result = self._stack.up(
                refresh=True, run_program=True, color="never", on_output=log.append, on_event=watch.see,
                show_secrets=False,
            )  # fmt: skip
        except automation.CommandError as error:
            raise StepError(self._reason(error, watch.errors)) from error
        finally:
            self._keep("up", log)
        changes = result.summary.resource_changes or {}
        return Outcome(
            {str(getattr(name, "value", name)): count for name, count in changes.items()},
            {name: output.value for name, output in result.outputs.items()},
        )

    def preview(self) -> None:
        """Print what an update would do."""
        watch = _Watch(None)
        try:
            self._stack.preview(
                refresh=True, run_program=True, diff=True, color="never", on_output=print, on_event=watch.see
            )
        except automation.CommandError as error:
            raise StepError(self._reason(error, watch.errors)) from error

    def destroy(self) -> None:
        """Take everything away that the policies allow. Raises StepError with the reasons."""
        watch = _Watch("pulumi destroy")
        log: list[str] = []
        try:
            self._stack.destroy(color="never", on_output=log.append, on_event=watch.see, show_secrets=False)
        except automation.CommandError as error:
            raise StepError(self._reason(error, watch.errors)) from error
        finally:
            self._keep("destroy", log)

    def _keep(self, name: str, lines: list[str]) -> None:
        (self._workplace.local / f"pulumi-{name}.log").write_text("\n".join([*lines, ""]))

    def _reason(self, error: automation.CommandError, diagnostics: list[str]) -> str:
        text = str(error)
        if isinstance(error, automation.ConcurrentUpdateError) or "is currently locked" in text:
            return (
                "another update of this stack runs, or one was broken off; when none runs: "
                f". {self._workplace.shown(self._workplace.local)}/env && pulumi cancel --stack {STACK}"
            )
        if "incorrect passphrase" in text:
            return (
                f"the passphrase in {self._workplace.passphrase} is not the one that "
                f"{self._workplace.configuration.name} was written with; put the old one back, or delete both files"
            )
        if diagnostics:
            return "\n".join(dict.fromkeys(diagnostics))
        errors = [line.strip() for line in text.splitlines() if "error:" in line]
        return "\n".join(dict.fromkeys(errors)) or text


class _Watch:
    """Follows the engine's events: counts the resources that are done, and keeps what went wrong."""

    def __init__(self, title: str | None) -> None:
        self.errors: list[str] = []
        self._title = title
        self._done: Counter[str] = Counter()
        self._told = time.monotonic()

    def see(self, event: EngineEvent) -> None:
        """Take one event."""
        if event.diagnostic_event and event.diagnostic_event.severity == "error":
            text = event.diagnostic_event.message.strip()
            # The engine's own last words repeat that something failed; the reasons stand above them.
            if text and text not in _LAST_WORDS and not text.startswith("an unhandled error occurred:"):
                self.errors.append(text)
        if event.res_outputs_event and self._title:
            operation = event.res_outputs_event.metadata.op
            self._done[str(getattr(operation, "value", operation))] += 1
            if time.monotonic() - self._told > PROGRESS_SECONDS:
                self._told = time.monotonic()
                parts = ", ".join(
                    f"{count} {name}" for name, count in self._done.items() if name != OpType.REFRESH.value
                )
                print(f"    {self._title}: {parts or 'reading what is there'}", flush=True)
