"""Declared against live: what is found, what is never found, and that applying it leads to rest."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comemory.catalog import (
    CollectionSpec,
    HnswSpec,
    OptimizersSpec,
    QuantizationSpec,
    ScalarQuantization,
    StrictModeSpec,
    VectorSpec,
)
from comemory.drift import (
    Change,
    Impossible,
    IndexMissing,
    IndexRebuild,
    IndexUnexpected,
    InPlace,
    VectorMissing,
    compare,
    observed,
    patch_body,
)
from comemory.indexes import IndexSpec
from comemory.live import LiveCollection, LiveIndex

DEFAULTS: dict[str, Any] = {
    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000, "on_disk": False},
    "optimizers_config": {"deleted_threshold": 0.2, "indexing_threshold": 10000, "memmap_threshold": None},
    "shard_number": 1,
    "replication_factor": 1,
    "write_consistency_factor": 1,
    "on_disk_payload": True,
}
"""What a new collection has on a real server when nothing is said."""


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def created(spec: CollectionSpec, indexes: tuple[IndexSpec, ...] = ()) -> LiveCollection:
    """What the server has after the creation request."""
    found = {spec.field: LiveIndex(spec.type, spec.parameters()) for spec in indexes}
    return LiveCollection(spec.name, merged(DEFAULTS, spec.creation()), found)


def applied(live: LiveCollection, changes: list[Change]) -> LiveCollection:
    """What the server has after the requests that the changes stand for.

    A quantization is replaced, the rest is merged.
    """
    settings, indexes = copy.deepcopy(dict(live.settings)), dict(live.indexes)
    body = patch_body(changes)
    settings = merged(settings, body.pop("params", {}))
    for place, part in [(settings, body)] + [
        (settings["vectors"][name], part) for name, part in body.get("vectors", {}).items()
    ]:
        if (quantization := part.pop("quantization_config", None)) is not None:
            place["quantization_config"] = None if quantization == "Disabled" else quantization
    settings = merged(settings, body)
    for change in changes:
        match change:
            case VectorMissing(vector=vector, spec=VectorSpec() as spec):
                settings["vectors"][vector] = {"size": spec.size, "distance": spec.distance}
            case IndexMissing(spec=spec) | IndexRebuild(spec=spec):
                indexes[spec.field] = LiveIndex(spec.type, spec.parameters())
    return LiveCollection(live.name, settings, indexes)


maybe = st.none()
booleans = st.none() | st.booleans()
hnsw = st.builds(
    HnswSpec,
    m=maybe | st.sampled_from([0, 16, 32]),
    ef_construct=maybe | st.integers(4, 300),
    on_disk=booleans,
    payload_m=maybe | st.sampled_from([0, 16]),
)
quantization = st.sampled_from(
    [
        None,
        QuantizationSpec(disabled=True),
        QuantizationSpec(scalar=ScalarQuantization()),
        QuantizationSpec(scalar=ScalarQuantization(quantile=0.99, always_ram=True)),
        QuantizationSpec.model_validate({"product": {"compression": "x16"}}),
        QuantizationSpec.model_validate({"binary": {"always_ram": False, "encoding": "two_bits"}}),
    ]
)


@st.composite
def specs(draw: st.DrawFn) -> CollectionSpec:
    vectors = {
        name: VectorSpec(
            size=4,
            on_disk=draw(booleans),
            hnsw_config=draw(st.none() | hnsw),
            quantization_config=draw(quantization),
        )
        for name in draw(st.sampled_from([["dense"], ["dense", "code"]]))
    }
    return CollectionSpec(
        name="cm_text_4_v1",
        vectors=vectors,
        hnsw_config=draw(st.none() | hnsw),
        optimizers_config=draw(
            st.none()
            | st.builds(
                OptimizersSpec, deleted_threshold=maybe | st.floats(0, 1), indexing_threshold=maybe | st.just(0)
            )
        ),
        quantization_config=draw(quantization),
        strict_mode_config=draw(
            st.none() | st.builds(StrictModeSpec, enabled=booleans, max_query_limit=maybe | st.just(9))
        ),
        replication_factor=draw(maybe | st.integers(1, 3)),
        on_disk_payload=draw(booleans),
        metadata=draw(
            st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.integers() | st.lists(st.text(max_size=3)))
        ),
        embedding_model=draw(maybe | st.sampled_from(["m1", "m2"])),
    )


indexes = st.lists(
    st.sampled_from(["tags", "lang", "ttl_days"]).flatmap(
        lambda field: st.one_of(
            st.builds(
                IndexSpec, field=st.just(field), type=st.just("keyword"), is_tenant=booleans, on_disk=booleans
            ),
            st.builds(
                IndexSpec, field=st.just(field), type=st.just("integer"), range=st.sampled_from([None, True])
            ),
            st.builds(
                IndexSpec, field=st.just(field), type=st.just("text"), stopwords=st.sampled_from([None, "english"])
            ),
        )
    ),
    max_size=3,
    unique_by=lambda spec: spec.field,
).map(tuple)


@given(specs(), indexes)
def test_what_was_just_made_as_declared_shows_no_change(spec, declared):
    assert compare(spec, created(spec, declared), declared) == []


# A declaration of four parts takes milliseconds to draw; on a busy machine Hypothesis takes that for a defect.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(specs(), specs(), indexes, indexes)
def test_applying_the_changes_leads_to_no_change(spec, other, declared, there):
    live = created(other, there)
    for _ in range(2):  # an added vector is tuned in a second step
        changes = compare(spec, live, declared)
        assert not [change for change in changes if isinstance(change, Impossible)]
        live = applied(live, changes)
    assert [change for change in compare(spec, live, declared) if not isinstance(change, IndexUnexpected)] == []


@given(specs(), specs())
def test_what_is_observed_of_the_declared_keys_differs_where_the_collection_does(spec, other):
    """The provider keeps `observed` in its state: comparing with it must find what comparing with the server
    finds.
    """
    live = created(other)
    declared = spec.declared()
    wanted = {**declared, "metadata": spec.stored_metadata()}
    seen = LiveCollection(spec.name, {**observed(wanted, live.settings), "name": spec.name})
    assert {change.path for change in compare(spec, seen) if isinstance(change, InPlace)} == {
        change.path for change in compare(spec, live) if isinstance(change, InPlace)
    }


@given(specs(), indexes)
def test_every_change_is_one_line_that_names_the_collection(spec, declared):
    live = created(spec, declared)
    other = CollectionSpec(name="cm_text_8_v1", vectors={"dense": VectorSpec(size=8)}, shard_number=3)
    for change in [*compare(spec, LiveCollection(spec.name, DEFAULTS), declared), *compare(other, live, ())]:
        assert change.text.startswith(f"{change.collection}: ") and "\n" not in change.text


@pytest.mark.parametrize(
    ("vector", "more", "path"),
    [
        ({"size": 8}, {}, "vectors.dense.size is 4 and cannot be changed to 8"),
        ({"size": 4, "distance": "Dot"}, {}, "vectors.dense.distance is Cosine and cannot be changed to Dot"),
        ({"size": 4, "datatype": "uint8"}, {}, "vectors.dense.datatype is float32 and cannot be changed to uint8"),
        ({"size": 4, "multivector_config": {}}, {}, "vectors.dense.multivector_config is unset"),
        ({"size": 4}, {"sharding_method": "custom"}, "sharding_method is auto and cannot be changed to custom"),
        ({"size": 4}, {"shard_number": 2}, "shard_number is 1 and cannot be changed to 2"),
    ],
)
def test_what_cannot_be_changed_says_what_to_declare_instead(vector, more, path):
    live = created(CollectionSpec(name="notes_v3", vectors={"dense": VectorSpec(size=4)}))
    (change,) = compare(
        CollectionSpec.model_validate({"name": "notes_v3", "vectors": {"dense": vector}, **more}), live
    )
    assert isinstance(change, Impossible)
    assert path in change.text and "declare notes_v4 and move the data" in change.text


def test_an_unnamed_vector_cannot_become_a_named_one():
    result = {"config": {"params": {"vectors": {"size": 4, "distance": "Dot"}}}, "payload_schema": {}}
    live = LiveCollection.from_rest("plain", result)
    (change,) = compare(CollectionSpec(name="plain", vectors={"dense": VectorSpec(size=4)}), live)
    assert isinstance(change, Impossible) and "one unnamed vector" in change.text


def test_an_index_that_nobody_declared_is_reported_and_nothing_else():
    spec = CollectionSpec(name="notes", vectors={"dense": VectorSpec(size=4)})
    live = created(spec, (IndexSpec(field="lang", type="keyword"),))
    assert compare(spec, live, ()) == [IndexUnexpected("notes", "lang", "keyword")]
    assert compare(spec, live) == []


def test_what_a_real_server_answers_is_as_it_was_declared():
    """The answers of a Qdrant 1.19 to a creation with every knob: no default of the server shows as drift."""
    recorded = Path(__file__).parents[1] / "embedded" / "data"
    (source,) = recorded.glob("qdrant_rest_1.19*.jsonl")
    answers = {entry["name"]: entry for entry in map(json.loads, source.read_text().splitlines())}
    body = answers["create with every knob"]["request"]["body"]
    reserved = ("managed_by", "schema_version")
    metadata = {key: value for key, value in body["metadata"].items() if key not in reserved}
    spec = CollectionSpec.model_validate({**body, "name": "cm_text_4_v1", "metadata": metadata})
    live = LiveCollection.from_rest("cm_text_4_v1", answers["get collection"]["response"]["body"]["result"])
    assert compare(spec, live) == []

    patched = LiveCollection.from_rest("cm_text_4_v1", answers["get with indexes"]["response"]["body"]["result"])
    assert {change.path: (change.live, change.declared) for change in compare(spec, patched)} == {
        ("hnsw_config", "ef_construct"): (200, 128),
        ("optimizers_config", "deleted_threshold"): (0.2, 0.1),
        ("strict_mode_config", "enabled"): (False, True),
        ("on_disk_payload",): (False, True),
    }
    declared = [
        IndexSpec(field="created_at", type="datetime", is_principal=True),
        IndexSpec(field="ttl_days", type="integer", lookup=True, range=True),
        IndexSpec(field="importance", type="float", on_disk=True),
        IndexSpec(field="lang", type="keyword"),
    ]
    found = [
        change for change in compare(spec, patched, declared) if not isinstance(change, InPlace | IndexUnexpected)
    ]
    assert [change.text for change in found] == [
        "cm_text_4_v1: index on importance will be dropped and rebuilt (on_disk false -> true); "
        "until it is built, filters on it are slow, or refused in strict mode",
        "cm_text_4_v1: index on lang (keyword) is missing (built in place)",
    ]
