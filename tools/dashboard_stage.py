"""A stage for dashboards: a real Prometheus that scrapes the real daemon and the laptop endpoint.

An hour is played in a minute or two: scrapes come every second, jobs every few, and the times of the alerts are
divided. The rules are those of `dashboards`, made with these shorter times.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import jwt
import yaml
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from comemory.indexes import PAYLOAD_INDEXES
from dashboards import alerts, rules
from dashboards.build import GENERATED
from dashboards.settings import DashboardSettings
from dashboards.thresholds import DEFAULTS, Thresholds
from tools.prometheus import Prometheus

ROOT = Path(__file__).resolve().parent.parent
COLLECTION = "cm_text_4_v1"
ULID = "01HQ8K9X2N0PQR3FGJKM567890"
WINDOW = "5s"
STARTS = 180.0
"""Seconds that a program may take to start on a machine with much else to do."""

BEFORE = 20.0
"""Seconds ago that a backlog is compared with."""

LIMITS: Thresholds = replace(
    DEFAULTS.hurried(120),
    stale_least=3600.0, stale_most=3600.0, jobs_remembered=3600.0, outage_told=30.0,
    failing={"census": 120.0, "ttl": 3600.0, "dedup": 3600.0, "audit": 3600.0, "audit-deep": 3600.0},
    daemon_absent=12.0, daemon_remembered=300.0, no_active_daemon=3600.0, qdrant_down=6.0, qdrant_target_down=12.0,
    collector_failing=3600.0, drift=3.0, persistent=3.0, backlog_age=3600.0, backlog_points=30.0,
    backlog_window=BEFORE, backlog_persistent=3.0, duplicate_points=30.0, duplicate_window=BEFORE,
    invalid_points=20.0,
)  # fmt: skip
"""What waits for hours in earnest is not waited for; what is played here is told in seconds."""

A_DAY_AGO: Final = "offset 1d"
DAY: Final = "3s"
"""What stands for the day with which a panel compares: no stage has one."""

MOST_DELETED = 40
"""Points that a run of ttl or dedup deletes, so that a backlog lasts for a few runs, as it does in earnest."""

Series = dict[str, Any]


@dataclass
class Stage:
    """Everything that runs, and how to ask it."""

    folder: Path
    programs: Prometheus
    limits: Thresholds = LIMITS
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.time)

    # --- what runs

    def start(self) -> None:
        """Start the endpoint, make the collection, then the daemon and Prometheus."""
        self.launch("qdrant", ["-m", "embedded", "--path", self.folder / "data", "--port", "0"])
        self.client = QdrantClient(url=self.urls["qdrant"], check_compatibility=False, timeout=60)
        self.create(COLLECTION)

    def create(self, collection: str) -> None:
        """Make a collection with every index that the schema asks for."""
        self.client.create_collection(
            collection,
            {"dense": models.VectorParams(size=4, distance=models.Distance.DOT)},
            strict_mode_config=models.StrictModeConfig(enabled=True),
        )
        for index in PAYLOAD_INDEXES:
            self.client.create_payload_index(collection, index.field, index.field_schema(), wait=True)  # type: ignore[arg-type]

    def start_daemon(self) -> None:
        """Start the daemon with jobs that follow each other quickly."""
        file = self.folder / "daemon.yaml"
        often = {"schedule": {"every": "4s"}}
        settings: dict[str, Any] = {
            "qdrant": {"url": self.urls["qdrant"], "retry_for": 0, "api_key_file": str(self._token())},
            "http": {"port": 0},
            "census": {"schedule": {"every": "2s"}},
            "ttl": {"schedule": {"every": "10s"}, "max_points": MOST_DELETED},
            "dedup": {"schedule": {"every": "6s"}, "full_schedule": {}, "max_points": MOST_DELETED},
            "audit": {**often, "deep_schedule": {}},
        }
        file.write_text(yaml.safe_dump(settings))
        self.launch("daemon", ["-m", "ops", "daemon", "--settings", file])

    def start_prometheus(self) -> None:
        """Start Prometheus with the rules, scraping both every second."""
        settings = DashboardSettings()
        groups = rules.groups(settings, self.limits, window=WINDOW) + alerts.groups(settings, self.limits)
        (self.folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self.folder / "rules.yaml")],
            "scrape_configs": [
                {
                    "job_name": job,
                    "static_configs": [{"targets": [self._target(of)], "labels": {"cluster": "local"}}],
                }
                for job, of in (("comemory", "daemon"), ("qdrant", "qdrant"))
            ],
        }
        file = self.folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(config))
        self.run_prometheus(file)

    def run_prometheus(self, config: Path) -> None:
        """Start Prometheus with a configuration, and wait until it answers."""
        port = _free_port()
        self.urls["prometheus"] = f"http://127.0.0.1:{port}"
        with (self.folder / "prometheus.log").open("ab") as log:
            self.processes["prometheus"] = subprocess.Popen(
                [
                    self.programs.server, f"--config.file={config}",
                    f"--storage.tsdb.path={self.folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log, stderr=log,
            )  # fmt: skip
        self.until(lambda: self.query("up") is not None, STARTS, "Prometheus did not start")

    def close(self) -> None:
        """Stop everything."""
        for name in list(self.processes):
            self.stop(name)

    def stop(self, name: str) -> None:
        """Stop one of them, and wait until it is gone."""
        process = self.processes.pop(name, None)
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _token(self) -> Path:
        """A token that ends in three weeks; the laptop endpoint, which has no keys here, lets anybody in."""
        file = self.folder / "token"
        file.write_text(jwt.encode({"exp": datetime.now(UTC) + timedelta(days=21)}, "k" * 32))
        return file

    def _target(self, name: str) -> str:
        return self.urls[name].rpartition("/")[2]

    def launch(self, name: str, arguments: list[str | Path]) -> None:
        """Start a program of ours that has a `--ready-file`, and wait for it; its address is then in `urls`."""
        ready = self.folder / f"{name}.ready"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("QDRANT_", "COMEMORY_"))}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *arguments, "--ready-file", ready],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
        started = self.processes[name]
        self.until(lambda: ready.exists() or started.poll() is not None, STARTS, f"{name} did not start")
        if started.poll() is not None:
            raise AssertionError(f"{name} ended: {(self.folder / f'{name}.log').read_text()[-1000:]}")
        self.urls[name] = ready.read_text().strip()

    # --- what is asked

    def until(self, true: Callable[[], Any], seconds: float, otherwise: str) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(otherwise)
            time.sleep(0.3)

    def query(self, expression: str, at: float | None = None) -> list[Series] | None:
        """The series of now, or of a moment; None when Prometheus does not answer yet."""
        return self._ask("query", query=expression, **({} if at is None else {"time": str(at)}))

    def query_range(
        self, expression: str, begin: float | None = None, end: float | None = None, step: float = 1.0
    ) -> list[Series]:
        """The series between two moments: since the stage was set, until now."""
        begin, end = begin or self.started, end or time.time()
        return self._ask("query_range", query=expression, start=str(begin), end=str(end), step=str(step)) or []

    def firing(self) -> set[str]:
        """Names of the alerts that fire now."""
        return self._alerts('ALERTS{alertstate="firing"}')

    def fired(self) -> set[str]:
        """Names of the alerts that fire or did, since the stage was set."""
        return self._alerts('count_over_time(ALERTS{alertstate="firing"}[1h])')

    def _alerts(self, expression: str) -> set[str]:
        return {one["metric"]["alertname"] for one in self.query(expression) or []}

    def _ask(self, path: str, **parameters: str) -> list[Series] | None:
        url = f"{self.urls['prometheus']}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                found: list[Series] = json.load(answer)["data"]["result"]
                return found
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise AssertionError(f"{parameters['query']}: {error.read().decode()}") from None
        except OSError:
            return None

    # --- what is played

    def put(self, count: int, start: int, collection: str = COLLECTION, **changes: Any) -> None:
        """Write points, each another source and content unless `changes`, values or functions, says otherwise."""
        scopes = ("docs", "messages", "memory", "artifacts", "signals")
        points = []
        for n in range(start, start + count):
            payload = {
                "schema_version": "cm_payload_v1", "tenant_id": f"t_{'abc'[n % 3]}", "team_id": "team_a",
                "agent_id": "agt_a", "owner_kind": "agent", "owner_id": "agt_a", "scope": scopes[n % 5],
                "visibility": "public", "indexed": True, "source_kind": "document", "source_id": f"doc_{ULID}",
                "chunk": {"chunk_id": f"chk_{ULID}", "chunk_idx": n}, "fingerprint": f"{n:064x}",
                "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
                **{name: value(n) if callable(value) else value for name, value in changes.items()},
            }  # fmt: skip
            points.append(models.PointStruct(id=n, vector={"dense": [1.0, 0.0, 0.0, 0.0]}, payload=payload))
        self.client.upsert(collection, points, wait=True)

    def expire(self, count: int, start: int, **changes: Any) -> None:
        """Write points that are past their time, by two hours."""
        long_ago = (datetime.now(UTC) - timedelta(days=7, hours=2)).isoformat(timespec="seconds")
        self.put(count, start, created_at=long_ago, ttl_days=7, **changes)

    def ask_for_what_is_not_there(self) -> None:
        """A request that Qdrant answers with an error."""
        with suppress(UnexpectedResponse):
            self.client.get_collection("cm_forgotten_4_v1")


@contextmanager
def stage(folder: Path, programs: Prometheus) -> Iterator[Stage]:
    """Set a stage, and clear it whatever happens."""
    with closing(Stage(folder, programs)) as made:
        made.start()
        yield made


def boards() -> dict[str, dict[str, Any]]:
    """The dashboards as they are committed, by uid."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(GENERATED.glob("*.json"))}


def filled_in(expression: str, uid: str, tenant: str = "t_a") -> str:
    """A panel's query with values in the place of its dashboard's variables, and days shortened to seconds."""
    text = expression.replace("$__rate_interval", WINDOW).replace(A_DAY_AGO, f"offset {DAY}")
    text = text.replace('"$tenant"', f'"{tenant}"')
    text = text.replace('"$job"', f'"{_every(uid, "job")}"')
    return re.sub(r'"\$(cluster|instance|collection|scope)"', '".*"', text)


def _every(uid: str, variable: str) -> str:
    """What Grafana puts in the place of a variable of which all values are chosen."""
    variables = {one["name"]: one for one in boards()[uid]["templating"]["list"]}
    return str(variables[variable]["allValue"])


def _free_port() -> int:
    import socket  # noqa: PLC0415 - of no other use here

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
