"""Alert and runbook hold together: each alert has its page, each page its alert, and the commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from dashboards import alerts
from dashboards.settings import DEFAULT_RUNBOOKS
from ops.cli.app import app

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / DEFAULT_RUNBOOKS
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.stem != "README")


def test_each_alert_has_a_page_and_each_page_an_alert() -> None:
    assert {page.stem for page in PAGES} == set(alerts.names())


def test_the_list_names_them_all() -> None:
    listed = re.findall(r"^- \[(\w+)\]\((\w+)\.md\)$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert listed == [(name, name) for name, _ in listed]
    assert {name for name, _ in listed} == set(alerts.names())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_every_section_with_something_in_it(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}\n")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    assert parts[::2] == SECTIONS
    assert all(len(part.split()) >= 8 for part in parts[1::2])
    diagnosis = parts[5]
    assert re.search(r"^    \S", diagnosis, re.MULTILINE), "no command to diagnose with"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_and_options_exist(page: Path) -> None:
    group = get_command(app)
    for line in re.findall(r"^    comemory (.+)$", page.read_text(), re.MULTILINE):
        words = line.split("#")[0].split()
        command = group.commands[words[0]]  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            command = command.commands[words[1]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line
        assert words[0] != "plan" or "--declared" in words, "without a declaration it only says that there is none"
