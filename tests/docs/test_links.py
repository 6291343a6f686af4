"""What the README and the pages of docs/ refer to has to exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# In code (a span or an indented or fenced block); the same two words in a sentence are English.
MAKE = re.compile(r"(?:`|^ {4,}|^)make ([a-z][a-z-]*)\b(?!=)", re.MULTILINE)
TARGET = re.compile(r"^([a-z][a-z-]*):(?!=)", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The fragments that a page's headings can be linked by, as code hosts make them."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if not goal.exists() or (fragment and fragment not in anchors(goal)):
            broken.append(target)
    assert not broken, f"{page.name} links to what is not there: {', '.join(broken)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    unknown = set(MAKE.findall(page.read_text(encoding="utf-8"))) - targets
    assert not unknown, f"{page.name} names targets that the Makefile does not have: {', '.join(sorted(unknown))}"


def test_every_page_of_docs_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or not page.is_file():
            continue
        seen.add(page)
        links = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        todo += [(page.parent / link.partition("#")[0]).resolve() for link in links if ".md" in link]
    assert set(PAGES) <= seen
