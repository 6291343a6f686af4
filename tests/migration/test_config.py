"""The file of rules: what it may say, and that a mistake in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.errors import SettingsError
from ops.migrate.config import read_migration

GOOD = """
source: {url: "http://old:6333", api_key_file: /run/key}
tenant: t_daarion
target: cm_text_8_v1
rules:
  - name: docs of an agent
    collections: (?P<agent>[a-z]+)_docs
    agent: agt_{agent}
    scope: docs
"""


def test_a_file_gives_rules_and_source_and_the_command_line_goes_over_it(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(GOOD)
    found = read_migration(file, tenant="t_other", zone=None)
    assert found.source is not None
    assert (found.source.url, found.rules.tenant, found.rules.target) == (
        "http://old:6333",
        "t_other",
        "cm_text_8_v1",
    )
    assert found.rules.rules[0].name == "docs of an agent"
    assert found.digest("x") != found.digest("y")
    assert found.digest("x") != read_migration(file).digest("x")


def test_without_a_file_the_built_in_rules_hold() -> None:
    assert read_migration(None, tenant="t_a").rules.of_collection("helion_docs")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: [{name: a, collections: '('}]", "rules.0.collections: is no regular expression"),
        ("rulez: []", "rulez"),
        ("source: {url: ftp://x}", "url"),
        ("source: {api_key_file: /run/key}", "source.url: is missing"),
        ("- a", "must hold keys and values"),
        ("a: [", "not usable YAML"),
        ("builtin: false", "has no rules"),
        ("origin: A B", "origin"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_migration(file)
    assert said in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Cannot read the rules"):
        read_migration(tmp_path / "none.yaml")
