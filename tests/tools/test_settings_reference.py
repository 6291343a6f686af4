"""The committed page is what the settings' model gives, and has a row for every key."""

from __future__ import annotations

import yaml

from ops.cli.settings import leaves
from ops.settings import Settings
from tools.settings_reference import EXAMPLE, FILE, reference


def test_the_committed_page_is_up_to_date() -> None:
    assert FILE.read_text() == reference(), "docs/settings.md is stale; run `make docs`"


def test_every_key_has_a_row_with_a_meaning() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    meaning = {row.split(" | ")[0].strip("| `"): row.rsplit(" | ", 1)[1].strip(" |") for row in rows}
    for path, _ in leaves(Settings()):
        assert meaning[path[-1]]


def test_the_example_is_accepted() -> None:
    values = yaml.safe_load(EXAMPLE.removeprefix("```yaml\n").removesuffix("```"))
    assert Settings(**values).ttl.max_points == 500_000
