"""Questions whose answers are known, from `data/questions.toml`: the demonstration asks some, the tests ask all."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from sample.people import DATA


@dataclass(frozen=True)
class Question:
    """Who asks what, the key of the passage that answers, and those who must never see that passage.

    `demo` says what the answers of the asker and of the first in `hidden_from` show, where they show something.
    """

    ask: str
    asker: str
    finds: str
    hidden_from: tuple[str, ...]
    demo: str | None


def questions() -> list[Question]:
    """All of them, in the order of the file."""
    with (DATA / "questions.toml").open("rb") as file:
        entries = tomllib.load(file)["question"]
    return [
        Question(entry["ask"], entry["as"], entry["finds"], tuple(entry.get("hidden_from", [])), entry.get("demo"))
        for entry in entries
    ]
