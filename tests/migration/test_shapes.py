"""Each framework's points are told by their fields, and each field is read with the trap that it has."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

import orjson
import pytest

from comemory.migration.record import Marker, Record, Unmappable
from comemory.migration.shapes import FLAT, FRAMEWORKS, SHAPES, shape_of
from tests.migration.fixtures import NAMES, fixture


def records(name: str) -> list[tuple[dict[str, Any], Record]]:
    read = [(point["payload"], SHAPES[name].read(point["payload"])) for point in fixture(name).points]
    return [(payload, record) for payload, record in read if isinstance(record, Record)]


@pytest.mark.parametrize("name", NAMES)
def test_every_point_that_a_framework_wrote_has_its_shape_and_no_other(name: str) -> None:
    points = fixture(name).points
    assert len(points) >= 50
    for point in points:
        assert [shape.name for shape in FRAMEWORKS if shape.fits(point["payload"])] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_kept_but_the_content(name: str) -> None:
    for payload, record in records(name):
        left_out = {key for key in payload if key not in record.kept}
        if name == "llamaindex":  # its text stands inside a string
            assert not left_out
        else:
            assert len(left_out) == 1
            assert payload[left_out.pop()] == record.content
            assert all(record.kept[key] == payload[key] for key in record.kept)


@pytest.mark.parametrize(
    "payload", [{}, {"x": 1}, {"text": "a", "content": "b"}, {"page_content": "a", "document": "b", "metadata": {}}]
)
def test_what_has_no_shape_or_several_has_none(payload: dict[str, Any]) -> None:
    assert shape_of(payload) is None


@pytest.mark.parametrize("key", ["text", "content", "document"])
def test_a_payload_with_a_text_and_no_frameworks_fields_is_flat(key: str) -> None:
    payload = {key: "hello", "message_id": 7, "user_id": "u", "agent_id": "a", "chunk_index": 3, "timestamp": 5}
    assert shape_of(payload) is FLAT
    record = FLAT.read(payload)
    assert isinstance(record, Record)
    assert (record.content, record.source, record.position, record.created) == ("hello", "7", 3, 5)
    assert (record.user, record.agent) == ("u", "a")
    assert shape_of({**payload, "schema_version": "cm_payload_v1"}) is None


def test_langchain_metadata_may_be_null_or_empty_and_gives_source_place_and_time() -> None:
    found = records("langchain")
    bare = [record for payload, record in found if not payload["metadata"]]
    assert bare and all((one.source, one.position, one.created) == (None, None, None) for one in bare)
    assert any(payload["metadata"] is None for payload, _ in found)
    full = [(payload["metadata"], record) for payload, record in found if payload["metadata"]]
    for metadata, record in full:
        assert (record.source, record.position) == (metadata["source"], metadata["start_index"])
        assert record.created == metadata["creationdate"]
        assert record.user is None, "a key of the user's says nothing of owners"


def test_langchain_js_says_the_line_and_keeps_custom_fields() -> None:
    found = records("langchain_js")
    assert sum(record.kept.get("customPayload") == {"team": "north"} for _, record in found) == 6
    for payload, record in found:
        if payload["metadata"]:
            assert record.position == payload["metadata"]["loc"]["lines"]["from"]
            assert record.created == payload["metadata"]["created_at"]


def test_llamaindex_text_stands_in_a_string_and_none_is_no_document() -> None:
    found = records("llamaindex")
    for payload, record in found:
        node = json.loads(payload["_node_content"])
        assert record.content == node["text"] != payload["text"]
        assert record.position == node["start_char_idx"]
        assert record.created == "2025-05-04"
        kept = record.kept["_node_content"]
        assert kept["id_"] == node["id_"] and "text" not in kept and "embedding" not in kept
        assert record.source == (None if payload["ref_doc_id"] == "None" else payload["ref_doc_id"])
    assert sum(payload["ref_doc_id"] == "None" for payload, _ in found) > 3
    assert {payload["_node_type"] for payload, _ in found} == {"TextNode", "IndexNode"}


def test_llamaindex_reads_newer_nodes_and_the_relationship_where_the_ids_are_none() -> None:
    node = {"text_resource": {"text": "new"}, "relationships": {"1": {"node_id": "doc-7"}}}
    read = SHAPES["llamaindex"].read({"_node_content": json.dumps(node), "_node_type": "Node", "doc_id": "None"})
    assert isinstance(read, Record)
    assert (read.content, read.source) == ("new", "doc-7")
    with pytest.raises(Unmappable, match=r"_node_content\.malformed"):
        SHAPES["llamaindex"].read({"_node_content": "{", "_node_type": "TextNode"})


@pytest.mark.parametrize(
    "inside",
    ["NaN", "-Infinity", "123456789012345678901234567890", "-9223372036854775809", "1" * 400, '"\\ud83d\\ude00"'],
)
def test_what_llamaindex_kept_can_be_written_again(inside: str) -> None:
    content = f'{{"text": "x", "extra": {inside}}}'
    read = SHAPES["llamaindex"].read({"_node_content": content, "_node_type": "TextNode"})
    assert isinstance(read, Record)
    assert orjson.loads(orjson.dumps(read.kept))["_node_content"].keys() == {"extra"}


@pytest.mark.parametrize(
    "content",
    ['{"text": "a\\ud83d"}', '{"text": "a", "x": ["\\uDE00"]}', "[" * 100_000, "[1]", "null", None, 7, '{"text"'],
)
def test_a_llamaindex_string_that_no_payload_can_hold_refuses_the_point(content: object) -> None:
    with pytest.raises(Unmappable, match=r"_node_content\.malformed"):
        SHAPES["llamaindex"].read({"_node_content": content, "_node_type": "TextNode"})


def test_mem0_says_whose_and_its_hash_is_an_md5() -> None:
    found = records("mem0")
    for payload, record in found:
        assert payload["hash"] == hashlib.md5(payload["data"].encode()).hexdigest()
        assert (record.user, record.agent) == (payload.get("user_id"), payload.get("agent_id"))
        assert (record.created, record.scope) == (payload["created_at"], "memory")
    assert any(record.created.endswith("-08:00") for _, record in found)
    assert any(record.user is None and record.agent is None for _, record in found)


def test_open_webui_tenant_is_a_logical_collection() -> None:
    kinds: Counter[str] = Counter()
    for payload, record in records("open_webui"):
        place, metadata = payload["tenant_id"], payload["metadata"]
        assert record.partition == place
        if place.startswith("user-memory-"):
            kinds["memory"] += 1
            assert record.user == place.removeprefix("user-memory-")
            assert (record.scope, record.source, record.created) == ("memory", None, metadata["created_at"])
        else:
            kinds["other"] += 1
            assert record.user == metadata.get("created_by")
            assert record.source == metadata.get("file_id", place)
            assert record.model == "nomic-embed-text"
            assert record.source_kind == ("web" if place.startswith("web-search-") else None)
    assert min(kinds["memory"], kinds["other"]) > 5


def test_haystack_has_nulls_parents_and_a_document_of_bytes() -> None:
    found = records("haystack")
    assert [record.content for _, record in found].count(None) == 1
    for payload, record in found:
        meta = payload["meta"]
        assert record.source == meta.get("source_id", meta.get("file_path"))
        assert record.position == meta.get("split_id")


def test_dify_metadata_may_be_null_and_the_group_parts_data_sets() -> None:
    found = records("dify")
    assert sum(payload["metadata"] is None for payload, _ in found) > 3
    for payload, record in found:
        assert record.partition == payload["group_id"]
        assert record.source == (payload["metadata"] or {}).get("document_id")


def test_mcp_server_qdrant_metadata_may_be_null() -> None:
    found = records("mcp_server_qdrant")
    assert sum(payload["metadata"] is None for payload, _ in found) > 3
    assert all(record.content == payload["document"] for payload, record in found)


def test_lightrag_has_chunks_entities_and_relations_with_times_in_seconds() -> None:
    found = records("lightrag")
    assert {payload["id"].split("-")[0] for payload, _ in found} == {"chunk", "ent", "rel"}
    for payload, record in found:
        assert isinstance(record.created, int)
        assert record.partition == payload["workspace_id"]
        assert record.source == payload.get("full_doc_id")


def test_roo_code_has_lines_and_a_marker_that_is_no_memory() -> None:
    points = [point["payload"] for point in fixture("roo_code").points]
    markers = [one for one in points if isinstance(SHAPES["roo_code"].read(one), Marker)]
    assert [one["type"] for one in markers] == ["metadata"]
    for payload, record in records("roo_code"):
        assert (record.source, record.position) == (payload["filePath"], payload["startLine"])
        assert record.source_kind == "code"
