"""The files that settings name: what is missing, unreadable or not what it should be is said, with the setting."""

import shutil
import subprocess
from pathlib import Path

import pytest
from pydantic import SecretStr

from ops.errors import SettingsError
from ops.files import check_authorities, check_certificate, check_files, read_secret
from ops.settings import Settings

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")


def test_secrets_come_from_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("s3cret\n")
    secret = read_secret(None, file, "qdrant.api_key")
    assert secret is not None
    assert secret.get_secret_value() == "s3cret"
    file.write_text("\n")
    with pytest.raises(SettingsError, match=r"qdrant.api_key_file: .* is empty"):
        read_secret(None, file, "qdrant.api_key")
    with pytest.raises(SettingsError, match="cannot read"):
        read_secret(None, tmp_path / "absent", "qdrant.api_key")


@pytest.mark.parametrize(
    "content",
    [b"abc\ndef", "ключ".encode(), b"\xff\xfe\x00", b"a\x00b"],
    ids=["two lines", "no ASCII", "binary", "NUL"],
)
def test_a_secret_that_no_header_can_hold_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match="one line of printable ASCII") as refused:
        read_secret(None, file, "qdrant.api_key")
    assert "abc" not in str(refused.value)
    with pytest.raises(SettingsError, match=r"qdrant\.api_key:") as refused:
        read_secret(SecretStr("abc\ndef"), None, "qdrant.api_key")
    assert "abc" not in str(refused.value)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two certificates and their keys, `a` and `b`, the key of `a` encrypted, and one of RSA."""
    folder = tmp_path_factory.mktemp("pem")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    for name in ("a", "b"):
        openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-keyout", f"{name}.key", "-out", f"{name}.crt",
        )  # fmt: skip
    openssl("ec", "-in", "a.key", "-aes256", "-passout", "pass:secret", "-out", "encrypted.key")
    openssl("genrsa", "-out", "rsa.key", "2048")
    (folder / "text").write_text("no certificate")
    (folder / "broken.key").write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    (folder / "chain.crt").write_bytes((folder / "a.crt").read_bytes() + (folder / "b.crt").read_bytes())
    return folder


def test_what_belongs_together_is_accepted(pem: Path) -> None:
    check_certificate(pem / "a.crt", pem / "a.key")
    check_certificate(pem / "chain.crt", pem / "a.key")
    check_certificate(None, None)
    check_authorities(pem / "chain.crt")
    check_authorities(None)


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("none.crt", "a.key", r"^http\.tls_certificate: cannot read .*none\.crt: No such file or directory\.$"),
        (".", "a.key", r"^http\.tls_certificate: cannot read .*: Is a directory\.$"),
        ("text", "a.key", r"^http\.tls_certificate: .*text holds no certificates in PEM\.$"),
        ("a.key", "a.key", r"^http\.tls_certificate: .*a\.key holds no certificates in PEM\.$"),
        ("a.crt", "none.key", r"^http\.tls_key: cannot read .*none\.key: No such file or directory\.$"),
        ("a.crt", "a.crt", r"^http\.tls_key: .*a\.crt holds no private key in PEM\.$"),
        ("a.crt", "b.key", r"^http\.tls_key: the key in .*b\.key is not that of the first certificate in .*a\.crt"),
        ("a.crt", "rsa.key", r"^http\.tls_key: the key in .*rsa\.key is not that of"),
        ("a.crt", "encrypted.key", r"^http\.tls_key: the key in .*encrypted\.key is encrypted"),
        ("a.crt", "broken.key", r"^http\.tls_certificate, http\.tls_key: cannot use .* with .*broken\.key"),
    ],
)
def test_the_fault_of_a_certificate_or_its_key_is_told(pem: Path, certificate: str, key: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        check_certificate(pem / certificate, pem / key)


def test_all_faults_are_told_at_once(pem: Path, tmp_path: Path) -> None:
    settings = Settings(
        qdrant={"api_key_file": tmp_path / "key", "ca_file": pem / "text"},
        http={"token_file": tmp_path, "tls_certificate": pem / "a.crt", "tls_key": pem / "b.key"},
        collections={"declared": tmp_path / "declared.yaml"},
    )
    with pytest.raises(SettingsError) as refused:
        check_files(settings)
    told = [line.split(":")[0] for line in str(refused.value).splitlines()]
    assert told == [
        "qdrant.api_key_file",
        "http.token_file",
        "qdrant.ca_file",
        "http.tls_key",
        "collections.declared",
    ]


def test_files_that_are_in_order(pem: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key\n")
    (tmp_path / "declared.yaml").write_text("[]")
    check_files(Settings())
    check_files(
        Settings(
            qdrant={"api_key_file": tmp_path / "key", "ca_file": pem / "a.crt"},
            http={"token_file": tmp_path / "key", "tls_certificate": pem / "a.crt", "tls_key": pem / "a.key"},
            collections={"declared": tmp_path / "declared.yaml"},
        )
    )
