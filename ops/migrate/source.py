"""A session that can read and nothing else, whatever its key may do."""

from __future__ import annotations

import re
import threading

from ops.errors import OpsError, Unauthorized
from ops.files import check_authorities, read_secret
from ops.session import Session
from ops.settings import QdrantSettings
from ops.transport import Json

_READING = re.compile(r"/collections/[^/?]+/points(?:/scroll|/count)?")
"""Paths of the requests that Qdrant takes as a POST although they read."""


_SETTING = "the settings' api_key_file"
_KEY = "`source.api_key_file` in the rules, or --source-key-file"


class SourceIsReadOnly(OpsError):
    """A request that might have changed the source was about to be sent; it was not."""


class SourceSession(Session):
    """A `Session` whose every request passes one gate: GET, and the POSTs that scroll, count and retrieve."""

    def send(self, method: str, path: str, content: bytes | None, collection: str) -> Json:
        """One try of a request that reads.

        Raises:
            SourceIsReadOnly: it might change something; nothing was sent.
        """
        if method != "GET" and not (method == "POST" and _READING.fullmatch(path)):
            raise SourceIsReadOnly(f"A migration only reads its source; {method} {path} was not sent.")
        try:
            return super().send(method, path, content, collection)
        except Unauthorized as error:
            raise Unauthorized(f"The source: {str(error).replace(_SETTING, _KEY)}") from None


def open_source(qdrant: QdrantSettings, stop: threading.Event | None = None) -> SourceSession:
    """A session of the server that the points come from.

    Raises:
        SettingsError: the file of the API key or of the certificate authorities cannot be read.
    """
    key = read_secret(qdrant.api_key, qdrant.api_key_file, "source.api_key")
    check_authorities(qdrant.ca_file)
    return SourceSession(
        qdrant.url,
        api_key=key,
        timeout=qdrant.timeout,
        ca=None if qdrant.ca_file is None else str(qdrant.ca_file),
        retry_for=qdrant.retry_for,
        stop=stop,
    )
