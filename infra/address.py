"""What keeps an address or a key from being used, said without repeating it: it may hold a secret."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


def url_problem(url: Any) -> str | None:
    """What is wrong with the address of a REST interface; None when it can be used."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        well_formed = parts and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        well_formed = False
    if not parts or not well_formed:
        return "should be an http or https URL, for example http://localhost:6333"
    if parts.username or parts.password:
        return "carries a user name or password; a key belongs into endpoint.api_key or QDRANT_API_KEY"
    if parts.query or parts.fragment:
        return "carries a query or a fragment, which no request would get; a key belongs into QDRANT_API_KEY"
    return None


def key_problem(key: str) -> str | None:
    """What keeps a key from being sent as a header; None when it can be."""
    if key != key.strip():
        return (
            "begins or ends with a blank or a line break; take that away (`echo` writes one, `printf %s` does not)"
        )
    if not (key.isascii() and key.isprintable()):
        return "holds a character that cannot be sent; set it anew"
    return None
