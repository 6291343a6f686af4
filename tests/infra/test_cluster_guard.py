"""What a cluster may become, and the one sentence that refuses the rest."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pulumi.provider.experimental import provider as protocol

from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from infra.provider.cluster_guard import SETTINGS, ClusterGuardHandler, ClusterGuardSpec, refusals
from infra.provider.connection import Connection
from infra.provider.engine_log import EngineLog
from infra.provider.errors import ProviderError
from infra.provider.properties import UNKNOWN, to_properties
from infra.provider.resource import Context
from infra.settings import StackSettings

URN = "urn:pulumi:test::comemory::qdrant:index:ClusterGuard::it"
HANDLER = ClusterGuardHandler(Context(Connection(), EngineLog("unused")))
CLUSTER: dict[str, Any] = {
    "name": "qdrant", "namespace": "memory", "replicas": 3, "version": "1.18.2", "storage_size": "20Gi",
    "storage_class": "fast", "snapshots_size": "20Gi", "peer_tls": False,
}  # fmt: skip


def changed(**keys: Any) -> dict[str, Any]:
    return {key: value for key, value in {**CLUSTER, **keys}.items() if value is not None}


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"replicas": 5},
        {"replicas": 1, "allow_scale_down": True},
        {"storage_size": "21Gi", "snapshots_size": "1Ti"},
        {"storage_size": "20480Mi"},
        {"version": "1.18.9"},
        {"version": "1.19.0"},
        {"version": "1.16.0", "allow_version_jump": True},
        {"version": "2.0.0", "allow_version_jump": True},
        {"replicas": UNKNOWN, "namespace": UNKNOWN, "storage_size": UNKNOWN, "version": UNKNOWN},
    ],
)
def test_what_a_cluster_may_become(keys: dict[str, Any]) -> None:
    assert list(refusals(CLUSTER, changed(**keys))) == []


@pytest.mark.parametrize(
    ("keys", "key", "said"),
    [
        ({"name": "other"}, "name", "is qdrant and cannot become other; declare a second cluster"),
        ({"namespace": "other"}, "namespace", "is memory and cannot become other"),
        ({"storage_class": "slow"}, "storage_class", "of the data is fast and cannot become slow"),
        ({"storage_class": None}, "storage_class", "is fast and cannot become (default)"),
        ({"snapshots_class": "slow"}, "snapshots_class", "is (default) and cannot become slow"),
        ({"storage_size": "19.9Gi"}, "storage_size", "of the data has 20Gi and cannot shrink to 19.9Gi"),
        ({"snapshots_size": "20G"}, "snapshots_size", "of the snapshots has 20Gi and cannot shrink to 20G"),
        ({"snapshots_size": None}, "snapshots_size", "cannot lose its volume for snapshots"),
        ({"replicas": 2}, "replicas", "the shards on pod 2 would be out of reach"),
        ({"replicas": 1}, "replicas", "the shards on pods 1 to 2 would be out of reach"),
        ({"peer_tls": True}, "peer_tls", "between 3 pods cannot be turned on while they run"),
        ({"version": "1.18.1"}, "version", "Qdrant 1.18.2 cannot become the older 1.18.1"),
        ({"version": "1.20.0"}, "version", "cannot become 1.20.0 in one step; upgrade to the newest 1.19 first"),
        ({"version": "2.0.0"}, "version", "one minor version at a time"),
    ],
)
def test_what_is_refused(keys: dict[str, Any], key: str, said: str) -> None:
    (refusal,) = refusals(CLUSTER, changed(**keys))
    assert refusal[0] == key
    assert refusal[1].startswith("cluster qdrant: ") and said in refusal[1]


def test_a_volume_for_snapshots_cannot_be_added_with_any_class() -> None:
    old = {key: value for key, value in CLUSTER.items() if key != "snapshots_size"}
    (refusal,) = refusals(old, changed(snapshots_class="slow"))
    assert refusal[0] == "snapshots_size" and "cannot be given a volume" in refusal[1]


def test_a_single_pod_may_turn_encryption_on() -> None:
    assert list(refusals({**CLUSTER, "replicas": 1}, changed(replicas=1, peer_tls=True))) == []


def checked(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    request = protocol.CheckRequest(URN, to_properties(old), to_properties(new), b"")
    return [failure.property for failure in asyncio.run(HANDLER.check(request)).failures or ()]


@pytest.mark.parametrize(("key", "value"), [
    ("name", "other"), ("namespace", "other"), ("replicas", 1), ("version", "1.18.1"), ("storage_size", "1Gi"),
    ("storage_class", "slow"), ("snapshots_size", None), ("snapshots_class", "slow"), ("peer_tls", True),
])  # fmt: skip
def test_a_refusal_names_the_key_that_a_person_set(key: str, value: Any) -> None:
    request = protocol.CheckRequest(URN, to_properties(CLUSTER), to_properties(changed(**{key: value})), b"")
    (failure,) = asyncio.run(HANDLER.check(request)).failures or ()
    assert failure.property == key
    named, told, _ = failure.reason.partition(": cluster qdrant: ")
    assert told and named.startswith("comemory:")
    model: Any = StackSettings
    for step in named.removeprefix("comemory:").split("."):
        model = _inner(model.model_fields[step].annotation)  # else it is no key of a stack
    for allow in re.findall(r"\bset (\S*allow_\w+)", failure.reason):
        assert allow.removeprefix("comemory:cluster.") in QdrantClusterSettings.model_fields


def test_every_watched_property_is_set_by_some_key() -> None:
    assert SETTINGS.keys() == ClusterGuardSpec.model_fields.keys() - {"kubernetes"}


def _inner(annotation: Any) -> Any:
    """The model in `Model | None`."""
    return next((one for one in get_args(annotation) if one is not type(None)), annotation)


def test_check_compares_with_what_the_cluster_was_and_validates_what_it_is_to_be() -> None:
    assert checked({}, CLUSTER) == []
    assert checked(CLUSTER, changed(replicas=1)) == ["replicas"]
    assert checked({}, changed(storage_size="much")) == ["storage_size"]


def test_every_change_that_passes_is_remembered_in_place() -> None:
    def diff(**keys: Any) -> protocol.DiffResponse:
        request = protocol.DiffRequest(URN, "id", to_properties(CLUSTER), to_properties(changed(**keys)), [])
        return asyncio.run(HANDLER.diff(request))

    assert diff().changes is False
    found = diff(replicas=5, snapshots_size="30Gi")
    assert found.changes is True and found.diffs == ["replicas", "snapshots_size"] and not found.replaces


def test_how_the_api_server_is_reached_is_no_difference() -> None:
    new = changed(kubernetes={"context": "other"})
    request = protocol.DiffRequest(URN, "id", to_properties(CLUSTER), to_properties(new), [])
    assert asyncio.run(HANDLER.diff(request)).changes is False


def created(kubeconfig: str, *, preview: bool) -> protocol.CreateResponse:
    inputs = to_properties(changed(kubernetes={"kubeconfig": kubeconfig}))
    return asyncio.run(HANDLER.create(protocol.CreateRequest(URN, inputs, 0, preview)))


def test_a_new_guard_asks_the_api_server_and_a_preview_does_not(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "kubeconfig")
    assert created(nowhere, preview=True).resource_id is None
    with pytest.raises(ProviderError, match=r"the provider kubernetes: no way to the API server .*give kubeconfig"):
        created(nowhere, preview=False)
