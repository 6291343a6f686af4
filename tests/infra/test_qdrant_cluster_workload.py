"""Parts of the StatefulSet that no admission judges: keys by reference, probes, claims, placement, certificates."""

from __future__ import annotations

from typing import Any

import pytest

from infra.components.qdrant_cluster.certificates import certificate, names, secret_name
from infra.components.qdrant_cluster.scheduling import disruption_budget, placement
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from infra.components.qdrant_cluster.storage import claims
from infra.components.qdrant_cluster.workload import stateful_set


def settings(**keys: Any) -> QdrantClusterSettings:
    return QdrantClusterSettings.model_validate(keys)


def made(**keys: Any) -> dict[str, Any]:
    return stateful_set(settings(**keys), keys_secret="the-keys", keys_revision="1")


def container(**keys: Any) -> dict[str, Any]:
    (only,) = made(**keys)["template"]["spec"]["containers"]
    return only


def test_secrets_are_named_and_never_held() -> None:
    variables = {
        one["name"]: one
        for one in container(
            storage={"s3": {"bucket": "b", "secret": "bucket"}},
            environment=[{"name": "PLAIN", "value": "v"}, {"name": "HIDDEN", "secret": "mine", "key": "k"}],
        )["env"]
    }
    referred = {
        name: (one["valueFrom"]["secretKeyRef"]["name"], one["valueFrom"]["secretKeyRef"]["key"])
        for name, one in variables.items()
        if "secretKeyRef" in one.get("valueFrom", {})
    }
    s3 = "QDRANT__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__"
    assert referred == {
        "QDRANT__SERVICE__API_KEY": ("the-keys", "api-key"),
        "QDRANT__SERVICE__READ_ONLY_API_KEY": ("the-keys", "read-only-api-key"),
        f"{s3}ACCESS_KEY": ("bucket", "access-key"),
        f"{s3}SECRET_KEY": ("bucket", "secret-key"),
        "HIDDEN": ("mine", "k"),
    }
    assert variables["PLAIN"]["value"] == "v"


@pytest.mark.parametrize(("tls", "scheme"), [(None, "HTTP"), ({"secret": "s"}, "HTTPS")])
def test_probes_ask_paths_that_need_no_key_by_the_scheme_that_is_served(tls: Any, scheme: str) -> None:
    one = container(tls=tls, start_seconds=601)
    asked = {name: one[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: get["path"] for name, get in asked.items()} == {
        "startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz",
    }  # fmt: skip
    assert {get["scheme"] for get in asked.values()} == {scheme}
    assert one["startupProbe"]["failureThreshold"] * one["startupProbe"]["periodSeconds"] >= 601


def test_everything_that_is_written_to_is_a_volume_since_the_root_is_read_only() -> None:
    for keys in ({}, {"storage": {"snapshots": None, "s3": {"bucket": "b"}}}):
        spec = made(**keys)
        writable = {m["mountPath"] for m in container(**keys)["volumeMounts"] if not m.get("readOnly")}
        assert writable == {"/qdrant/storage", "/qdrant/snapshots", "/tmp"}
        templates = {one["metadata"]["name"] for one in spec["volumeClaimTemplates"]}
        volumes = templates | {one["name"] for one in spec["template"]["spec"]["volumes"]}
        assert {m["name"] for m in container(**keys)["volumeMounts"]} == volumes


def test_each_replica_has_its_claims_with_the_declared_size() -> None:
    assert claims(settings(name="q", replicas=2, storage={"size": "30Gi", "snapshots": {"size": "5Gi"}})) == {
        "storage-q-0": "30Gi", "storage-q-1": "30Gi", "snapshots-q-0": "5Gi", "snapshots-q-1": "5Gi",
    }  # fmt: skip


def test_volumes_stay_unless_asked_to_go() -> None:
    kept = made()["persistentVolumeClaimRetentionPolicy"]
    gone = made(storage={"when_destroyed": "delete"})["persistentVolumeClaimRetentionPolicy"]
    assert kept == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert gone == {"whenDeleted": "Delete", "whenScaled": "Retain"}


def test_one_pod_keeps_no_distance_and_holds_no_drain() -> None:
    assert placement(settings()) == {} and disruption_budget(settings()) is None


def test_several_pods_keep_apart_as_far_as_asked() -> None:
    several = placement(settings(replicas=3))
    assert "requiredDuringSchedulingIgnoredDuringExecution" in several["affinity"]["podAntiAffinity"]
    assert several["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "ScheduleAnyway"
    assert (disruption_budget(settings(replicas=3)) or {})["maxUnavailable"] == 1
    soft = placement(settings(replicas=3, scheduling={"one_per_node": "preferred", "zone_spread": "required"}))
    assert "preferredDuringSchedulingIgnoredDuringExecution" in soft["affinity"]["podAntiAffinity"]
    assert soft["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "DoNotSchedule"
    assert placement(settings(replicas=3, scheduling={"one_per_node": "off", "zone_spread": "off"})) == {}


def test_a_toleration_without_a_key_bears_every_taint() -> None:
    spec = placement(settings(scheduling={"tolerations": [{"effect": "NoSchedule"}, {"key": "k", "value": "v"}]}))
    assert spec["tolerations"] == [
        {"operator": "Exists", "effect": "NoSchedule"}, {"key": "k", "operator": "Equal", "value": "v"},
    ]  # fmt: skip


def test_a_certificate_holds_every_name_by_which_pods_are_reached() -> None:
    wanted = settings(tls={"issuer": {"name": "ca"}, "names": ["q.example"]})
    spec = certificate(wanted, "memory") or {}
    assert spec["secretName"] == secret_name(wanted) == "qdrant-tls"
    assert spec["dnsNames"] == names(wanted, "memory")
    assert {
        "qdrant.memory.svc", "qdrant.memory.svc.cluster.local", "*.qdrant-headless.memory.svc.cluster.local",
        "localhost", "q.example",
    } <= set(spec["dnsNames"])  # fmt: skip
    assert set(spec["usages"]) == {"server auth", "client auth"}
    there = settings(tls={"secret": "mine"})
    assert certificate(there, "memory") is None and secret_name(there) == "mine"
    assert secret_name(settings()) is None
