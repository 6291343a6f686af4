"""The daemon as a process: signals, leases, kills, and a Qdrant that comes and goes."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.lease_server import LeaseServer

ROOT = Path(__file__).resolve().parents[2]
KEY = "the-key-that-nobody-may-see"


@dataclass
class Running:
    """A daemon process with its log, the trace of its jobs and its address."""

    process: subprocess.Popen[bytes]
    log: Path
    trace_file: Path
    ready: Path

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.ready.read_text() + path, timeout=30)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/status").json()
        return found

    def reasons(self) -> list[str]:
        answer = self.get("/readyz")
        reasons: list[str] = answer.json()["reasons"]
        assert answer.status_code == (503 if reasons else 200)
        return reasons

    def trace(self) -> list[str]:
        lines = self.trace_file.read_text().splitlines() if self.trace_file.exists() else []
        own = f"{self.process.pid} "
        return [line.removeprefix(own) for line in lines if line.startswith(own)]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def ended(self) -> int:
        return self.process.wait(timeout=120)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)


def until_ready(running: Running) -> None:
    while not (running.ready.exists() and running.ready.read_text()):
        assert running.process.poll() is None, running.log.read_text()
        time.sleep(0.05)


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path, qdrant_url: str) -> Iterator[Start]:
    """Start a daemon: with jobs made for the tests, or, without any named, the real one."""
    started: list[Running] = []
    number = itertools.count()

    def begin(*jobs: str, wait: bool = True, **environment: str) -> Running:
        n = next(number)
        log, ready, trace = tmp_path / f"log{n}", tmp_path / f"ready{n}", tmp_path / "trace"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("COMEMORY_")}
        given = {
            "COMEMORY_QDRANT__URL": qdrant_url,
            "COMEMORY_QDRANT__RETRY_FOR": "0.5",
            "COMEMORY_HTTP__PORT": "0",
            **{f"COMEMORY_{name}__SCHEDULE__JITTER": "0" for name in ("TTL", "DEDUP", "CENSUS")},
            **{f"COMEMORY_{name}__SCHEDULE__EVERY": "3600" for name in ("TTL", "DEDUP", "CENSUS")},
        }
        if (key := os.environ.get("QDRANT_API_KEY")) is not None:
            given["COMEMORY_QDRANT__API_KEY"] = key
        real = ["-m", "ops", "daemon", "--ready-file", ready]
        made = ["-m", "tests.support.daemon_process", ready, trace, *jobs]
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, *(made if jobs else real)], cwd=ROOT, env=inherited | given | environment,
                stdout=stream, stderr=stream,
            )  # fmt: skip
        running = Running(process, log, trace, ready)
        started.append(running)
        if wait:
            until_ready(running)
        return running

    yield begin
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def test_sigterm_ends_it_with_the_batch_under_way_finished(start: Start) -> None:
    daemon = start("batches")
    until(lambda: "begin 1" in daemon.trace())
    daemon.process.terminate()
    assert daemon.ended() == 0
    *_, last, stopped = daemon.trace()
    assert last.startswith("end ")
    assert stopped == "stopped: asked to stop"
    events = daemon.events()
    run = next(e for e in events if e["event"] == "run")
    assert (run["job"], run["outcome"], run["handled"]) == ("ttl", "partial", 10 * run["batches"])
    assert run["batches"] > 0
    assert run["seconds"] > 0
    assert events[-1]["state"] == "stopped"


def test_a_batch_that_does_not_end_is_left_after_shutdown_seconds(start: Start) -> None:
    daemon = start("stuck", COMEMORY_SHUTDOWN_SECONDS="0.5")
    until(lambda: "begin 0" in daemon.trace())
    daemon.process.terminate()
    assert daemon.ended() == 1
    assert "outlasted shutdown_seconds" in daemon.events()[-1]["problem"]


def test_a_second_sigterm_ends_it_at_once(start: Start) -> None:
    daemon = start("stuck", COMEMORY_SHUTDOWN_SECONDS="3600")
    until(lambda: "begin 0" in daemon.trace())
    daemon.process.terminate()
    until(lambda: daemon.reasons() == ["The daemon is shutting down."])
    daemon.process.terminate()
    assert daemon.ended() == 130


def test_a_run_ends_at_the_batch_boundary_when_its_time_is_used_up(start: Start) -> None:
    daemon = start("batches", COMEMORY_TTL__MAX_SECONDS="0.5")
    until(lambda: "stopped: time budget used up" in daemon.trace())
    assert daemon.trace()[-2].startswith("end ")
    until(lambda: daemon.status()["jobs"]["ttl"]["outcomes"]["partial"] == 1)


def test_a_job_that_raises_is_counted_and_tried_again_while_the_others_go_on(start: Start) -> None:
    daemon = start("raising", "batches", COMEMORY_DEDUP__SCHEDULE__EVERY="0.2")
    until(lambda: daemon.trace().count("raised") >= 3)
    until(lambda: "end 1" in daemon.trace())
    until(lambda: daemon.status()["jobs"]["dedup"]["outcomes"]["failed"] >= 3)
    state = daemon.status()["jobs"]["dedup"]
    assert "raised RuntimeError at daemon_process.py:" in state["last_error"]
    assert daemon.get("/healthz").status_code == 200
    assert 'comemory_job_runs_total{job_name="dedup",outcome="failed"} ' in daemon.get("/metrics").text
    assert "secret memory" not in daemon.log.read_text() + daemon.get("/status").text


def test_of_two_with_a_file_lease_one_works_and_the_other_follows_a_kill(start: Start, tmp_path: Path) -> None:
    lease = {"COMEMORY_LEASE__KIND": "file", "COMEMORY_LEASE__PATH": str(tmp_path / "lease"),
             "COMEMORY_LEASE__DURATION": "5"}  # fmt: skip
    first = start("batches", **lease)
    until(lambda: "end 0" in first.trace())
    second = start("batches", **lease)
    until(lambda: second.reasons() == [])
    seen = len(first.trace())
    until(lambda: len(first.trace()) > seen + 4)
    assert second.trace() == []
    assert [first.status()["lease"]["held"], second.status()["lease"]["held"]] == [True, False]
    first.process.kill()
    first.process.wait()
    until(lambda: "end 1" in second.trace())
    assert second.status()["lease"] == {"kind": "file", "held": True}


def test_who_waits_for_a_file_lease_gets_it_when_the_holder_ends_and_ends_well_itself(
    start: Start, tmp_path: Path
) -> None:
    lease = {"COMEMORY_LEASE__KIND": "file", "COMEMORY_LEASE__PATH": str(tmp_path / "lease")}
    first = start("batches", **lease)
    until(lambda: "end 0" in first.trace())
    second, third = start("batches", **lease), start("batches", **lease)
    third.process.terminate()
    assert third.ended() == 0
    assert (second.trace(), third.trace()) == ([], [])
    first.process.terminate()
    assert first.ended() == 0
    until(lambda: "end 1" in second.trace())
    second.process.terminate()
    assert second.ended() == 0
    assert second.trace()[-1] == "stopped: asked to stop"
    assert [event["state"] for event in second.events() if event["event"] == "daemon"][-1] == "stopped"


def test_who_loses_a_kubernetes_lease_stops_at_the_batch_boundary(start: Start, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("token-1")
    with LeaseServer() as server:
        lease = {"LEASE_URL": server.url, "LEASE_TOKEN_FILE": str(token), "COMEMORY_LEASE__DURATION": "5"}
        first = start("batches", **lease)
        until(lambda: "end 0" in first.trace())
        second = start("batches", **lease)
        assert second.trace() == []
        with server.lock:
            stolen = next(iter(server.leases.values()))
            stolen["spec"] = stolen["spec"] | {"holderIdentity": "somebody", "leaseDurationSeconds": 5}
            stolen["metadata"]["resourceVersion"] = "stolen"
        until(lambda: "stopped: asked to stop" in first.trace())
        assert first.trace()[-2].startswith("end ")
        # The thief is silent, so one of the two takes over; never both.
        until(lambda: first.status()["lease"]["held"] or second.status()["lease"]["held"])
        assert server.holder() != "somebody"
        assert first.status()["lease"]["held"] != second.status()["lease"]["held"]


@pytest.mark.embedded_only("stops and restarts the endpoint")
def test_it_starts_without_qdrant_says_so_and_recovers(start: Start, start_endpoint: Callable[..., Any]) -> None:
    endpoint = start_endpoint(api_key=KEY)
    endpoint.stop()
    daemon = start(COMEMORY_QDRANT__URL=endpoint.url, COMEMORY_QDRANT__API_KEY=KEY)
    until(lambda: any("gave no answer" in reason for reason in daemon.reasons()))
    assert "No census has been taken yet." in daemon.reasons()
    assert daemon.get("/healthz").status_code == 200
    endpoint = endpoint.restart()
    until(lambda: daemon.reasons() == [])
    assert daemon.status()["qdrant"]["up"] is True
    endpoint.kill()
    until(lambda: any("gave no answer" in reason for reason in daemon.reasons()))
    endpoint.restart()
    until(lambda: daemon.reasons() == [])
    commands = Path(f"/proc/{daemon.process.pid}/cmdline").read_bytes().decode()
    assert KEY not in daemon.log.read_text() + daemon.get("/status").text + daemon.get("/metrics").text + commands
    daemon.process.terminate()
    assert daemon.ended() == 0


def test_a_taken_port_and_broken_settings_are_one_sentence(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        blocked = start(wait=False, COMEMORY_HTTP__PORT=str(port))
        broken = start(wait=False, COMEMORY_TTL__BATCH="none")
        assert blocked.ended() == 1
        assert broken.ended() == 2
    assert blocked.log.read_text() == (
        f"comemory: Cannot listen on 127.0.0.1 port {port}: Address already in use. "
        "Set http.host and http.port to an address that is free.\n"
    )
    assert "ttl.batch: Input should be a valid integer" in broken.log.read_text()
    assert "Traceback" not in broken.log.read_text()


def test_a_kill_leaves_nothing_that_hinders_the_next(start: Start, tmp_path: Path) -> None:
    lease = {"COMEMORY_LEASE__KIND": "file", "COMEMORY_LEASE__PATH": str(tmp_path / "lease")}
    first = start("batches", **lease)
    until(lambda: "begin 1" in first.trace())
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second = start("batches", **lease)
    until(lambda: "end 0" in second.trace())


def test_a_nightly_run_that_was_passed_over_is_made_up_by_who_takes_over(start: Start, tmp_path: Path) -> None:
    lease = {"COMEMORY_LEASE__KIND": "file", "COMEMORY_LEASE__PATH": str(tmp_path / "lease"),
             "COMEMORY_LEASE__DURATION": "5"}  # fmt: skip
    first = start("nightly", **lease)
    until(lambda: first.trace() == ["nightly success"])
    second = start("nightly", **lease)

    def hours_to_wait() -> float:
        then = datetime.fromisoformat(second.status()["next_runs"]["nightly"])
        return (then - datetime.now(UTC)).total_seconds() / 3600

    until(lambda: hours_to_wait() > 1)  # its time came, and went
    assert second.trace() == []
    first.process.kill()
    first.process.wait()
    until(lambda: second.trace() == ["nightly success"])
    assert hours_to_wait() > 1


@pytest.mark.embedded_only("stops and restarts the endpoint")
def test_a_nightly_run_that_found_no_qdrant_is_made_up_when_it_is_back(
    start: Start, start_endpoint: Callable[..., Any]
) -> None:
    endpoint = start_endpoint()
    endpoint.stop()
    daemon = start("nightly", COMEMORY_QDRANT__URL=endpoint.url)
    until(lambda: daemon.trace() == ["nightly failed"])
    endpoint.restart()
    until(lambda: daemon.trace() == ["nightly failed", "nightly success"])
