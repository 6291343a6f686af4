"""What the steps take from the stack's file, and what they say when it is no YAML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.daemon import settings_of
from tools.errors import StepError
from tools.server import stack_configuration
from tools.workplace import Workplace


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    for name in ("COMEMORY_COLLECTIONS__DECLARED", "COMEMORY_COLLECTIONS__TYPES"):
        monkeypatch.delenv(name, raising=False)
    return Workplace(tmp_path)


def test_a_file_that_is_no_yaml_is_told_with_the_place_and_without_its_content(place: Workplace) -> None:
    place.configuration.write_text("config:\n  comemory:collections:\n    - name: hidden\n     dimension: 256\n")
    with pytest.raises(StepError) as told:
        stack_configuration(place)
    assert str(told.value).startswith("Pulumi.local.yaml is not YAML: ")
    assert "line 4, column 6" in str(told.value)
    assert "hidden" not in str(told.value)


@pytest.mark.parametrize("text", ["", "config:\n", "- 1\n", "config: [1]\n"])
def test_a_file_that_says_nothing_declares_nothing(place: Workplace, text: str) -> None:
    assert stack_configuration(place) == {}
    place.configuration.write_text(text)
    assert stack_configuration(place) == {}
    assert not {key for key in settings_of(place, "http://q") if key.startswith("COMEMORY_COLLECTIONS__")}


def test_the_jobs_look_after_the_types_that_the_stack_declares(place: Workplace) -> None:
    place.configuration.write_text(
        "config:\n  types: [audio]\n  comemory:collections:\n    - name: cm_audio_4_v1\n"
    )
    settings = settings_of(place, "http://q")
    assert json.loads(settings["COMEMORY_COLLECTIONS__TYPES"]) == ["code", "mm", "text", "audio"]
    assert settings["COMEMORY_COLLECTIONS__DECLARED"] == str(place.configuration)
