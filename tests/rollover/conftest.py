"""Two collections for a module's tests, emptied before each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from tests.rollover.sides import Sides, two_sides


@pytest.fixture(scope="module")
def shared_sides(
    qdrant: QdrantClient, qdrant_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    with two_sides(qdrant, qdrant_url, tmp_path_factory.mktemp("rollover")) as made:
        yield made


@pytest.fixture
def sides(shared_sides: Sides, tmp_path: Path) -> Sides:
    shared_sides.clear()
    return replace(shared_sides, folder=tmp_path / "state", told=[])
