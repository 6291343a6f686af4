"""docs/audit.md names every reason that can be counted and every kind of drift, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from comemory.audit import countable_reasons
from ops.drift import COLLECTION_KINDS, LAYOUT_KINDS

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "audit.md").read_text(encoding="utf-8")


def section(title: str) -> dict[str, str]:
    """The rows of the table in a section: first cell, without its backquotes, to the rest of the line."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))


def test_the_kinds_of_drift_are_those_of_the_code() -> None:
    assert section("Drift") == {**COLLECTION_KINDS, **LAYOUT_KINDS}


def test_the_reasons_are_those_of_the_code() -> None:
    fields = {
        what: set(re.findall(r"`([a-z_.]+)`", rest.rpartition(" | ")[2]))
        for what, rest in section("Reasons").items()
    }
    fields["null"] = fields["missing"]  # there it says "the same", and for the wrong type what is left out
    fields["wrong_type"] = (fields["wrong_type"] | fields["missing"]) - {"created_at"}
    assert {f"{field}.{what}" for what, named in fields.items() for field in named} == countable_reasons()
