"""The ops daemon in the foreground, against the Qdrant that the other steps use."""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

from comemory.naming import DEFAULT_TYPES
from infra.settings import NAMESPACE
from tools.server import choose, stack_configuration
from tools.workplace import Workplace


def settings_of(place: Workplace, url: str) -> dict[str, str]:
    """The environment that points the daemon and its commands at `url` and at the stack's declared collections."""
    environment = {"COMEMORY_LOG__FORMAT": "console" if sys.stderr.isatty() else "json"}
    stack = stack_configuration(place)
    if stack.get(f"{NAMESPACE}:collections"):
        environment["COMEMORY_COLLECTIONS__DECLARED"] = str(place.configuration)
    if isinstance(types := stack.get(f"{NAMESPACE}:types"), list):
        environment["COMEMORY_COLLECTIONS__TYPES"] = json.dumps([*sorted(DEFAULT_TYPES), *types])
    environment |= os.environ
    environment["COMEMORY_QDRANT__URL"] = url
    if key := os.environ.get("QDRANT_API_KEY"):
        environment["COMEMORY_QDRANT__API_KEY"] = key
    return environment


def run(place: Workplace) -> NoReturn:
    """Become the daemon: it takes this process's place, and so its signals and its exit code.

    What the environment already sets for it stays; drift is measured against the stack's own configuration.
    """
    server = choose(place)
    print(f"==> daemon for {server.url}; Ctrl-C ends it after the batch under way", flush=True)
    environment = settings_of(place, server.url)
    os.chdir(place.root)
    os.execve(sys.executable, [sys.executable, "-m", "ops", "daemon"], environment)  # noqa: S606 (no shell)
