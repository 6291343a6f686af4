"""The endpoints over real connections: negotiation, the token, readiness, TLS."""

import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from comemory.payload import SCOPES
from ops import metrics
from ops.errors import OpsError, SettingsError
from ops.exposition import Exposition
from ops.http import HttpServer, application
from ops.results import Results
from ops.settings import HttpSettings
from ops.snapshot import CollectorRun, Sample, Snapshot, SnapshotStore

Serve = Callable[..., HttpServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[HttpServer] = []

    def begin(settings: HttpSettings | None = None, **values: Any) -> HttpServer:
        render = Exposition(SnapshotStore(), Results(("ttl",)), max_tenants=10).render
        app = application(**{"metrics": render, "ready": list, "status": dict, **values})
        server = HttpServer(settings or HttpSettings(port=0), app)
        server.start()
        started.append(server)
        return server

    yield begin
    for server in started:
        server.stop()


def test_metrics_are_openmetrics_when_asked_for(serve: Serve) -> None:
    url = serve().url + "/metrics"
    plain = httpx.get(url)
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'comemory_job_runs_total{job_name="ttl",outcome="success"} 0.0' in plain.text
    scraper = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    asked = httpx.get(url, headers={"accept": scraper})
    assert asked.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert asked.text.endswith("# EOF\n")


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text;version=1.0.0"])
def test_of_ten_thousand_tenants_the_smallest_are_folded_and_the_scrape_says_so(serve: Serve, accept: str) -> None:
    store, largest = SnapshotStore(), 1000
    samples = tuple(
        Sample(metrics.POINTS, ("cm", f"t_{tenant:05d}", scope), tenant + 1)
        for tenant in range(10_000)
        for scope in SCOPES
    )
    now = datetime(2026, 2, 1, tzinfo=UTC)
    store.publish(Snapshot(now, {("tenants", "cm"): CollectorRun("tenants", "cm", 0.5, True, now, samples)}))
    render = Exposition(store, Results(("ttl",)), max_tenants=largest).render
    answer = httpx.get(serve(metrics=render).url + "/metrics", headers={"accept": accept}, timeout=60)
    lines = [line for line in answer.text.splitlines() if line.startswith("comemory_points{")]
    assert len(lines) == (largest + 1) * len(SCOPES)
    assert "comemory_tenants_folded 9000.0" in answer.text
    folded = [line for line in lines if f'tenant_id="{metrics.OTHER_TENANTS}"' in line]
    assert {float(line.rsplit(" ", 1)[1]) for line in folded} == {sum(range(1, 9_001))}
    assert sum(float(line.rsplit(" ", 1)[1]) for line in lines) == len(SCOPES) * sum(range(1, 10_001))
    assert not any('tenant_id="t_00042"' in line for line in lines)


def test_ready_says_why_not(serve: Serve) -> None:
    reasons = ["Qdrant is away."]
    url = serve(ready=lambda: reasons).url + "/readyz"
    answer = httpx.get(url)
    assert (answer.status_code, answer.json()) == (503, {"ready": False, "reasons": reasons})
    reasons.clear()
    answer = httpx.get(url)
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "reasons": []})


def test_the_token_guards_numbers_but_not_probes(serve: Serve) -> None:
    url = serve(token=SecretStr("tökén")).url
    for path in ("/metrics", "/status"):
        assert httpx.get(url + path).status_code == 401
        assert httpx.get(url + path, headers={"authorization": "Bearer token"}).status_code == 401
        for scheme in ("Bearer", "bearer"):
            given = {"authorization": f"{scheme} tökén".encode()}
            assert httpx.get(url + path, headers=given).status_code == 200
        assert httpx.get(url + path, headers={"authorization": "Basic tökén".encode()}).status_code == 401
    for path in ("/healthz", "/readyz"):
        assert httpx.get(url + path).status_code == 200
    assert httpx.post(url + "/metrics").status_code == 405
    assert httpx.get(url + "/").status_code == 404


def test_a_taken_port_is_named(serve: Serve) -> None:
    port = int(serve().url.rsplit(":", 1)[1])
    with pytest.raises(OpsError, match=f"Cannot listen on 127.0.0.1 port {port}: Address already in use"):
        serve(HttpSettings(port=port))
    with pytest.raises(OpsError, match=r"Cannot listen on 192\.0\.2\.1 port 0"):
        serve(HttpSettings(host="192.0.2.1", port=0))


def test_it_binds_loopback_unless_told_otherwise() -> None:
    assert HttpSettings().host == "127.0.0.1"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_tls(serve: Serve, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    url = serve(HttpSettings(port=0, tls_certificate=certificate, tls_key=key)).url
    assert url.startswith("https://")
    trusted = ssl.create_default_context(cafile=str(certificate))
    assert httpx.get(url + "/healthz", verify=trusted).text == "ok\n"
    certificate.write_text("no certificate")
    with pytest.raises(SettingsError, match=r"http\.tls_certificate: .* holds no certificates in PEM"):
        serve(HttpSettings(port=0, tls_certificate=certificate, tls_key=key))
