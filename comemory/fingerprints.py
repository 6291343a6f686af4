"""Fingerprints: the SHA-256 of a chunk's content, written `sha256:<64 hexadecimal digits>`."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

PREFIX: Final = "sha256:"
_HEX = re.compile(r"[0-9a-f]{64}")


def fingerprint(content: str | bytes) -> str:
    """The fingerprint of `content`.

    Text is brought to Unicode's form NFC and hashed as UTF-8, so that the same words typed on two systems have the
    same fingerprint; nothing else is changed (spaces, line ends and case count). Bytes are hashed as they are.
    """
    data = unicodedata.normalize("NFC", content).encode() if isinstance(content, str) else content
    return PREFIX + hashlib.sha256(data).hexdigest()


def normalise_fingerprint(value: object) -> str | None:
    """`value` in the one form in which fingerprints are compared, or None where it is not a whole SHA-256.

    The prefix may be missing and the case may be any. A shortened hash gives None: two that agree in what is
    left of them may well differ in the rest.
    """
    if not isinstance(value, str):
        return None
    digits = value.lower().removeprefix(PREFIX)
    return PREFIX + digits if _HEX.fullmatch(digits) else None
