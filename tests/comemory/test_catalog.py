"""What a declaration accepts, what it refuses and says, and what the profiles set."""

from __future__ import annotations

import pydantic
import pytest

from comemory.catalog import CollectionSpec, VectorSpec, next_version
from comemory.indexes import PARAMETERS, PAYLOAD_INDEXES, IndexSpec
from comemory.ownership import owner_marks, owner_text, standing
from comemory.profiles import PROFILES, declare


def problem(**values) -> str:
    with pytest.raises(pydantic.ValidationError) as caught:
        CollectionSpec.model_validate({"name": "notes", "vectors": {"dense": {"size": 4}}, **values})
    return str(caught.value)


@pytest.mark.parametrize("name", ["cm_text_768_v1", "cm_own_768_v12"])
def test_the_dimension_in_the_name_is_the_size_of_the_vector(name):
    assert declare(name, size=768).vectors["dense"].size == 768
    said = problem(name=name, vectors={"dense": {"size": 1024}})
    assert f"the name {name} says 768 dimensions, but the size of its vector 'dense' is 1024" in said


def test_further_vectors_have_sizes_of_their_own():
    spec = declare("cm_mm_4_v1", size=4, vectors={"caption": {"size": 8, "distance": "Dot"}})
    assert {name: vector.size for name, vector in spec.vectors.items()} == {"dense": 4, "caption": 8}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"vectors": {}}, "vectors"),
        ({"vectors": {"": {"size": 4}}}, "has no name"),
        ({"vectors": {"dense": {"size": 0}}}, "vectors.dense.size"),
        ({"vectors": {"dense": {"size": 4, "distance": "cosine"}}}, "vectors.dense.distance"),
        ({"hnsw_config": {"ef": 3}}, "hnsw_config.ef"),
        ({"sparse_vectors": {"dense": {}}}, "as a dense and as a sparse vector"),
        ({"metadata": {"stack": "mine"}}, "metadata key 'stack' of notes is written by this tool"),
        ({"quantization_config": {}}, "exactly one of scalar, product, binary, disabled; got none"),
        ({"quantization_config": {"scalar": {}, "binary": {}}}, "got scalar, binary"),
        ({"name": "a/b"}, "name"),
    ],
)
def test_what_is_wrong_is_named(values, said):
    assert said in problem(**values)


def test_creation_sends_what_is_declared_and_nothing_else():
    spec = CollectionSpec(
        name="notes",
        vectors={"dense": VectorSpec.model_validate({"size": 4, "quantization_config": {"disabled": True}})},
        embedding_model="m-1",
        deletion_policy="retain",
        adopt=True,
    )
    marks = owner_marks("shop/prod", spec.deletion_policy)
    assert spec.creation(marks) == {
        "vectors": {"dense": {"size": 4, "distance": "Cosine"}},
        "metadata": {"embedding_model": "m-1", **marks},
    }


def test_multitenant_builds_a_graph_per_tenant_and_refuses_unindexed_filters():
    body = declare("cm_text_4_v1", size=4).creation()
    assert body["hnsw_config"] == {"m": 0, "payload_m": 16}
    assert body["vectors"]["dense"]["on_disk"] is True and body["on_disk_payload"] is True
    assert body["quantization_config"]["scalar"]["type"] == "int8"
    assert body["strict_mode_config"]["enabled"] is True
    assert body["strict_mode_config"]["unindexed_filtering_retrieve"] is False
    assert [spec.field for spec in PAYLOAD_INDEXES if spec.is_tenant] == ["tenant_id"]


@pytest.mark.parametrize("profile", PROFILES)
def test_explicit_values_override_key_by_key(profile):
    spec = declare(
        "cm_text_4_v1",
        size=4,
        profile=profile,
        vector={"on_disk": False},
        hnsw_config={"ef_construct": 77},
        quantization_config={"binary": {}},
    )
    base = PROFILES[profile]["collection"].get("hnsw_config", {})
    assert spec.hnsw_config.declared() == {**base, "ef_construct": 77}
    assert spec.quantization_config.scalar is None and spec.quantization_config.binary is not None
    assert spec.vectors["dense"].on_disk is False


def test_an_unknown_profile_lists_the_known_ones():
    with pytest.raises(ValueError, match="'big' is unknown; choose one of: multitenant, small, explicit"):
        declare("cm_text_4_v1", size=4, profile="big")


def test_the_next_version_of_a_name():
    assert next_version("cm_text_4_v9") == "cm_text_4_v10"
    assert next_version("notes") == "notes_v2"


@pytest.mark.parametrize("kind", PARAMETERS)
def test_an_index_takes_the_parameters_of_its_type_only(kind):
    values = {"tokenizer": "word", "min_token_len": 1, "max_token_len": 9, "stopwords": "english"}
    values |= {"stemmer": {"language": "english"}}
    for parameter in frozenset().union(*PARAMETERS.values()):
        declared = {"field": "x", "type": kind, parameter: values.get(parameter, True)}
        if parameter in PARAMETERS[kind]:
            assert parameter in IndexSpec.model_validate(declared).field_schema()
        else:
            with pytest.raises(pydantic.ValidationError, match=f"{parameter} is not a parameter of a {kind} index"):
                IndexSpec.model_validate(declared)


def test_an_integer_index_serves_something():
    with pytest.raises(pydantic.ValidationError, match="needs lookup or range"):
        IndexSpec(field="x", type="integer", lookup=False, range=False)


def test_every_payload_index_is_declared_once():
    fields = [spec.field for spec in PAYLOAD_INDEXES]
    assert len(fields) == len(set(fields)) == 25


@pytest.mark.parametrize(
    ("metadata", "whose"),
    [
        ({}, "unowned"),
        ({"team": "search"}, "unowned"),
        ({"managed_by": "comemory"}, "unowned"),
        (owner_marks("shop/prod", "retain"), "ours"),
        (owner_marks("shop/test", "retain"), "foreign"),
        ({"managed_by": "terraform"}, "foreign"),
        ({"managed_by": "terraform", "stack": "shop/prod"}, "foreign"),
    ],
)
def test_whose_a_collection_is(metadata, whose):
    assert standing(metadata, "shop/prod") == whose


def test_the_owner_in_words():
    assert owner_text(owner_marks("shop/prod", "retain")) == "stack shop/prod (managed by comemory)"
    assert owner_text({"managed_by": "terraform"}) == "an unnamed stack (managed by terraform)"
