"""The proxy does what the tests of bad days tell it to, over real connections."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import httpx
import pytest

from tests.support.fault_proxy import Call, Delay, FaultProxy, Reset, Status


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.served.append(self.path)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    Echo.served.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    with FaultProxy(f"http://127.0.0.1:{server.server_address[1]}") as running:
        yield running
    server.shutdown()
    server.server_close()
    thread.join()


def test_faults_in_their_order_then_forwarding(proxy: FaultProxy) -> None:
    proxy.script(Status(503), Status(429, retry_after=7), path="^/a", after=1)
    with httpx.Client(base_url=proxy.url) as client:
        answers = [client.post("/a", content=b"x") for _ in range(4)]
        assert [a.status_code for a in answers] == [200, 503, 429, 200]
        assert answers[2].headers["retry-after"] == "7"
        assert answers[3].content == b"x"
        assert client.post("/b").status_code == 200
    assert (proxy.seen("POST", "/a"), proxy.seen(), proxy.seen("GET")) == (4, 5, 0)


def test_hanging_up_before_and_after_it_was_done(proxy: FaultProxy) -> None:
    proxy.script(Reset(), Reset(forwarded=True))
    for _ in range(2):
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{proxy.url}/a", content=b"x")
    assert Echo.served == ["/a"]


def test_late_answers_calls_and_healing(proxy: FaultProxy) -> None:
    called: list[int] = []
    proxy.script(Call(lambda: called.append(len(Echo.served))))
    assert httpx.post(f"{proxy.url}/a", content=b"x").status_code == 200
    assert called == [0]
    proxy.always(Delay(5))
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{proxy.url}/a", content=b"x", timeout=0.1)
    proxy.heal()
    assert httpx.post(f"{proxy.url}/a", content=b"x").status_code == 200
