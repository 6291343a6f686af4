"""Qdrant's configuration and its start script, which is run here with a stand-in for Qdrant."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.components.qdrant_cluster.configuration import (
    CONFIGURATION_FILE,
    checksum,
    config_map_data,
    configuration,
    start_script,
)
from infra.components.qdrant_cluster.settings import QdrantClusterSettings


def settings(**keys: Any) -> QdrantClusterSettings:
    return QdrantClusterSettings.model_validate(keys)


def test_access_control_and_cluster_mode_are_on_and_no_key_is_in_the_file() -> None:
    written = config_map_data(settings())[CONFIGURATION_FILE]
    read = yaml.safe_load(written)
    assert read["service"]["jwt_rbac"] is True and read["service"]["enable_tls"] is False
    assert read["cluster"] == {"enabled": True, "p2p": {"port": 6335, "enable_tls": False}}
    assert read["telemetry_disabled"] is True
    assert "api_key" not in written
    assert "tls" not in read


@pytest.mark.parametrize(("given", "host"), [({}, "0.0.0.0"), ({"listen": "::"}, "::")])
def test_it_binds_every_address_of_the_pod(given: dict[str, str], host: str) -> None:
    read = yaml.safe_load(config_map_data(settings(**given))[CONFIGURATION_FILE])
    assert read["service"]["host"] == host


@pytest.mark.parametrize("peers", [True, False])
def test_certificates_serve_clients_and_if_wanted_peers(peers: bool) -> None:
    made = configuration(settings(tls={"secret": "s", "peers": peers}))
    assert made["service"]["enable_tls"] is True
    assert made["cluster"]["p2p"]["enable_tls"] is peers
    assert made["tls"]["cert"] == "/qdrant/tls/tls.crt" and made["tls"]["key"] == "/qdrant/tls/tls.key"
    assert ("ca_cert" in made["tls"]) is peers, "peers are checked against it; clients need it not"


def test_a_bucket_is_named_without_its_credentials() -> None:
    made = configuration(
        settings(storage={"s3": {"bucket": "b", "region": "eu-1", "endpoint": "http://minio:9000", "secret": "s3"}})
    )
    assert made["storage"]["snapshots_config"] == {
        "snapshots_storage": "s3",
        "s3_config": {"bucket": "b", "region": "eu-1", "endpoint_url": "http://minio:9000"},
    }


def test_further_keys_are_merged_and_change_the_checksum() -> None:
    further = settings(configuration={"storage": {"performance": {"max_search_threads": 4}}, "new": [1]})
    made = configuration(further)
    assert made["storage"]["performance"] == {"max_search_threads": 4}
    assert made["storage"]["storage_path"] == "/qdrant/storage"
    assert made["new"] == [1]
    assert checksum(further) != checksum(settings())
    assert checksum(settings(replicas=5)) == checksum(settings()), "more replicas restart nobody"


@pytest.mark.parametrize(
    ("pod", "tls", "arguments"),
    [
        ("qdrant-0", None, ["--uri", "http://qdrant-0.qdrant-headless.memory.svc.cluster.local:6335"]),
        (
            "qdrant-2",
            {"secret": "s"},
            [
                "--bootstrap", "https://qdrant-0.qdrant-headless.memory.svc.cluster.local:6335",
                "--uri", "https://qdrant-2.qdrant-headless.memory.svc.cluster.local:6335",
            ],
        ),
        (
            "qdrant-10",
            {"secret": "s", "peers": False},
            [
                "--bootstrap", "http://qdrant-0.qdrant-headless.memory.svc.cluster.local:6335",
                "--uri", "http://qdrant-10.qdrant-headless.memory.svc.cluster.local:6335",
            ],
        ),
    ],
)  # fmt: skip
def test_the_first_pod_founds_the_cluster_and_the_others_join_it(
    tmp_path: Path, pod: str, tls: dict[str, Any] | None, arguments: list[str]
) -> None:
    stand_in = tmp_path / "qdrant"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$$" "$@"\n')
    stand_in.chmod(0o755)
    script = tmp_path / "start.sh"
    script.write_text(start_script(settings(tls=tls)))
    started = subprocess.Popen(
        ["/bin/sh", script],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "POD_NAME": pod, "POD_NAMESPACE": "memory"},
        stdout=subprocess.PIPE,
        text=True,
    )
    out, _ = started.communicate(timeout=30)
    process, *given = out.splitlines()
    assert given == arguments
    assert int(process) == started.pid, "Qdrant itself has to get the signal to stop, so no shell stays in between"


def test_the_checksum_covers_the_start_script() -> None:
    other = settings(cluster_domain="example.org")
    assert configuration(other) == configuration(settings())
    assert checksum(other) != checksum(settings())
    assert json.dumps(config_map_data(other)) != json.dumps(config_map_data(settings()))
