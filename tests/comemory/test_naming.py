"""Collection names, made and taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comemory import CollectionName, InvalidNameError


@given(st.from_regex(r"[a-z][a-z0-9]{0,31}", fullmatch=True), st.integers(1, 65_536), st.integers(1, 999_999_999))
def test_a_name_is_the_sum_of_its_parts(kind: str, dim: int, version: int) -> None:
    name = CollectionName(kind, dim, version)
    assert CollectionName.parse(str(name), types=[kind]) == name


@pytest.mark.parametrize("name", ["cm_text_1024_v1", "cm_code_768_v1", "cm_mm_512_v12"])
def test_the_names_of_the_specification_are_names(name: str) -> None:
    assert str(CollectionName.parse(name)) == name


@pytest.mark.parametrize(
    "name",
    [
        "", "text_1024_v1", "cm_text_1024", "cm_text_01024_v1", "cm_text_1024_v0", "cm_text_0_v1", "cm_a_b_4_v1",
        "cm_text_1024_v1 ", "cm_text_1024_v1\n", "cm_Text_1024_v1", "cm_text_65537_v1", "cm_text_-1_v1",
        "cm_text_１_v1", None, 5,
    ],
)  # fmt: skip
def test_another_form_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidNameError, match="collection name"):
        CollectionName.parse(name)


def test_a_type_has_to_be_declared() -> None:
    with pytest.raises(InvalidNameError, match=r"'audio'; allowed are code, mm, text"):
        CollectionName.parse("cm_audio_256_v1")
    assert CollectionName.parse("cm_audio_256_v1", types={"audio"}).type == "audio"


def test_parts_out_of_range_are_refused() -> None:
    for parts in (
        ("Text", 4, 1),
        ("", 4, 1),
        ("text", 0, 1),
        ("text", 65_537, 1),
        ("text", 4, 0),
        ("text", True, 1),
    ):
        with pytest.raises(InvalidNameError, match="collection"):
            CollectionName(*parts)


def test_the_next_version() -> None:
    assert str(CollectionName("text", 4, 9).next_version()) == "cm_text_4_v10"
