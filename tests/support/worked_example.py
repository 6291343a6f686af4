"""A page's worked example: its console blocks are run, and have to print what the page says.

With `WRITE_DOCS` set the page is written anew instead.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run(command: str, folder: Path, url: str) -> str:
    """What a command of the page prints, its errors last."""
    line, _, code = command.partition("; echo ")
    words = shlex.split(line)
    program = [sys.executable, "-m", "ops"] if words[0] == "comemory" else [sys.executable]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COMEMORY_", "QDRANT_"))}
    environment |= {"COMEMORY_QDRANT__URL": url, "QDRANT_URL": url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*program, *words[1:]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    said = "".join(f"{one.rstrip()}\n" for one in (done.stdout + done.stderr).splitlines())
    return said + (f"{done.returncode}\n" if code else "")


def demand(page: Path, varies: re.Pattern[str], answer: Callable[[str], str]) -> None:
    """That each command of the page's console blocks prints what stands below it.

    Args:
        page: the page.
        varies: what is another with every run.
        answer: what a command prints.
    """
    text = made = page.read_text(encoding="utf-8")
    for block in CONSOLE.finditer(text):
        written = ""
        for command in re.findall(r"^\$ (.*)$", block[1], re.MULTILINE):
            written += f"$ {command}\n{answer(command)}"
        made = made.replace(block[0], f"```console\n{written}```")
    if os.environ.get("WRITE_DOCS"):
        page.write_text(made, encoding="utf-8")
        return
    assert varies.sub("…", made) == varies.sub("…", text)
