"""Something that is not Qdrant answers: one sentence that says so, whatever it answers."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from ops.errors import OpsError, Refused, Unauthorized
from ops.session import Session
from ops.status import STATUS_ROWS, shortened


@pytest.mark.parametrize("body", [b"<html>login</html>", b"[1,2]", b'{"result":null}', b"", b'{"status":"ok"}'])
@pytest.mark.parametrize("ask", [Session.version, Session.collections, Session.aliases, lambda s: s.count("c")])
def test_an_answer_without_a_result(body: bytes, ask: Callable[[Session], object]) -> None:
    with _answering(200, body) as session, pytest.raises(Refused, match=r"not Qdrant's REST API.*qdrant\.url"):
        ask(session)


@pytest.mark.parametrize(
    "body", [b'{"status":403,"error":"Forbidden"}', b'{"status":"bad"}', b"[]", b"", b"<p>\nno"]
)
@pytest.mark.parametrize(
    ("status", "kind"), [(400, Refused), (302, Refused), (403, Unauthorized), (401, Unauthorized)]
)
def test_a_refusal_in_other_words(status: int, kind: type[OpsError], body: bytes) -> None:
    with _answering(status, body) as session, pytest.raises(kind) as refused:
        session.collections()
    assert "\n" not in str(refused.value)


def test_status_shortens_every_list_of_the_details() -> None:
    details = {"cm_text_4_v1": {"before": [{"tenant": f"t_{n}"} for n in range(5000)], "skipped": {"renewed": 1}}}
    shown = shortened(details)["cm_text_4_v1"]
    assert (len(shown["before"]), shown["skipped"]) == (STATUS_ROWS, {"renewed": 1})


def _answering(status: int, body: bytes) -> Session:
    session = Session("http://qdrant.test", retry_for=0)
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=body))
    session._http = httpx.Client(base_url=session.url, transport=transport)
    return session
