"""The files that the settings name: secrets, certificates and keys. Each fault names the setting and the file."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from ops.declared import read_declared
from ops.errors import SettingsError
from ops.settings import Settings


def check_files(settings: Settings) -> None:
    """Open every file that has to be there before anything runs.

    Raises:
        SettingsError: a line for each that is missing, cannot be read, or is not what it should be.
    """
    qdrant, http, declared = settings.qdrant, settings.http, settings.collections.declared
    faults: list[str] = []

    def check(read: Callable[[], object]) -> None:
        try:
            read()
        except SettingsError as fault:
            faults.append(str(fault))

    check(lambda: read_secret(qdrant.api_key, qdrant.api_key_file, "qdrant.api_key"))
    check(lambda: read_secret(None, http.token_file, "http.token"))
    if qdrant.ca_file is not None:
        check(lambda: check_authorities(qdrant.ca_file))
    if http.tls_certificate is not None:
        check(lambda: check_certificate(http.tls_certificate, http.tls_key))
    if declared is not None:
        check(lambda: read_declared(declared))
    if faults:
        raise SettingsError("\n".join(faults))


def read_secret(value: SecretStr | None, file: Path | None, name: str) -> SecretStr | None:
    """The secret itself, or what its file holds; None when neither is set.

    Raises:
        SettingsError: the file cannot be read or is empty.
    """
    if file is not None:
        return secret_in(file, f"{name}_file")
    if value is not None and not _sendable(value.get_secret_value()):
        raise SettingsError(f"{name}: {_UNSENDABLE}")
    return value


def secret_in(file: Path, name: str) -> SecretStr:
    """The secret that a file holds; `name` is the setting or option that named the file.

    Raises:
        SettingsError: the file cannot be read, is empty, or holds what cannot be sent.
    """
    text = _content(file, name).decode("utf-8", errors="replace").strip()
    if not text:
        raise SettingsError(f"{name}: {file} is empty; it must hold the secret.")
    if not _sendable(text):
        raise SettingsError(f"{name}: {file}: {_UNSENDABLE}")
    return SecretStr(text)


_UNSENDABLE = "a secret is one line of printable ASCII characters, and this is not."


def _sendable(secret: str) -> bool:
    """Whether it can stand in a header; the error of a library that refuses it would show it."""
    return secret.isascii() and secret.isprintable() and secret == secret.strip()


def check_authorities(file: Path | None) -> None:
    """Make sure that `qdrant.ca_file` holds certificates; None is the system's.

    Raises:
        SettingsError: it cannot be read, or holds none.
    """
    if file is not None:
        _certificates(file, "qdrant.ca_file")


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Make sure that https can be served with these two files; None for both is http.

    Raises:
        SettingsError: one of them cannot be read, is not PEM, or they do not belong together.
    """
    if certificate is None or key is None:
        return
    _certificates(certificate, "http.tls_certificate")
    if b"PRIVATE KEY-----" not in _content(key, "http.tls_key"):
        raise SettingsError(f"http.tls_key: {key} holds no private key in PEM.")

    def password() -> str:
        # Without this the library asks at the terminal, and a daemon would wait there for ever.
        raise SettingsError(f"http.tls_key: the key in {key} is encrypted; give it without a passphrase.")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        if error.reason in _ANOTHER_KEY:
            raise SettingsError(
                f"http.tls_key: the key in {key} is not that of the first certificate in {certificate} "
                "(http.tls_certificate)."
            ) from None
        raise SettingsError(
            f"http.tls_certificate, http.tls_key: cannot use {certificate} with {key}: {error.reason or error}."
        ) from None


_ANOTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
"""OpenSSL's words for a key that is not the certificate's: of the same kind, or (by its version) of another."""


def _certificates(file: Path, name: str) -> None:
    _content(file, name)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
    except ssl.SSLError:
        raise SettingsError(f"{name}: {file} holds no certificates in PEM.") from None


def _content(file: Path, name: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsError(f"{name}: cannot read {file}: {error.strerror}.") from None
