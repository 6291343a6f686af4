"""The payload model: the specification's examples, each field's refusal, and the way back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from comemory import InvalidPayloadError, LenientPayload, Payload
from tests.comemory.payloads import ULID, good_payload

DOCUMENT_EXAMPLE = {
    "schema_version": "cm_payload_v1",
    "tenant_id": "t_daarion",
    "team_id": "team_core",
    "project_id": "proj_helion",
    "agent_id": "agt_helion",
    "owner_kind": "agent",
    "owner_id": "agt_helion",
    "scope": "docs",
    "visibility": "confidential",
    "indexed": True,
    "source_kind": "document",
    "source_id": "doc_01HQ8K9X2NPQR3FGJKLM5678",
    "chunk": {"chunk_id": "chk_01HQ8K9X3MPQR3FGJKLM9012", "chunk_idx": 0},
    "fingerprint": "sha256:a1b2c3d4e5f6...",
    "created_at": "2026-01-26T12:00:00Z",
    "tags": ["product", "features"],
    "lang": "uk",
    "embedding": {"model": "cohere-embed-multilingual-v3", "dim": 1024, "metric": "cosine"},
}
MESSAGE_EXAMPLE = {
    "schema_version": "cm_payload_v1",
    "tenant_id": "t_daarion",
    "team_id": "team_core",
    "agent_id": "agt_helion",
    "owner_kind": "user",
    "owner_id": "user_tg_123456",
    "scope": "messages",
    "visibility": "private",
    "indexed": True,
    "source_kind": "message",
    "source_id": "msg_01HQ8K9X4NPQR3FGJKLM3456",
    "chunk": {"chunk_id": "chk_01HQ8K9X5MPQR3FGJKLM7890", "chunk_idx": 0},
    "fingerprint": "sha256:b2c3d4e5f6g7...",
    "created_at": "2026-01-26T12:05:00Z",
    "channel_id": "tg_chat_789",
}


@pytest.mark.parametrize("example", [DOCUMENT_EXAMPLE, MESSAGE_EXAMPLE])
def test_the_specifications_examples_pass_leniently_and_name_their_faults_strictly(example: dict[str, Any]) -> None:
    assert LenientPayload.parse(example).to_payload() == example
    assert [problem.code for problem in Payload.problems(example)] == [
        "source_id.malformed",
        "chunk.chunk_id.malformed",
        "fingerprint.malformed",
    ]


FULL = good_payload(
    acl={"read_team_ids": ["team_a"], "read_agent_ids": [], "read_role_ids": ["role_admin"], "note": "kept"},
    tags=["legal_kb"], lang="pt-BR", importance=0.8, ttl_days=365, updated_at="2026-01-26T12:00:00.5+02:00",
    embedding={"model": "m", "dim": 4, "metric": "cosine", "batch": 7},
    text="content", channel_id=["any", {"thing": None}],
)  # fmt: skip


def test_a_full_payload_comes_back_as_it_was() -> None:
    payload = Payload.parse(FULL)
    assert payload.to_payload() == FULL
    assert list(payload.to_payload()) and payload.chunk.chunk_idx == 0
    assert "updated_at" not in Payload.parse(good_payload()).to_payload()
    assert Payload.parse(good_payload(team_id=None)).to_payload()["team_id"] is None
    with pytest.raises(ValidationError):
        payload.tenant_id = "t_b"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.text().map(lambda key: f"x{key}") | st.sampled_from(["copy", "json", "parse", "model"]), json_values
    )
)
def test_unknown_fields_are_kept_whatever_they_are(extra: dict[str, Any]) -> None:
    stored = {**good_payload(), **extra, "chunk": {**extra, **good_payload()["chunk"]}}
    assert Payload.parse(stored).to_payload() == stored
    assert LenientPayload.parse(stored).to_payload() == stored


REFUSED: list[tuple[str, Any, str]] = [
    ("schema_version", "cm_payload_v2", "unknown"),
    ("schema_version", 1, "wrong_type"),
    ("tenant_id", None, "null"),
    ("tenant_id", "acme", "malformed"),
    ("tenant_id", ["t_a"], "list"),
    ("tenant_id", "t_" + "a" * 65, "malformed"),
    ("team_id", "core", "malformed"),
    ("team_id", [], "list"),
    ("project_id", 7, "wrong_type"),
    ("agent_id", "agent_a", "malformed"),
    ("owner_kind", "robot", "unknown"),
    ("owner_id", "user_a", "mismatch"),
    ("owner_id", "role_a", "malformed"),
    ("scope", "doc", "unknown"),
    ("scope", ["docs"], "list"),
    ("visibility", "Public", "unknown"),
    ("indexed", 1, "wrong_type"),
    ("indexed", "true", "wrong_type"),
    ("source_kind", "pdf", "unknown"),
    ("source_id", f"msg_{ULID}", "mismatch"),
    ("source_id", f"chk_{ULID}", "malformed"),
    ("chunk", None, "null"),
    ("chunk", [], "list"),
    ("fingerprint", "g" * 64, "malformed"),
    ("created_at", "2026-01-26", "malformed"),
    ("created_at", "2026-01-26T12:00:00", "malformed"),
    ("created_at", "2026-02-30T12:00:00Z", "malformed"),
    ("created_at", 1767268800, "wrong_type"),
    ("updated_at", "yesterday", "malformed"),
    ("acl", ["team_a"], "list"),
    ("tags", "legal", "wrong_type"),
    ("tags", ["a", ""], "malformed"),
    ("lang", "Ukrainian", "malformed"),
    ("importance", 1.5, "out_of_range"),
    ("importance", True, "wrong_type"),
    ("importance", float("nan"), "out_of_range"),
    ("ttl_days", 0, "out_of_range"),
    ("ttl_days", 7.0, "wrong_type"),
    ("ttl_days", "7", "wrong_type"),
    ("ttl_days", [7, 30], "list"),
]


@pytest.mark.parametrize(("field", "value", "reason"), REFUSED)
def test_a_field_that_is_wrong_is_named_with_its_value_and_what_was_expected(
    field: str, value: Any, reason: str
) -> None:
    (problem,) = Payload.problems(good_payload(**{field: value}))
    assert problem.code == f"{field}.{reason}"
    assert str(problem).startswith(f"{field} is ") and "; expected " in str(problem)
    with pytest.raises(InvalidPayloadError, match=field):
        Payload.parse(good_payload(**{field: value}))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"chunk": {"chunk_id": f"chk_{ULID}", "chunk_idx": -1}}, "chunk.chunk_idx.out_of_range"),
        ({"chunk": {"chunk_id": f"chk_{ULID}"}}, "chunk.chunk_idx.missing"),
        ({"chunk": {"chunk_id": "01HQ", "chunk_idx": 0}}, "chunk.chunk_id.malformed"),
        ({"acl": {"read_team_ids": "team_a"}}, "acl.read_team_ids.wrong_type"),
        ({"acl": {"read_agent_ids": ["agt_a", "team_a"]}}, "acl.read_agent_ids.malformed"),
        ({"embedding": {"dim": 0}}, "embedding.dim.out_of_range"),
        ({"embedding": {"metric": "l2"}}, "embedding.metric.unknown"),
    ],
)
def test_fields_within_fields_are_named_by_their_path(changes: dict[str, Any], code: str) -> None:
    assert [problem.code for problem in Payload.problems(good_payload(**changes))] == [code]


def test_each_required_field_is_missed_and_each_nullable_one_is_not() -> None:
    optional = {"team_id", "project_id", "agent_id"}
    for field in good_payload():
        rest = {key: value for key, value in good_payload().items() if key != field}
        codes = [problem.code for problem in Payload.problems(rest)]
        assert codes == ([] if field in optional else [f"{field}.missing"])


def test_every_problem_is_reported_and_no_content_is_echoed_whole() -> None:
    secret = "the whole content " * 100
    with pytest.raises(InvalidPayloadError) as caught:
        Payload.parse(good_payload(tenant_id=secret, scope=[secret], text=secret, tags=[{"a": secret}]))
    assert {problem.code for problem in caught.value.problems} == {
        "tenant_id.malformed",
        "scope.list",
        "tags.wrong_type",
    }
    assert all(len(problem.value) <= 80 for problem in caught.value.problems)
    assert secret[:80] not in str(caught.value)


def test_what_lenient_tolerates_and_what_it_does_not() -> None:
    for tolerated in ({"created_at": "2026-01-26"}, {"fingerprint": "?"}, {"source_id": "doc_01HQ"}):
        assert Payload.problems(good_payload(**tolerated))
        assert not LenientPayload.problems(good_payload(**tolerated))
    for field, value, reason in REFUSED:
        if field not in ("fingerprint", "created_at"):
            (problem,) = LenientPayload.problems(good_payload(**{field: value}))
            assert problem.code == f"{field}.{reason}"


def test_what_is_no_object_is_refused() -> None:
    for value in (None, [], "text", 5):
        with pytest.raises(InvalidPayloadError, match="payload"):
            Payload.parse(value)  # type: ignore[arg-type]
