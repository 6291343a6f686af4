"""A figure with its limit, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("what", "measured", "limit", "")


@dataclass(frozen=True)
class Row:
    """One figure. It is met when `measured` is at most `limit`; both are in `unit` ("s", "µs", "x")."""

    what: str
    measured: float
    limit: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether the figure keeps its limit; what could not be measured (not a number) does not."""
        return self.measured <= self.limit

    def cells(self) -> tuple[str, str, str, str]:
        """The row as it is printed."""
        verdict = "met" if self.met else "SHORT"
        return self.what, f"{self.measured:.3g} {self.unit}", f"{self.limit:g} {self.unit}", verdict


def table(rows: Sequence[Row]) -> str:
    """The rows under a head, in columns."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in (1, 2) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
