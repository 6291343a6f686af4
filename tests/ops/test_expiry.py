"""When certificates and tokens end: against certificates of a real library, in files and on a real server."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from ops import metrics
from ops.collectors.base import Target
from ops.collectors.expiry import ExpiryCollector
from ops.errors import OpsError
from ops.expiry import certificate_end, first_end, token_end
from ops.session import Session
from ops.settings import Settings

KEY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def certificate(end: datetime, serial: int = 1) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "memory.example")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(serial)
        .not_valid_before(datetime(1951, 1, 1, tzinfo=UTC))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(KEY, hashes.SHA256())
    )


def pem(*ends: datetime) -> str:
    return "".join(certificate(end).public_bytes(serialization.Encoding.PEM).decode() for end in ends)


@given(
    st.datetimes(datetime(1952, 1, 1), datetime(2120, 1, 1)).map(lambda t: t.replace(microsecond=0, tzinfo=UTC)),
    st.integers(1, 2**150),
)
def test_the_end_is_what_the_library_wrote(end: datetime, serial: int) -> None:
    made = certificate(end, serial)
    assert made.not_valid_after_utc == end
    assert certificate_end(made.public_bytes(serialization.Encoding.DER)) == end


@given(st.binary(max_size=200))
def test_what_is_no_certificate_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="no X"):
        certificate_end(content)


def test_a_truncated_certificate_is_refused() -> None:
    der = certificate(NOW).public_bytes(serialization.Encoding.DER)
    for length in range(0, len(der), 7):
        with pytest.raises(ValueError, match="no X"):
            certificate_end(der[:length])


def test_of_several_the_first_to_end_counts() -> None:
    assert first_end("# chain\n" + pem(NOW + timedelta(days=9), NOW, NOW + timedelta(days=1))) == NOW
    with pytest.raises(ValueError, match="no certificate"):
        first_end("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n")
    with pytest.raises(ValueError, match="not PEM"):
        first_end("-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n")


def test_the_end_of_a_token_is_its_claim() -> None:
    secret = "0123456789abcdef0123456789abcdef"
    assert token_end(jwt.encode({"access": "r", "exp": NOW}, secret)) == NOW
    assert token_end(jwt.encode({"access": "r"}, secret)) is None


def claims(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "payload", ["", "b", claims([1]), claims({"exp": "soon"}), claims({"exp": 1e30}), claims({"exp": None})]
)
def test_what_is_no_token_has_no_end(payload: str) -> None:
    assert token_end(f"a.{payload}.c") is None
    assert token_end(payload) is None


@contextmanager
def https(folder: Path, end: datetime) -> Iterator[str]:
    (folder / "server.pem").write_text(pem(end))
    key = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.key").write_bytes(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def collect(**sections: Any) -> dict[tuple[str, str], float]:
    settings = Settings(**sections)
    with Session(settings.qdrant.url, retry_for=0, timeout=1) as session:
        samples = ExpiryCollector().collect(Target(session, settings, "", NOW))
    return {(s.metric.name, s.labels[0]): s.value for s in samples}


def test_every_certificate_and_the_token_are_shown(tmp_path: Path) -> None:
    own, server, trusted, token = (NOW + timedelta(days=n) for n in (1, 2, 3, 4))
    (tmp_path / "own.pem").write_text(pem(own))
    (tmp_path / "ca.pem").write_text(pem(trusted))
    (tmp_path / "key").write_text(jwt.encode({"access": "m", "exp": token}, "0123456789abcdef0123456789abcdef"))
    with https(tmp_path, server) as url:
        found = collect(
            qdrant={"url": url, "api_key_file": tmp_path / "key", "ca_file": tmp_path / "ca.pem"},
            http={"tls_certificate": tmp_path / "own.pem", "tls_key": tmp_path / "server.key"},
        )
    name = metrics.CERTIFICATE_EXPIRY.name
    assert found == {
        (name, "http"): own.timestamp(),
        (name, "qdrant_ca"): trusted.timestamp(),
        (name, "qdrant"): server.timestamp(),
        (metrics.TOKEN_EXPIRY.name, "qdrant"): token.timestamp(),
    }


def test_a_plain_server_and_key_have_nothing_that_ends() -> None:
    assert collect(qdrant={"url": "http://127.0.0.1:1", "api_key": "plain"}) == {}


def test_what_cannot_be_read_is_said_by_name(tmp_path: Path) -> None:
    with https(tmp_path, NOW) as url:
        pass  # gone again
    for sections, said in (
        ({"qdrant": {"url": url}}, "Cannot see when the certificate of Qdrant"),
        ({"qdrant": {"ca_file": tmp_path / "server.key"}}, "Cannot tell when the certificate"),
    ):
        settings = Settings(**sections)
        with pytest.raises(OpsError, match=said), Session("http://127.0.0.1:1", retry_for=0, timeout=1) as session:
            ExpiryCollector().collect(Target(session, settings, "", NOW))
