"""Vectors of two collections side by side: names, and every reason why numbers must not be copied."""

from __future__ import annotations

from typing import Any

import pytest

from comemory.live import LiveCollection
from comemory.migration.vectors import Space, VectorMismatch, canonical, lay_out

D4 = {"size": 4, "distance": "Cosine"}


def live(
    name: str, vectors: dict[str, Any] | None = None, sparse: dict[str, Any] | None = None, **more: Any
) -> LiveCollection:
    return LiveCollection(name, {"vectors": vectors or {}, "sparse_vectors": sparse or {}, **more})


OURS = live("cm", {"dense": D4}, {"sparse": {}})


@pytest.mark.parametrize(
    ("source", "names", "expected"),
    [
        (live("s", {"": D4}), None, {"": "dense"}),
        (
            live("s", {"text-dense": D4}, {"sparse": {}}),
            None,
            {"text-dense": "dense", "sparse": "sparse"},
        ),
        (live("s", {"dense": D4, "x": D4}), {"x": None}, {"dense": "dense"}),
        (live("s", {"a": D4, "b": D4}), {"a": "dense", "b": None}, {"a": "dense"}),
        (
            live("s", {"": D4}, {"bm25": {}, "splade": {}}),
            {"bm25": "sparse", "splade": None},
            {"": "dense", "bm25": "sparse"},
        ),
    ],
)
def test_where_each_vector_goes(source: LiveCollection, names: Any, expected: dict[str, str]) -> None:
    found = lay_out(source, OURS, names=names)
    assert found.names == expected
    assert found.space == Space(4, "cosine")


@pytest.mark.parametrize(
    ("source", "target", "names", "said"),
    [
        (live("s", {"": {**D4, "size": 8}}), OURS, None, "has size 8, vector 'dense' of cm has 4"),
        (
            live("s", {"": {**D4, "distance": "Dot"}}),
            OURS,
            None,
            "has distance Dot, vector 'dense' of cm has Cosine",
        ),
        (
            live("s", {"": D4}),
            live("cm", {"dense": {**D4, "datatype": "uint8"}}),
            None,
            "has datatype float32, vector 'dense' of cm has uint8, which would cut its fractions off",
        ),
        (
            live("s", {"": {**D4, "multivector_config": {"comparator": "max_sim"}}}),
            OURS,
            None,
            "multivector_config",
        ),
        (live("s", {"a": D4, "b": D4}), OURS, None, "vector 'a' of s has no place in cm"),
        (live("s", {"": D4}), live("cm", {"dense": D4, "other": D4}), {"": "other"}, "'dense' would get none"),
        (live("s", {"": D4}, {"bm25": {}}), live("cm", {"dense": D4}), None, "'bm25' of s has no place"),
        (live("s", {"": D4}, {"bm25": {}}), OURS, None, "'bm25' of s has no place"),
        (live("s", {"": D4}), OURS, {"x": "dense"}, "there is no vector 'x' on the source; it has (unnamed)"),
        (live("s", {"a": D4, "b": D4}), OURS, {"a": "dense", "b": "dense"}, "go to the same one"),
        (live("s", {"": D4}), OURS, {"": "sparse"}, "has no place in cm"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(source: Any, target: Any, names: Any, said: str) -> None:
    with pytest.raises(VectorMismatch) as refused:
        lay_out(source, target, names=names)
    assert said in str(refused.value)


def test_models_are_compared_where_both_say_one() -> None:
    says = live("cm", {"dense": D4}, metadata={"embedding_model": "bge-m3"})
    source = live("s", {"": D4})
    assert lay_out(source, says).model == "bge-m3"
    assert lay_out(source, says, model="bge-m3").names == {"": "dense"}
    for given in ({"model": "e5"}, {}):
        other = live("s", {"": D4}, metadata={"embedding_model": "e5"})
        with pytest.raises(VectorMismatch, match="were made by e5, those of cm by bge-m3"):
            lay_out(other, says, **given)


def test_a_points_vectors_by_the_targets_names_and_only_those_it_has() -> None:
    layout = lay_out(live("s", {"text-dense": D4}, {"text-sparse": {}}), OURS, names={"text-sparse": "sparse"})
    sparse = {"indices": [1], "values": [0.5]}
    assert layout.apply({"text-dense": [1, 2, 3, 4], "text-sparse": sparse}) == {
        "dense": [1, 2, 3, 4],
        "sparse": sparse,
    }
    assert layout.apply({"text-dense": [1, 2, 3, 4]}) == {"dense": [1, 2, 3, 4]}
    assert layout.apply({}) == {}
    assert lay_out(live("s", {"": D4}), OURS).apply([1, 2, 3, 4]) == {"dense": [1, 2, 3, 4]}


def test_vectors_are_compared_in_single_precision_and_sparse_ones_without_regard_to_order() -> None:
    assert canonical([0.1, 0.2]) == canonical([0.10000000149011612, 0.2])
    assert canonical([0.1]) != canonical([0.1001])
    assert canonical({"indices": [2, 1], "values": [0.5, 1.0]}) == canonical(
        {"indices": [1, 2], "values": [1.0, 0.5]}
    )
    assert canonical([[1, 2], [3, 4]]) != canonical([[1, 2], [3, 5]])


def test_a_vector_of_another_precision_is_not_compared() -> None:
    half = live("cm", {"dense": {**D4, "datatype": "float16"}})
    assert lay_out(live("s", {"": D4}), half).exact == frozenset()
    assert lay_out(live("s", {"": D4}), OURS).exact == {"dense"}
