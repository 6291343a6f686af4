"""Drift: each kind met once, and none where all is well."""

from __future__ import annotations

from typing import Any

import pytest

from comemory.declaration import CollectionSettings, Declared
from comemory.indexes import PAYLOAD_INDEXES
from comemory.live import LiveCollection, LiveIndex
from ops.drift import COLLECTION_KINDS, LAYOUT_KINDS, collection_drift, layout_drift
from ops.settings import CollectionsSettings

NAME = "cm_text_4_v1"


def live(
    name: str = NAME, *, size: int = 4, strict: bool = True, without: str = "", **types: str
) -> LiveCollection:
    settings: dict[str, Any] = {
        "vectors": {"dense": {"size": size, "distance": "Cosine"}},
        "strict_mode_config": {"enabled": strict},
    }
    indexes = {
        i.field: LiveIndex(types.get(i.field, i.type), {"is_tenant": True} if i.is_tenant else {})
        for i in PAYLOAD_INDEXES
        if i.field != without
    }
    return LiveCollection(name, settings, indexes)


def declared(**changes: Any) -> Declared:
    fields = {
        "name": NAME,
        "embedding_model": "m",
        "dimension": 4,
        "profile": "explicit",
        "alias": "text",
    } | changes
    one = CollectionSettings.model_validate(fields)
    return Declared(one.spec(), one.all_indexes(), one.alias)


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (live(), []),
        (live(strict=False), ["strict_mode_off"]),
        (live(without="scope"), ["index_missing"]),
        (live(scope="text"), ["index_rebuild"]),
        (live(size=8), ["size_mismatch"]),
        (live("cm_voice_4_v1", size=8), ["size_mismatch"]),
        (live("something_else", size=8), []),
        (live(size=8, strict=False, without="ttl_days"), ["size_mismatch", "strict_mode_off", "index_missing"]),
    ],
)
def test_without_a_declaration(found: LiveCollection, kinds: list[str]) -> None:
    drifts = collection_drift(found)
    assert [d.kind for d in drifts] == kinds
    assert set(kinds) <= set(COLLECTION_KINDS)
    assert all(d.collection == found.name and found.name in d.text for d in drifts)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"hnsw_config": {"m": 3}}, "in_place"),
        ({"metric": "dot"}, "impossible"),
        ({"vectors": {"extra": {"size": 4}}}, "vector_missing"),
        ({"indexes": [{"field": "channel_id", "type": "keyword"}]}, "index_missing"),
    ],
)
def test_with_a_declaration(changes: dict[str, Any], kind: str) -> None:
    found = LiveCollection(NAME, {**live().settings, "metadata": {"embedding_model": "m"}}, live().indexes)
    assert collection_drift(found, declared()) == []
    assert [d.kind for d in collection_drift(found, declared(**changes))] == [kind]


def test_the_layout() -> None:
    settings = CollectionsSettings(include=(NAME, "cm_code_4_v1"))
    assert layout_drift(settings, [declared()], [NAME, "cm_code_4_v1"], {"text": NAME}) == []
    found = layout_drift(settings, [declared()], [NAME], {"text": "cm_text_4_v0"})
    assert {(d.collection, d.kind) for d in found} == {
        ("cm_code_4_v1", "collection_missing"),
        (NAME, "alias_wrong"),
        ("cm_text_4_v0", "alias_dangling"),
    }
    assert {d.kind for d in found} == set(LAYOUT_KINDS)
    assert layout_drift(CollectionsSettings(), [declared()], [NAME], {})[0].text.endswith(
        "alias text does not exist"
    )


def test_an_alias_may_be_included_by_name() -> None:
    assert layout_drift(CollectionsSettings(include=("text",)), [], [NAME], {"text": NAME}) == []
