from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from comemory.access import can_read, read_filter
from sample.content import COLLECTIONS, points
from sample.load import Loaded, MissingCollectionsError, load
from sample.people import people

POINTS = points()
EVERYBODY = sorted(people())


def stored(client: QdrantClient, collection: str, only: models.Filter | None = None) -> dict[str, Any]:
    """Every point of a collection, by id; the sample is larger than a page."""
    found: dict[str, Any] = {}
    offset: Any = None
    while True:
        page, offset = client.scroll(collection, scroll_filter=only, limit=100, offset=offset, with_payload=True)
        found |= {str(record.id): record.payload for record in page}
        if offset is None:
            return found


def expected(kind: str) -> dict[str, Any]:
    return {point.id: point.payload for point in POINTS if point.type == kind}


def test_every_point_is_stored_as_it_was_written(qdrant: QdrantClient, loaded: Mapping[str, str]) -> None:
    for kind, name in loaded.items():
        assert stored(qdrant, name) == expected(kind)
        assert qdrant.count(name, exact=True).count == len(expected(kind))


def test_loading_twice_changes_nothing(qdrant: QdrantClient, loaded: Mapping[str, str]) -> None:
    assert load(qdrant, loaded) == [Loaded(name, 0, 0, len(expected(kind))) for kind, name in loaded.items()]
    for kind, name in loaded.items():
        assert stored(qdrant, name) == expected(kind)


def test_a_load_mends_what_is_missing_or_changed_and_leaves_the_rest(
    qdrant: QdrantClient, make_collections: Callable[[], dict[str, str]]
) -> None:
    names = make_collections()
    few = [point for point in POINTS if point.type == "mm"]
    load(qdrant, names, few)
    lost, altered = few[0], few[1]
    foreign = models.PointStruct(id=7, vector={"dense": [1.0] * 512}, payload={"of": "somebody else"})
    qdrant.delete(names["mm"], points_selector=[lost.id], wait=True)
    qdrant.set_payload(names["mm"], payload={"tenant_id": "t_elsewhere"}, points=[altered.id], wait=True)
    qdrant.upsert(names["mm"], points=[foreign], wait=True)
    results = {result.collection: result for result in load(qdrant, names, few)}
    assert results[names["mm"]] == Loaded(names["mm"], 1, 1, len(few) - 2)
    assert stored(qdrant, names["mm"]) == expected("mm") | {"7": foreign.payload}


def test_a_load_once_leaves_a_collection_alone_that_holds_the_sample_and_fills_the_others(
    qdrant: QdrantClient, make_collections: Callable[[], dict[str, str]]
) -> None:
    names = make_collections()
    few = [point for point in POINTS if point.type in ("code", "mm")]
    load(qdrant, names, [point for point in few if point.type == "mm"])
    removed = next(point for point in few if point.type == "mm")
    qdrant.delete(names["mm"], points_selector=[removed.id], wait=True)
    results = {result.collection: result for result in load(qdrant, names, few, once=True)}
    assert results[names["mm"]] == Loaded(names["mm"], 0, 0, len(expected("mm")) - 1)
    assert removed.id not in stored(qdrant, names["mm"])
    assert results[names["code"]] == Loaded(names["code"], len(expected("code")), 0, 0)


def test_collections_that_are_missing_are_named_and_nothing_is_written(
    qdrant: QdrantClient, make_collections: Callable[[], dict[str, str]]
) -> None:
    names = make_collections()
    wanted = {**names, "code": "cm_absent_768_v1"}
    with pytest.raises(MissingCollectionsError, match=r"no collection cm_absent_768_v1.*make up"):
        load(qdrant, wanted)
    assert qdrant.count(names["text"], exact=True).count == 0
    assert not qdrant.collection_exists("cm_absent_768_v1")


@pytest.mark.parametrize("name", EVERYBODY)
@pytest.mark.parametrize("only_indexed", [True, False])
def test_each_principal_gets_exactly_what_it_may_read(
    qdrant: QdrantClient, loaded: Mapping[str, str], name: str, only_indexed: bool
) -> None:
    principal = people()[name].principal
    for kind, collection in loaded.items():
        found = stored(qdrant, collection, read_filter(principal, only_indexed=only_indexed))
        allowed = [
            point
            for point in POINTS
            if point.type == kind and can_read(point.payload, principal, only_indexed=only_indexed)
        ]
        assert found.keys() == {point.id for point in allowed}
        assert {payload["tenant_id"] for payload in found.values()} <= {principal.tenant_id}


def test_no_two_principals_of_one_tenant_read_the_same() -> None:
    """Otherwise the sample would not show that answers differ."""

    def readable(name: str) -> frozenset[str]:
        return frozenset(point.id for point in POINTS if can_read(point.payload, people()[name].principal))

    assert len({readable(name) for name in EVERYBODY}) == len(EVERYBODY)


def test_the_names_of_the_real_collections_are_the_default() -> None:
    assert set(COLLECTIONS.values()) == {"cm_text_1024_v1", "cm_code_768_v1", "cm_mm_512_v1"}
    assert {point.type for point in POINTS} == set(COLLECTIONS)
