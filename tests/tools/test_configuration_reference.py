"""The committed page is what the typed model gives, and names every key of it."""

from __future__ import annotations

from comemory.declaration import CollectionSettings
from infra.settings import EndpointSettings, StackSettings
from tools.configuration_reference import FILE, reference


def test_the_committed_page_is_up_to_date() -> None:
    assert FILE.read_text() == reference(), "docs/configuration.md is stale; run `make docs`"


def test_every_key_has_a_row_with_a_meaning() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    for model in (StackSettings, EndpointSettings, CollectionSettings):
        for name, field in model.model_fields.items():
            assert field.description
            assert any(row.startswith(f"| `{name}` |") and field.description in row for row in rows), name
