"""Errors of a stack's configuration name the key as it stands there; defaults and merging are as documented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from comemory.indexes import PAYLOAD_INDEXES
from infra.settings import ConfigurationError, EndpointSettings, load
from sample.vectors import MODEL as SAMPLE_MODEL
from tests.infra.conftest import ROOT

TEXT = {"name": "cm_text_1024_v1", "embedding_model": "m", "dimension": 1024}
CODE = {"name": "cm_code_768_v1", "embedding_model": "m", "dimension": 768}
DAEMON = json.dumps({"image": {"repository": "r/comemory", "tag": "1"}})


def given(**values: Any) -> dict[str, str]:
    return {f"comemory:{key}": json.dumps(value) for key, value in values.items()}


@pytest.mark.parametrize(
    ("values", "key", "says"),
    [
        ({"collections": [TEXT, {**CODE, "dimension": 512}]}, "comemory:collections[1].dimension", "512"),
        ({"collections": [TEXT, {**CODE, "dimension": 0}]}, "comemory:collections[1].dimension", "greater"),
        ({"collections": [{**TEXT, "dimension": "many"}]}, "comemory:collections[0].dimension", "'many'"),
        ({"collections": [{**TEXT, "embedding_model": ""}]}, "comemory:collections[0].embedding_model", "at least"),
        ({"collections": [{**TEXT, "name": "text"}]}, "comemory:collections[0].name", "cm_<type>_<dim>_v<version>"),
        ({"collections": [{**TEXT, "name": "cm_song_1024_v1"}]}, "comemory:collections[0].name", "comemory:types"),
        ({"collections": [TEXT, TEXT]}, "comemory:collections[1].name", "collections[0]"),
        ({"collections": [{**TEXT, "metric": "haversine"}]}, "comemory:collections[0].metric", "'Haversine'"),
        ({"collections": [{**TEXT, "profile": "huge"}]}, "comemory:collections[0].profile", "'huge'"),
        ({"collections": [{**TEXT, "colour": 1}]}, "comemory:collections[0].colour", "no such key"),
        ({"collections": [{**TEXT, "hnsw_config": {"m": -1}}]}, "comemory:collections[0].hnsw_config.m", "-1"),
        ({"collections": [{**TEXT, "vector": {"sise": 3}}]}, "comemory:collections[0].vectors.dense.sise", "no"),
        ({"collections": [{**TEXT, "alias": "cm_code_768_v1"}, CODE]}, "comemory:collections[0].alias", "name"),
        ({"collections": [{**TEXT, "alias": "a"}, {**CODE, "alias": "a"}]}, "comemory:collections[1].alias", ""),
        (
            {"collections": [{**TEXT, "indexes": [{"field": "x", "type": "bool", "lookup": True}]}]},
            "comemory:collections[0].indexes[0]", "lookup is not a parameter of a bool index",
        ),
        (
            {"collections": [{**TEXT, "indexes": [{"field": "ttl_days", "type": "keyword"}]}]},
            "comemory:collections[0].indexes[0].type", "integer",
        ),
        (
            {"collections": [{**TEXT, "indexes": [{"field": "x", "type": "keyword"}] * 2}]},
            "comemory:collections[0].indexes[1].field", "more than once",
        ),
        ({"endpoint": {"url": "localhost:6333"}}, "comemory:endpoint.url", "http://localhost:6333"),
        ({"endpoint": {"timeout": 0}}, "comemory:endpoint.timeout", "0"),
        ({"colections": []}, "comemory:colections", "no such key"),
    ],
)  # fmt: skip
def test_an_error_names_the_key(values: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(given(**values))
    lines = str(caught.value).splitlines()
    assert [line for line in lines if line.startswith(f"{key}: ") and says in line], lines
    assert not [line for line in lines if not line.startswith("comemory:")]


def test_all_errors_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(given(collections=[{**TEXT, "dimension": 3}, {**CODE, "name": "x"}]))
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        "comemory:collections[0].dimension",
        "comemory:collections[1].name",
    ]


@pytest.mark.parametrize(
    "endpoint",
    [
        {"api_key": 17171717},
        {"url": "http://u:17171717@host"},
        {"url": "http://host?api_key=17171717"},
        "17171717",
        {"api_key": {"x": "17171717"}},
        {"api_key": "17171717\n"},
        {"api_key": "17171717ключ"},
    ],
)
def test_an_error_holds_no_secret(endpoint: object) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(given(endpoint=endpoint))
    assert "17171717" not in str(caught.value)


def test_a_plain_text_where_a_mapping_belongs_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"^comemory:endpoint: should be a YAML list or mapping"):
        load({"comemory:endpoint": "http://localhost"})


def test_nothing_declared_means_the_three_default_collections() -> None:
    declared = load({"kubernetes:context": "kind"}).resolved()
    assert {one.spec.name: one.spec.vectors["dense"].size for one in declared} == {
        "cm_text_1024_v1": 1024, "cm_code_768_v1": 768, "cm_mm_512_v1": 512,
    }  # fmt: skip
    for one in declared:
        assert one.indexes == PAYLOAD_INDEXES
        assert one.spec.hnsw_config is not None
        assert (one.spec.hnsw_config.m, one.spec.hnsw_config.payload_m) == (0, 16)
        assert one.spec.strict_mode_config is not None
        assert one.spec.strict_mode_config.enabled is True


def test_the_committed_example_says_the_same_as_the_defaults_but_for_the_samples_model() -> None:
    example = yaml.safe_load((ROOT / "Pulumi.local.yaml.example").read_text())["config"]
    for one, default in zip(example["comemory:collections"], load({}).collections, strict=True):
        assert one["embedding_model"] == SAMPLE_MODEL
        one["embedding_model"] = default.embedding_model
    assert load({key: json.dumps(value) for key, value in example.items()}) == load({})


def test_explicit_values_go_before_the_profile_and_indexes_are_merged() -> None:
    (one,) = load(given(
        types=["audio"],
        collections=[{
            "name": "cm_audio_16_v2", "embedding_model": "m", "dimension": 16, "metric": "dot",
            "hnsw_config": {"payload_m": 32}, "vector": {"on_disk": False},
            "profile": "multitenant", "indexes": [
                {"field": "tags", "type": "keyword", "on_disk": True}, {"field": "mood", "type": "keyword"},
            ],
            "alias": "audio",
        }],
    )).resolved()  # fmt: skip
    assert one.spec.hnsw_config is not None
    assert (one.spec.hnsw_config.m, one.spec.hnsw_config.payload_m) == (0, 32)
    assert (one.spec.vectors["dense"].distance, one.spec.vectors["dense"].on_disk) == ("Dot", False)
    assert one.alias == "audio"
    by_field = {index.field: index for index in one.indexes}
    assert len(one.indexes) == len(by_field) == len(PAYLOAD_INDEXES) + 1
    assert by_field["tags"].on_disk is True
    assert by_field["tenant_id"].is_tenant is True


def test_where_the_address_comes_from() -> None:
    configured = EndpointSettings(url="https://q.example/")
    assert configured.address({"QDRANT_URL": "http://other"}) == "https://q.example"
    assert EndpointSettings().address({"QDRANT_URL": "http://other:1/"}) == "http://other:1"
    assert EndpointSettings().address({"COMEMORY_PORT": "7000"}) == "http://127.0.0.1:7000"
    assert EndpointSettings().address({}) == "http://127.0.0.1:6333"
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        EndpointSettings().address({"QDRANT_URL": "nowhere"})


def test_the_example_for_kubernetes_holds() -> None:
    example = yaml.safe_load((ROOT / "Pulumi.kubernetes.yaml.example").read_text())["config"]
    settings = load({key: json.dumps(value) for key, value in example.items()})
    assert settings.cluster is not None and settings.cluster.replicas == 3
    assert settings.cluster.tls is not None and settings.cluster.tls.issuer is not None
    assert settings.namespace.all_labels() == {"pod-security.kubernetes.io/enforce": "restricted"}


def test_a_cluster_of_another_stack_is_named_as_plain_text() -> None:
    assert load({"comemory:cluster_stack": "organization/comemory/cluster"}).cluster_stack == (
        "organization/comemory/cluster"
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"cluster": {"replicas": 3}}, "comemory:collections[0].replication_factor: is not given"),
        ({"cluster": {"tls": {}}}, "comemory:cluster.tls: give either `secret`"),
        ({"cluster": {"storage": {"size": "20GB"}}}, "comemory:cluster.storage.size: should be an amount"),
        (
            {"cluster": {"configuration": {"service": {"api_key": "S3CRET"}}}},
            "keys are never in a file; use `keys`",
        ),
        ({"namespace": {"name": "Co Memory"}}, "comemory:namespace.name: "),
        (
            {"cluster": {}, "monitoring": {"qdrant": {"prefix": "other_"}}},
            "comemory:monitoring.qdrant.prefix: 'other_' is not what the cluster of this stack has: ''",
        ),
        (
            {"cluster": {"configuration": {"service": {"metrics_prefix": "a-"}}}, "monitoring": {}},
            "comemory:cluster.configuration.service.metrics_prefix: 'a-' cannot begin the name of a metric",
        ),
        ({"monitoring": {"qdrant": {"jobs": "("}}}, "comemory:monitoring.qdrant.jobs: is no regular expression"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_named_by_its_key(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        load(given(**values))
    assert said in str(told.value)
    assert "S3CRET" not in str(told.value)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"comemory:cluster": "{}", "comemory:cluster_stack": "o/p/s"}, "comemory:cluster_stack"),
        (
            {"comemory:endpoint": '{"url": "http://q"}', "comemory:cluster_stack": "o/p/s"},
            "comemory:endpoint.url",
        ),
        ({"comemory:cluster_stack": "cluster"}, "comemory:cluster_stack"),
        ({"comemory:daemon": DAEMON}, "comemory:daemon"),
        ({"comemory:daemon": DAEMON, "comemory:endpoint": '{"url": "http://q"}'}, "comemory:daemon.key"),
        (
            {"comemory:daemon": DAEMON, "comemory:endpoint": '{"url": "http://127.0.0.1:1", "api_key": "k"}'},
            "comemory:endpoint.url",
        ),
        ({"comemory:daemon": DAEMON, "comemory:cluster": '{"name": "comemory-daemon"}'}, "comemory:daemon.name"),
        ({"comemory:daemon": DAEMON, "comemory:cluster": "{}", "comemory:collections": "[]"}, "comemory:daemon"),
    ],
)  # fmt: skip
def test_a_stack_has_one_place_where_qdrant_is(
    values: dict[str, str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match=f"^{key}: "):
        load(values)


def test_what_of_a_stack_is_on_kubernetes() -> None:
    assert not load({}).on_kubernetes
    assert load({"comemory:cluster": "{}"}).on_kubernetes
    endpoint = '{"url": "http://q", "api_key": "a-key"}'
    assert load({"comemory:endpoint": endpoint, "comemory:daemon": DAEMON}).on_kubernetes


def test_the_authority_is_a_text_or_read_from_a_file(tmp_path: Path) -> None:
    text = "-----BEGIN CERTIFICATE-----\nabc\n"
    file = tmp_path / "ca.pem"
    file.write_text(text)
    assert EndpointSettings(tls_ca=text).authority() == text
    assert EndpointSettings(tls_ca=str(file)).authority() == text
    assert EndpointSettings().authority() is None
    with pytest.raises(ConfigurationError, match=r"comemory:endpoint\.tls_ca: cannot be read"):
        EndpointSettings(tls_ca=str(tmp_path / "none")).authority()
