"""`make bench`: run every module here that has `rows()`, print a row for each figure, fail when one is short.

Names of modules as arguments choose among them: `python -m benchmarks domain`.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import sys
import time
from collections.abc import Sequence

import benchmarks
from benchmarks.report import Row, table


def main(chosen: Sequence[str]) -> int:
    """Measure, print, and return 1 when a figure is short, 2 when a name is unknown."""
    names = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
    if unknown := sorted(set(chosen) - set(names)):
        print(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    gc.freeze()  # as the command `comemory` does
    rows: list[Row] = []
    for name in chosen or names:
        measure = getattr(importlib.import_module(f"benchmarks.{name}"), "rows", None)
        if measure is None:
            continue
        print(f"==> {name}", file=sys.stderr, flush=True)
        started = time.monotonic()
        rows += measure()
        print(f"    took {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    short = sum(not row.met for row in rows)
    if short:
        print(f"{short} of {len(rows)} figures are short of their limit", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
