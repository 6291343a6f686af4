"""compose.yaml: what it mounts is there, keys are nobody else's, and its settings work in the real programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.components.qdrant_cluster.settings import ImageSettings
from tests.support.prometheus import programs
from tools.dashboard_stage import Stage

ROOT = Path(__file__).resolve().parent.parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
KEYS = ("api-key", "read-only-key", "grafana-password", "qdrant.yaml")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The keys, as the service of that name makes them."""
    folder = tmp_path / "keys"
    folder.mkdir()
    environment = {**os.environ, "KEYS_FOLDER": str(folder)}
    subprocess.run([sys.executable, ROOT / "compose/keys.py", "make"], env=environment, check=True)
    return folder


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_ports_are_on_loopback(name: str) -> None:
    service = SERVICES[name]
    if service["image"] != "comemory-daemon:local":
        assert re.fullmatch(r"docker\.io/[\w/]+:v?\d+\.\d+\.\d+(-unprivileged)?", service["image"])
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_qdrant_is_the_one_of_the_cluster_on_kubernetes() -> None:
    assert SERVICES["qdrant"]["image"] == ImageSettings().reference()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_rights_that_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    further = {
        "cap_add",
        "user",
        "privileged",
        "devices",
        "pid",
        "ipc",
        "userns_mode",
        "network_mode",
    } & service.keys()
    if name == "keys":
        assert set(service["cap_add"]) == {"CHOWN", "DAC_OVERRIDE"}
        assert further == {"cap_add", "user", "network_mode"}
        assert service["network_mode"] == "none"
    else:
        assert not further


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_watched_or_ends_and_waits_for_what_it_needs(name: str) -> None:
    service = SERVICES[name]
    stays = "restart" in service
    assert stays == (name != "keys")
    assert stays == bool(service.get("healthcheck", {}).get("test"))
    for needed, how in service.get("depends_on", {}).items():
        ends = "restart" not in SERVICES[needed]
        assert how == {"condition": "service_completed_successfully" if ends else "service_healthy"}
    mounts_keys = any(volume.startswith("keys:") for volume in service["volumes"])
    assert not stays or mounts_keys == ("keys" in service["depends_on"])


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_is_there(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source, target, *mode = volume.split(":")
        if source.startswith("."):
            assert (ROOT / source).exists()
            assert mode == ["ro"]
        else:
            assert source in COMPOSE["volumes"]
        assert target.startswith("/")


def test_no_secret_is_in_an_environment_or_a_command_line() -> None:
    text = json.dumps([[s.get("environment", {}), s.get("command", [])] for s in SERVICES.values()])
    assert "API_KEY" not in text
    assert re.findall(r"PASSWORD\w*", text) == ["PASSWORD__FILE"]


def test_keys_differ_are_their_owners_only_and_stay(keys: Path) -> None:
    before = {name: (keys / name).read_text() for name in KEYS}
    assert len({before[name] for name in KEYS[:3]}) == 3
    assert all(stat.S_IMODE((keys / name).stat().st_mode) == 0o400 for name in KEYS)
    assert yaml.safe_load(before["qdrant.yaml"]) == {
        "service": {"api_key": before["api-key"], "read_only_api_key": before["read-only-key"]}
    }
    script = [sys.executable, ROOT / "compose/keys.py"]
    environment = {**os.environ, "KEYS_FOLDER": str(keys)}
    subprocess.run([*script, "make"], env=environment, check=True)
    assert {name: (keys / name).read_text() for name in KEYS} == before
    said = subprocess.run([*script, "show"], env=environment, check=True, capture_output=True, text=True)
    assert f"grafana-password: {before['grafana-password']}\n" in said.stdout


def test_prometheus_takes_its_configuration(keys: Path, tmp_path: Path) -> None:
    text = (ROOT / "compose/prometheus.yaml").read_text()
    text = text.replace("/keys/", f"{keys}/").replace("/etc/prometheus/rules", str(ROOT / "dashboards/generated"))
    file = tmp_path / "prometheus.yaml"
    file.write_text(text)
    said = subprocess.run(
        [programs().promtool, "check", "config", file], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert "2 rule files found" in said.stdout


def test_the_daemon_takes_its_settings(keys: Path, tmp_path: Path) -> None:
    file = tmp_path / "daemon.yaml"
    file.write_text((ROOT / "compose/daemon.yaml").read_text().replace("/keys/", f"{keys}/"))
    said = subprocess.run(
        [sys.executable, "-m", "ops", "settings", "check", "--settings", file],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert SERVICES["daemon"]["command"] == ["daemon", "--settings", "/compose/daemon.yaml"]


@pytest.mark.embedded_only("starts an endpoint of its own, with the keys of compose.yaml")
def test_the_daemon_and_prometheus_run_with_what_compose_gives_them(
    keys: Path, tmp_path: Path, start_endpoint: Callable[..., Any]
) -> None:
    """Only addresses are others, and scrapes come sooner."""
    found = programs()
    given = yaml.safe_load((keys / "qdrant.yaml").read_text())["service"]
    qdrant = start_endpoint(**given).url
    settings, config = tmp_path / "daemon.yaml", tmp_path / "prometheus.yaml"
    text = (ROOT / "compose/daemon.yaml").read_text().replace("/keys/", f"{keys}/")
    settings.write_text(text.replace("http://qdrant:6333", qdrant) + "  port: 0\n")
    with closing(Stage(tmp_path, found)) as scene:
        scene.launch("daemon", ["-m", "ops", "daemon", "--settings", settings])
        text = (ROOT / "compose/prometheus.yaml").read_text().replace("/keys/", f"{keys}/").replace("30s", "1s")
        text = text.replace("/etc/prometheus/rules", str(ROOT / "dashboards/generated"))
        daemon = f"127.0.0.1:{scene.urls['daemon'].rpartition(':')[2]}"
        config.write_text(text.replace("daemon:9464", daemon).replace("qdrant:6333", qdrant.rpartition("/")[2]))
        scene.run_prometheus(config)
        for expression in (
            'up{job="comemory"} == 1',
            'up{job="qdrant", cluster="local"} == 1',
            "comemory_qdrant_up == 1",
            'job_name:comemory_job_last_success_timestamp_seconds:max{job_name="census"}',
        ):
            scene.until(lambda asked=expression: scene.query(asked), 120, f"never: {expression}")
        assert not scene.firing()
        # The addresses of their healthchecks, asked of the programs themselves.
        for name in ("daemon", "prometheus"):
            (asked,) = re.findall(
                r"http://127\.0\.0\.1:\d+(/[-\w/]+)", " ".join(SERVICES[name]["healthcheck"]["test"])
            )
            with urllib.request.urlopen(f"{scene.urls[name].rstrip('/')}{asked}") as answer:
                assert answer.status == 200


@pytest.mark.embedded_only("starts an endpoint of its own, with a key")
def test_qdrants_healthcheck_works_where_there_is_only_bash(start_endpoint: Callable[..., Any]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not here")
    kind, program, *arguments = SERVICES["qdrant"]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "bash")

    def healthy(port: str, path: str = "/readyz") -> bool:
        # Two signs stand for one in a compose file.
        command = [text.replace("$$", "$").replace("/6333", f"/{port}") for text in arguments]
        command = [bash, *(text.replace("/readyz", path) for text in command)]
        return subprocess.run(command, env={"PATH": ""}, check=False, capture_output=True).returncode == 0

    port = start_endpoint(api_key="secret").url.rpartition(":")[2]
    assert healthy(port)
    assert not healthy(port, "/absent")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        assert not healthy(str(taken.getsockname()[1]))


def test_grafana_finds_what_it_is_told() -> None:
    source = yaml.safe_load((ROOT / "compose/grafana/datasources/prometheus.yaml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in SERVICES
    provider = yaml.safe_load((ROOT / "compose/grafana/dashboards/comemory.yaml").read_text())["providers"][0]
    assert f"./dashboards/generated:{provider['options']['path']}:ro" in SERVICES["grafana"]["volumes"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / "dashboards/generated" / Path(home).name).exists()


def test_docker_compose_reads_it() -> None:
    docker = shutil.which("docker")
    version = docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False)
    if not version or version.returncode != 0:
        pytest.skip("docker with its compose plugin is not here")
    said = subprocess.run(
        [str(docker), "compose", "--file", ROOT / "compose.yaml", "config", "--quiet"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
