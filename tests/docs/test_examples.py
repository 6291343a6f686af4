"""The Python examples of the pages in `docs/` are run, page by page, each block after the one before it.

A block of `>>>` lines is a doctest: what it shows is what it prints. Any other block is executed. `client` is a
`QdrantClient` and `collection` the name of a collection that is there (vector `dense`, four numbers). The README
has a test of its own, because its example needs the sample.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [page for page in sorted(DOCS.glob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))]


def test_there_are_pages_with_examples() -> None:
    assert DOCS / "specification.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_do_what_it_says(page: Path, qdrant: QdrantClient, collection_name: str) -> None:
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"client": qdrant, "collection": collection_name, "__name__": page.stem}
    if "client." in text:
        dense = models.VectorParams(size=4, distance=models.Distance.COSINE)
        qdrant.create_collection(collection_name, {"dense": dense})
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        if block[1].startswith(">>> "):
            told: list[str] = []
            test = doctest.DocTestParser().get_doctest(block[1], names, page.name, str(page), line)
            runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
            runner.run(test, out=told.append, clear_globs=False)
            names.update(test.globs)
            assert not told, "".join(told)
        else:
            exec(compile("\n" * line + block[1], str(page), "exec"), names)
