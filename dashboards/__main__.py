"""`python -m dashboards build`: write the generated files; with `--check`, only say whether they are stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dashboards.build import GENERATED, stale, texts, write
from dashboards.settings import DEFAULT_RUNBOOKS, DashboardSettings


def main() -> int:
    """Read the arguments, and do it. Exit code 1: something is stale."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="write dashboards and rules")
    build.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a file is stale")
    build.add_argument("--out", type=Path, default=GENERATED, metavar="FOLDER", help="where; default: %(default)s")
    build.add_argument("--qdrant-prefix", default="", metavar="TEXT", help="service.metrics_prefix of Qdrant")
    build.add_argument(
        "--qdrant-jobs", default=DashboardSettings().qdrant_jobs, metavar="REGEX", help="scrape jobs of Qdrant"
    )
    build.add_argument(
        "--runbooks", default=DEFAULT_RUNBOOKS, metavar="URL", help="address of docs/runbooks where people read it"
    )
    build.add_argument(
        "--qdrant-memory-bytes", type=int, metavar="N", help="memory of each Qdrant where nothing exports its limit"
    )
    given = parser.parse_args()
    try:
        settings = DashboardSettings(
            given.qdrant_prefix, given.qdrant_jobs, given.runbooks, given.qdrant_memory_bytes
        )
    except ValueError as error:
        build.error(str(error))
    made = texts(settings)
    if given.check:
        old = stale(given.out, made)
        for name in old:
            sys.stderr.write(f"{given.out / name} is not what dashboards/ makes now; run: make dashboards\n")
        return 1 if old else 0
    for path in write(given.out, made):
        sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
