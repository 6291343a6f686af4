"""Fingerprints, made and normalised."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comemory import fingerprint, normalise_fingerprint


def test_the_hash_is_that_of_the_bytes() -> None:
    assert fingerprint("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert fingerprint(b"abc") == fingerprint("abc")


def test_two_spellings_of_one_text_are_one_content_and_two_of_bytes_are_two() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert fingerprint(composed) == fingerprint(decomposed)
    assert fingerprint(composed.encode()) != fingerprint(decomposed.encode())
    assert (
        len({fingerprint("a"), fingerprint("A"), fingerprint("a "), fingerprint("a\n"), fingerprint("a\r\n")}) == 5
    )


@given(st.binary())
def test_prefix_and_case_do_not_matter(content: bytes) -> None:
    digits = hashlib.sha256(content).hexdigest()
    for spelling in (digits, digits.upper(), f"sha256:{digits}", f"SHA256:{digits.upper()}"):
        assert normalise_fingerprint(spelling) == fingerprint(content)


@pytest.mark.parametrize(
    "value", ["", "sha256:", "sha256:a1b2c3d4e5f6...", "g" * 64, "a" * 63, "a" * 65, "md5:" + "a" * 64,
     "a" * 64 + "\n", None, 5, []]
)  # fmt: skip
def test_what_is_not_whole_is_none(value: object) -> None:
    assert normalise_fingerprint(value) is None
