"""When the certificates and the token that the daemon depends on end."""

from __future__ import annotations

import socket
import ssl
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ops.collectors.base import Target
from ops.errors import OpsError
from ops.expiry import certificate_end, first_end, token_end
from ops.files import read_secret
from ops.metrics import CERTIFICATE_EXPIRY, TOKEN_EXPIRY
from ops.snapshot import Sample

SECONDS: Final = 5.0
HTTPS_PORT: Final = 443


class ExpiryCollector:
    """Reads the settings' files; where Qdrant speaks https, one handshake with it. No request."""

    name = "expiry"

    def collect(self, target: Target) -> list[Sample]:
        """Look at each certificate (`http`, `qdrant_ca`, `qdrant`) and the token (`qdrant`) that there is."""
        qdrant, http = target.settings.qdrant, target.settings.http
        samples = []
        for name, file in (("http", http.tls_certificate), ("qdrant_ca", qdrant.ca_file)):
            if file is not None:
                samples.append(Sample(CERTIFICATE_EXPIRY, (name,), _of_file(file).timestamp()))
        if qdrant.url.startswith("https://"):
            samples.append(Sample(CERTIFICATE_EXPIRY, ("qdrant",), _of_server(qdrant.url).timestamp()))
        secret = read_secret(qdrant.api_key, qdrant.api_key_file, "qdrant.api_key")
        if secret is not None and (end := token_end(secret.get_secret_value())) is not None:
            samples.append(Sample(TOKEN_EXPIRY, ("qdrant",), end.timestamp()))
        return samples


def _of_file(file: Path) -> datetime:
    try:
        return first_end(file.read_text(encoding="ascii", errors="replace"))
    except OSError as error:
        raise OpsError(f"Cannot read the certificate {file}: {error.strerror}.") from None
    except ValueError as error:
        raise OpsError(f"Cannot tell when the certificate {file} ends: {error}.") from None


def _of_server(url: str) -> datetime:
    """Of what the server shows; whether it is to be trusted is the session's business."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or HTTPS_PORT
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
        ):
            shown = secured.getpeercert(binary_form=True)
        return certificate_end(shown or b"")
    except (OSError, ValueError) as error:
        raise OpsError(f"Cannot see when the certificate of Qdrant at {url} ends: {error}.") from None
