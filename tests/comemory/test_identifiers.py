"""Identifiers, made and parsed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comemory import (
    Identifier,
    InvalidIdentifierError,
    Kind,
    make_identifier,
    new_artifact_id,
    new_chunk_id,
    new_document_id,
    new_message_id,
    parse_identifier,
)
from comemory.identifiers import SLUG, new_identifier

SLUGS = st.from_regex(SLUG, fullmatch=True).filter(lambda slug: len(slug) <= 64)


@given(st.sampled_from([kind for kind in Kind if not kind.is_ulid]), SLUGS)
def test_what_is_made_of_a_slug_parses_back(kind: Kind, slug: str) -> None:
    assert parse_identifier(make_identifier(kind, slug)) == Identifier(kind, slug)


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        (new_document_id, Kind.DOCUMENT),
        (new_message_id, Kind.MESSAGE),
        (new_artifact_id, Kind.ARTIFACT),
        (new_chunk_id, Kind.CHUNK),
    ],
)
def test_fresh_ids_carry_their_time_and_differ(new, kind: Kind) -> None:
    at = datetime(2026, 1, 26, 12, tzinfo=UTC)
    made = parse_identifier(new(at), kind)
    assert made.created_at == at
    assert new(at) != new(at)
    assert new() > new(at)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("doc_01HQ8K9X2NPQR3FGJKLM5678", Kind.DOCUMENT),
        ("msg_01HQ8K9X4NPQR3FGJKLM3456", Kind.MESSAGE),
        ("chk_01HQ8K9X5MPQR3FGJKLM7890", Kind.CHUNK),
    ],
)
def test_the_specifications_shortened_ulids_pass_only_leniently(value: str, kind: Kind) -> None:
    with pytest.raises(InvalidIdentifierError, match="does not end in a ULID"):
        parse_identifier(value, kind)
    lenient = parse_identifier(value, kind, lenient=True)
    assert str(lenient) == value
    assert lenient.ulid is None
    assert lenient.created_at is None


@pytest.mark.parametrize(
    "value",
    [
        "", "t", "t_", "_a", "x_a", "T_a", "t_A", "t_a b", "t__a", "t_a_", "t_a\n", "t_é", "t_" + "a" * 65, "doc_",
        "doc_81HQ8K9X2N0PQR3FGJKM567890", "doc_01hq8k9x2n0pqr3fgjkm567890", "doc_01HQ8K9X2N0PQR3FGJKM56789",
        "doc_!",
        "doc_01HQ8K9X2N0PQR3FGJKM567890\n", None, 5, ["t_a"],
    ],
)  # fmt: skip
def test_what_is_no_identifier_is_refused(value: str) -> None:
    with pytest.raises(InvalidIdentifierError, match="identifier"):
        parse_identifier(value)


def test_another_kind_is_refused() -> None:
    with pytest.raises(InvalidIdentifierError, match="'team_core' does not begin with t_"):
        parse_identifier("team_core", Kind.TENANT)
    with pytest.raises(InvalidIdentifierError, match="named by a ULID"):
        make_identifier(Kind.DOCUMENT, "a")
    with pytest.raises(InvalidIdentifierError, match="named by a slug"):
        new_identifier(Kind.TENANT)
