"""The recorded answers of a real server, request by request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.replay import DIFFERENCES, recording, replay

pytestmark = pytest.mark.embedded_only("compares the endpoint with a server's recorded answers")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "embedded.md"


@pytest.fixture(scope="module")
def differences(start_endpoint: Callable[..., Any]) -> dict[str, list[str]]:
    keyed = start_endpoint(api_key="admin", read_only_api_key="reader")
    return replay(start_endpoint().url, keyed.url)


@pytest.fixture(scope="module")
def listed() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(DIFFERENCES.read_text())
    return found


def test_every_difference_is_listed_and_every_listed_one_is_there(differences, listed):
    found = {name: places for name, places in differences.items() if places}
    assert found == {name: entry["places"] for name, entry in listed.items()}


def test_every_listed_difference_has_its_reason(listed):
    assert all(len(entry["reason"]) > 20 for entry in listed.values())


def test_at_least_95_percent_agree(differences):
    assert len(differences) == len(recording()) == 236
    assert sum(not places for places in differences.values()) >= 0.95 * 236


def test_the_page_states_the_figure_and_each_difference(listed):
    text = PAGE.read_text()
    assert f"**{236 - len(listed)} of 236**" in text
    rows = re.findall(r"^\| `([^`]+)` \| `[^|]+` \| [^|]+ \|$", text, re.MULTILINE)
    assert rows == list(listed)
