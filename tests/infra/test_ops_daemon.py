"""The daemon's files and pod, and the real daemon started with them and a token of the kind that it is given."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import yaml
from pydantic import ValidationError

from comemory.declaration import CollectionSettings
from infra.components.ops_daemon.configuration import (
    CA_FILE,
    DECLARED_FILE,
    KEY_FILE,
    SECRETS_PATH,
    SETTINGS_FILE,
    SETTINGS_PATH,
    STATE_PATH,
    TOKEN_FILE,
    checksum,
    files,
)
from infra.components.ops_daemon.settings import OpsDaemonSettings
from infra.components.ops_daemon.workload import USER, deployment
from infra.provider.access_token import AccessTokenSpec

ROOT = Path(__file__).resolve().parents[2]
KEY = "an-api-key-of-more-than-thirty-two-bytes"
IMAGE = {"repository": "registry.example/comemory-daemon", "tag": "1"}
COLLECTIONS = [
    CollectionSettings(name="cm_text_4_v1", embedding_model="m", dimension=4, alias="cm_text"),
    CollectionSettings(name="cm_code_4_v1", embedding_model="m", dimension=4),
]


def settings(**values: Any) -> OpsDaemonSettings:
    return OpsDaemonSettings.model_validate({"image": IMAGE, **values})


def pod(wanted: OpsDaemonSettings, **labels: str) -> dict[str, Any]:
    made = deployment(
        wanted, key=("s", KEY_FILE), metrics_token=("s", TOKEN_FILE), client_labels=labels, annotations={}
    )
    template: dict[str, Any] = made["template"]
    return template


def laid_out(folder: Path, wanted: OpsDaemonSettings, url: str, **secrets: str) -> Path:
    """The files as the pod has them, below `folder` in place of `/`."""
    made = files(wanted, COLLECTIONS, url=url, ca=None)
    for name, text in made.items():
        target = folder / str(SETTINGS_PATH / name).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(re.sub(r"/etc/comemory/|/var/lib/comemory/", rf"{folder}\g<0>", text))
    for name, text in secrets.items():
        target = folder / str(SECRETS_PATH / name.replace("_", "-")).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (folder / str(STATE_PATH).lstrip("/")).mkdir(parents=True)
    return folder / str(SETTINGS_PATH / SETTINGS_FILE).lstrip("/")


def comemory(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ops", *arguments], cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_rendered_settings_are_accepted_by_the_daemons_own_check(tmp_path):
    wanted = settings(
        settings={
            "ttl": {"schedule": {"cron": "0 3 * * *", "zone": "Europe/Kyiv"}, "grace": "36h"},
            "dedup": {"policies": {"docs": "content"}, "max_points": 10},
            "audit": {"enabled": False},
            "exclude": ["cm_code_4_v1"],
        }
    )
    file = laid_out(tmp_path, wanted, "http://qdrant.memory.svc:6333", qdrant_key=KEY, metrics_token="t0ken")
    checked = comemory("settings", "check", "--settings", file)
    assert checked.returncode == 0, checked.stderr
    shown = comemory("settings", "show", "--settings", file).stdout
    assert KEY not in shown and "t0ken" not in shown
    told = yaml.safe_load(file.read_text())
    assert told["ttl"] == {"grace": "P1DT12H", "schedule": {"cron": "0 3 * * *", "zone": "Europe/Kyiv"}}
    assert told["collections"]["include"] == ["cm_text_4_v1", "cm_code_4_v1"]
    assert told["lease"] == {"kind": "kubernetes", "name": "comemory-daemon", "duration": 30}
    assert "census" not in told, "defaults are the daemon's own"


def test_without_the_secret_the_check_names_the_file(tmp_path):
    file = laid_out(tmp_path, settings(metrics_token=False), "http://qdrant:6333")
    checked = comemory("settings", "check", "--settings", file)
    assert checked.returncode == 2 and f"{SECRETS_PATH / KEY_FILE}" in checked.stderr


def test_an_authority_stands_beside_the_settings_and_any_change_makes_another_checksum():
    url = "https://qdrant.memory.svc:6333"
    plain = files(settings(), COLLECTIONS, url=url, ca=None)
    secured = files(settings(), COLLECTIONS, url=url, ca="PEM")
    assert secured[CA_FILE] == "PEM" and CA_FILE not in plain
    assert yaml.safe_load(secured[SETTINGS_FILE])["qdrant"]["ca_file"] == str(SETTINGS_PATH / CA_FILE)
    others = [
        files(settings(), COLLECTIONS[:1], url=url, ca=None),
        files(settings(settings={"ttl": {"batch": 7}}), COLLECTIONS, url=url, ca=None),
        secured,
    ]
    assert len({checksum(one) for one in (plain, *others)}) == 4
    assert yaml.safe_load(plain[DECLARED_FILE])[0]["alias"] == "cm_text"


def test_the_pod_meets_pod_security_and_reads_secrets_from_files_alone():
    template = pod(settings(tls_secret="daemon-tls"), **{"qdrant-client": "true"})
    spec, (container,) = template["spec"], template["spec"]["containers"]
    assert template["metadata"]["labels"]["qdrant-client"] == "true"
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == USER
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert [one["name"] for one in container["env"]] == ["COMEMORY_SETTINGS"], "no secret is in the environment"
    mounted = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert mounted == {str(STATE_PATH), "/tmp"}
    assert spec["terminationGracePeriodSeconds"] > settings().settings.shutdown_seconds
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics", "scheme": "HTTPS"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"image": {"repository": "r"}}, "give `tag` or `digest`"),
        ({"settings": {"dedup": {"state_file": "/x"}}}, "decided by `state`"),
        ({"settings": {"http": {"port": 1}}}, "Extra inputs are not permitted"),
        ({"settings": {"ttl": {"schedule": {"cron": "soon"}}}}, "settings.ttl.schedule"),
        ({"pod_labels": {"app.kubernetes.io/name": "x"}}, "belong to the daemon"),
    ],
)
def test_what_is_wrong_is_named(values, said):
    with pytest.raises(ValidationError) as told:
        settings(**values)
    assert said in str(told.value)


@pytest.fixture
def daemon(start_endpoint: Callable[..., Any], tmp_path: Path) -> Iterator[str]:
    """The real daemon with the files of its pod, on an endpoint that takes its token; gives its address."""
    endpoint = start_endpoint(api_key=KEY, jwt_rbac="true")
    with httpx.Client(base_url=endpoint.url, headers={"api-key": KEY}, timeout=60) as admin:
        for one in (*COLLECTIONS, COLLECTIONS[0].model_copy(update={"name": "cm_other_4_v1", "alias": None})):
            admin.put(f"/collections/{one.name}", json=one.spec().creation({})).raise_for_status()
            for index in one.all_indexes():
                body = {"field_name": index.field, "field_schema": index.field_schema()}
                admin.put(f"/collections/{one.name}/index", json=body).raise_for_status()
    spec = AccessTokenSpec(collections={one.name: "rw" for one in COLLECTIONS})
    token = jwt.encode(spec.claims(datetime.now(UTC)), KEY, "HS256")
    wanted = settings(listen="127.0.0.1", settings={"ttl": {"schedule": {"every": "1h", "jitter": 0}}})
    file = laid_out(tmp_path, wanted, endpoint.url, qdrant_key=token, metrics_token="t0ken")
    ready, log = tmp_path / "ready", tmp_path / "daemon.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "ops", "daemon", "--ready-file", ready], cwd=ROOT, stdout=stream, stderr=stream,
            env={
                **os.environ,
                "COMEMORY_SETTINGS": str(file),
                # There is no API server here, and the port may be taken.
                "COMEMORY_LEASE__KIND": "none",
                "COMEMORY_HTTP__PORT": "0",
            },
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not (ready.exists() and ready.read_text()):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield ready.read_text().strip()
        process.terminate()
        assert process.wait(timeout=60) == 0, log.read_text()
        assert token not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.embedded_only("starts an endpoint with a key of the test's own")
def test_the_real_daemon_works_with_its_token_and_sees_its_collections_only(daemon: str):
    asking = {"authorization": "Bearer t0ken"}
    assert httpx.get(f"{daemon}/metrics").status_code == 401
    deadline = time.monotonic() + 120
    wanted = {"ttl", "dedup", "audit", "census"}
    while True:
        jobs = httpx.get(f"{daemon}/status", headers=asking).json()["jobs"]
        done = {name for name, one in jobs.items() if one.get("last_report")}
        if wanted <= done:
            break
        assert time.monotonic() < deadline, jobs
        time.sleep(0.1)
    assert {name: jobs[name]["last_report"]["problems"] for name in wanted} == {name: [] for name in wanted}
    assert {jobs[name]["last_report"]["outcome"] for name in wanted} == {"success"}
    assert httpx.get(f"{daemon}/readyz").status_code == 200
    metrics = httpx.get(f"{daemon}/metrics", headers=asking).text
    assert 'collection="cm_text_4_v1"' in metrics and "cm_other_4_v1" not in metrics
    assert "comemory_qdrant_up 1.0" in metrics
