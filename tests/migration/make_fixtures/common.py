"""What the scripts share: texts, vectors, and writing a collection to a file. Needs qdrant-client only."""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

SIZE = 8
TOPICS = ("batteries", "heat pumps", "invoices", "the tender", "onboarding", "backups", "allergens")
VERBS = (
    "were discussed",
    "need a second look",
    "are settled",
    "wait for the supplier",
    "changed again",
    "are due",
    "cost more",
)
PLACES = (
    "in Kyiv",
    "in the north hall",
    "at the clinic",
    "on the call",
    "in the annex",
    "by mail",
    "at noon",
    "today",
)


def texts(number: int = 56) -> list[str]:
    """So many texts, all different, some in another script."""
    made = [f"Note {i}: {TOPICS[i % 7]} {VERBS[i // 7 % 7]} {PLACES[i % 8]}." for i in range(number)]
    made[3] = "Нотатка: угода про батареї підписана."
    made[4] = 'Line one\nLine two\twith a tab and "quotes"'
    return made


def embed(text: str) -> list[float]:
    """A vector of the text's hash."""
    return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:SIZE]]


def place() -> tuple[str, Path]:
    """The endpoint and the file that the command line names."""
    return sys.argv[1], Path(sys.argv[2])


def dump(url: str, collection: str, file: Path, package: str) -> None:
    """Write a collection as its server returns it, then remove it."""
    params = _ask(url, f"/collections/{collection}")["config"]["params"]
    points: list[Any] = []
    offset: Any = None
    while True:
        body = {"limit": 500, "offset": offset, "with_payload": True, "with_vector": True}
        answer = _ask(url, f"/collections/{collection}/points/scroll", body)
        points += answer["points"]
        offset = answer.get("next_page_offset")
        if offset is None:
            break
    head = {"written_by": f"{package} {version(package)}", "params": params}
    lines = [json.dumps(line, ensure_ascii=False) for line in (head, *points)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    urlopen(Request(f"{url}/collections/{collection}", method="DELETE")).read()
    print(f"{file}: {len(points)} points")


def _ask(url: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data=data, headers={"content-type": "application/json"})) as answer:
        return json.load(answer)["result"]
