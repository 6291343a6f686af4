"""What an unhelpful server makes the provider say, through a proxy in front of a real one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from infra.provider.errors import ProviderError, TimedOutError
from infra.provider.rest import Rest, tls_context
from tests.conftest import SERVER_KEY, SERVER_URL
from tests.support.fault_proxy import Delay, FaultProxy, Status

KEY = SERVER_KEY if SERVER_URL else None


def ask(url: str, what: Callable[[Rest], Awaitable[Any]], timeout: float = 30.0) -> Any:
    async def run() -> Any:
        return await what(Rest(url, KEY, timeout, None))

    return asyncio.run(run())


def said(url: str, what: Callable[[Rest], Awaitable[Any]], timeout: float = 30.0) -> str:
    with pytest.raises(ProviderError) as caught:
        ask(url, what, timeout)
    return str(caught.value)


def test_a_busy_server_is_asked_again(qdrant_url, collection_name):
    with FaultProxy(qdrant_url) as proxy:
        proxy.script(Status(503), Status(429), path=f"/collections/{collection_name}")
        assert ask(proxy.url, lambda rest: rest.collection(collection_name)) is None
        assert proxy.seen("GET", f"/collections/{collection_name}") == 3


def test_a_server_that_stays_busy_is_an_error_that_says_so(qdrant_url):
    with FaultProxy(qdrant_url) as proxy:
        proxy.always(Status(503))
        assert "could not read the aliases: injected by the test (HTTP 503)" in said(proxy.url, Rest.aliases)


def test_reads_at_the_same_moment_share_one_request(qdrant_url, collection_name):
    with FaultProxy(qdrant_url) as proxy:

        async def together(rest: Rest) -> list[Any]:
            return await asyncio.gather(*(rest.collection(collection_name) for _ in range(25)))

        assert ask(proxy.url, together) == [None] * 25
        assert proxy.seen("GET") == 1
        assert ask(proxy.url, lambda rest: rest.collection(collection_name)) is None
        assert proxy.seen("GET") == 2, "nothing is remembered"


def test_an_answer_that_comes_too_late_is_a_time_out(qdrant_url):
    with FaultProxy(qdrant_url) as proxy:
        proxy.always(Delay(2))
        with pytest.raises(TimedOutError, match=r"did not answer within 0.2 s when asked to read the aliases"):
            ask(proxy.url, Rest.aliases, timeout=0.2)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            b'{"title":"qdrant - vector search engine","version":"1.15.4"}',
            "is version 1.15.4, but collection metadata",
        ),
        (b"<html>welcome</html>", "answered, but not as a Qdrant server does; correct qdrant:url"),
    ],
)
def test_another_server_or_an_old_one_is_refused(qdrant_url, body, sentence):
    with FaultProxy(qdrant_url) as proxy:
        proxy.script(Status(200, body=body), path="^/$")
        assert sentence in said(proxy.url, Rest.require_supported)


def test_the_server_of_these_tests_is_supported(qdrant_url):
    ask(qdrant_url, Rest.require_supported)


def test_an_index_of_a_collection_that_is_not_there_says_what_to_do(qdrant_url, collection_name):
    text = said(qdrant_url, lambda rest: rest.create_index(collection_name, "tags", {"type": "keyword"}))
    assert (
        f"index tags: collection {collection_name} does not exist" in text and "collection=collection.name" in text
    )


def test_a_plain_server_behind_https_is_a_tls_failure(qdrant_url):
    text = said(qdrant_url.replace("http://", "https://"), Rest.aliases)
    assert "the TLS connection to https://" in text and "qdrant:tls_ca" in text


def test_a_certificate_authority_is_a_file_or_its_text(tmp_path):
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(ProviderError, match=r"ca\.pem is not a certificate authority that can be read"):
        tls_context(str(tmp_path / "ca.pem"))
    with pytest.raises(ProviderError, match="the PEM text is not a certificate authority"):
        tls_context("-----BEGIN CERTIFICATE-----\nnothing")
    default = ssl.create_default_context().get_ca_certs(binary_form=True)
    if default:
        text = ssl.DER_cert_to_PEM_cert(default[0])
        assert tls_context(text).get_ca_certs(binary_form=True) == [default[0]]
