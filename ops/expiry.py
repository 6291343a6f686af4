"""When a certificate or a token ends, read without a cryptography library: nothing is verified, only looked at."""

from __future__ import annotations

import base64
import binascii
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

_SEQUENCE, _UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x30, 0x17, 0x18, 0xA0


def certificate_end(der: bytes) -> datetime:
    """When an X.509 certificate in DER stops being valid (RFC 5280, 4.1): `notAfter` of its validity.

    Raises:
        ValueError: it is no certificate.
    """
    try:
        signed = next(_values(der, _SEQUENCE))
        fields = list(_items(next(_values(signed, _SEQUENCE))))
        if fields[0][0] == _VERSION:
            fields.pop(0)
        _serial, _algorithm, _issuer, (_, validity), *_ = fields
        _begin, (kind, end) = _items(validity)
        return _time(kind, end.decode("ascii"))
    except (ValueError, IndexError, StopIteration, UnicodeDecodeError):
        raise ValueError("it is no X.509 certificate") from None


def first_end(pem: str) -> datetime:
    """When the first certificate to end of those in a PEM file does.

    Raises:
        ValueError: there is none in it, or one is none.
    """
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    blocks = [f"{begin}{part.partition(end)[0]}{end}" for part in pem.split(begin)[1:]]
    if not blocks:
        raise ValueError("it holds no certificate in PEM")
    try:
        return min(certificate_end(ssl.PEM_cert_to_DER_cert(block)) for block in blocks)
    except binascii.Error:
        raise ValueError("it holds a certificate that is not PEM") from None


def token_end(secret: str) -> datetime | None:
    """When a JSON Web Token ends (its claim `exp`); None for one that never does, and for what is no such token."""
    parts = secret.split(".")
    if len(parts) != 3:  # header, claims, signature
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        return None


def _items(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements of a DER sequence: tag and content of each."""
    place = 0
    while place < len(content):
        tag, length, place = content[place], content[place + 1], place + 2
        if length & 0x80:
            size = length & 0x7F
            length, place = int.from_bytes(content[place : place + size]), place + size
        if place + length > len(content):
            raise ValueError
        yield tag, content[place : place + length]
        place += length


def _values(content: bytes, tag: int) -> Iterator[bytes]:
    return (value for found, value in _items(content) if found == tag)


def _time(kind: int, text: str) -> datetime:
    """RFC 5280, 4.1.2.5: two digits of the year mean 1950 to 2049, which is not Python's own reading of them."""
    if kind == _UTC_TIME:
        text = f"{'19' if text >= '5' else '20'}{text}"
    elif kind != _GENERALIZED_TIME:
        raise ValueError
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
