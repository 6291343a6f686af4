"""What a person may set of a cluster: secure without a word, contradictions refused by key."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from infra.components.qdrant_cluster.reserved import RESERVED
from infra.components.qdrant_cluster.settings import QdrantClusterSettings

DIGEST = "sha256:" + "0f" * 32


def problems(**keys: Any) -> list[str]:
    try:
        QdrantClusterSettings.model_validate(keys)
    except ValidationError as error:
        return [".".join(map(str, one["loc"])) + ": " + one["msg"] for one in error.errors()]
    return []


def test_the_defaults_hold_and_are_secure() -> None:
    settings = QdrantClusterSettings()
    assert settings.image.reference() == "docker.io/qdrant/qdrant:v1.19.1-unprivileged"
    assert settings.network.policy and settings.network.restrict_egress
    assert settings.storage.when_destroyed == "retain"
    assert not settings.telemetry and not settings.allow_scale_down


def test_a_digest_goes_before_a_tag_and_a_tag_before_the_version() -> None:
    def image(**keys: str) -> str:
        return QdrantClusterSettings.model_validate({"image": {"repository": "r/q", **keys}}).image.reference()

    assert image(version="1.18.0") == "r/q:v1.18.0-unprivileged"
    assert image(tag="mine") == "r/q:mine"
    assert image(tag="mine", digest=DIGEST) == f"r/q@{DIGEST}"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"name": "Qdrant"}, "name: "),
        ({"name": "q" * 41}, "name: "),
        ({"replicas": 0}, "replicas: "),
        ({"image": {"digest": "sha256:12"}}, "image.digest: "),
        ({"image": {"version": "latest"}}, "image.version: "),
        ({"tls": {}}, "tls: Value error, give either `secret`"),
        ({"tls": {"secret": "s", "issuer": {"name": "i"}}}, "tls: Value error, give either `secret`"),
        ({"storage": {"size": "0Gi"}}, "storage.size: "),
        ({"storage": {"snapshots": None}}, "storage.snapshots is null and no bucket"),
        ({"storage": {"s3": {"bucket": "b", "endpoint": "minio"}}}, "storage.s3.endpoint: "),
        ({"resources": {"cpu": "2", "cpu_limit": "500m"}}, "resources.cpu_limit is below resources.cpu"),
        ({"network": {"clients": [{}]}}, "it would let everybody in"),
        ({"network": {"monitoring": [{"namespace_labels": {}}]}}, "it would let everybody in"),
        ({"pod_labels": {"app.kubernetes.io/name": "x"}}, "belong to the cluster"),
        ({"environment": [{"name": "A"}]}, "A: give either `value`, or `secret` and `key`"),
        ({"environment": [{"name": "A", "secret": "s"}]}, "A: give either"),
        ({"environment": [{"name": "A", "value": "v", "secret": "s", "key": "k"}]}, "A: give either"),
        ({"environment": [{"name": "QDRANT__SERVICE__API_KEY", "value": "v"}]}, "use `keys`"),
        ({"environment": [{"name": "qdrant__service__alt_api_key", "value": "v"}]}, "use `keys`"),
        (
            {"environment": [{"name": "QDRANT__SERVICE__JWT_RBAC", "value": "false"}]},
            "JWT access control is always on",
        ),
        ({"environment": [{"name": "QDRANT__SERVICE__ENABLE_TLS", "value": "false"}]}, "use `tls`"),
        (
            {"environment": [{"name": "QDRANT__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__SECRET_KEY", "value": "v"}]},
            "s3",
        ),
        ({"environment": [{"name": "POD_NAME", "value": "v"}]}, "set by the cluster itself"),
        ({"environment": [{"name": "A", "value": "v"}, {"name": "A", "value": "w"}]}, "A is given twice"),
        ({"configuration": {"cluster": None}}, "cluster cannot be null: it is a section"),
        ({"configuration": {"service": "PLAINKEY"}}, "service cannot be a str: it is a section"),
        ({"configuration": {"Service": {"API_KEY": "PLAINKEY"}}}, "use `keys`"),
        ({"colour": "red"}, "colour: Extra inputs"),
    ],
)
def test_what_is_refused(keys: dict[str, Any], said: str) -> None:
    (told,) = problems(**keys)
    assert said in told


@pytest.mark.parametrize("key", RESERVED)
def test_what_the_cluster_decides_cannot_be_set_again(key: str) -> None:
    nested: Any = "x"
    for part in reversed(key.split(".")):
        nested = {part: nested}
    (told,) = problems(configuration=nested)
    assert f"{key} cannot be set here: " in told


def test_a_bucket_may_stand_in_for_the_volume_of_snapshots() -> None:
    assert problems(storage={"snapshots": None, "s3": {"bucket": "b"}}) == []
