"""Generated payloads: one well-formed payload, and what can go wrong with each of its fields."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

TENANTS = ("t_a", "t_b")
TEAMS = ("team_a", "team_b")
AGENTS = ("agt_a", "agt_b")
ROLES = ("role_a", "role_b")
USERS = ("user_a", "user_b")
ULID = "01HQ8K9X2N0PQR3FGJKM567890"


def good_payload(**changes: Any) -> dict[str, Any]:
    """A payload that is right to the letter, with fields replaced."""
    return {
        "schema_version": "cm_payload_v1",
        "tenant_id": "t_a",
        "team_id": "team_a",
        "project_id": "proj_a",
        "agent_id": "agt_a",
        "owner_kind": "agent",
        "owner_id": "agt_a",
        "scope": "docs",
        "visibility": "confidential",
        "indexed": True,
        "source_kind": "document",
        "source_id": f"doc_{ULID}",
        "chunk": {"chunk_id": f"chk_{ULID}", "chunk_idx": 0},
        "fingerprint": "sha256:" + "a1" * 32,
        "created_at": "2026-01-26T12:00:00Z",
        **changes,
    }


def malformed(value: Any) -> st.SearchStrategy[Any]:
    """`value` as it should not stand there, and things that are not `value` at all."""
    return st.sampled_from(
        [
            None, 0, 1, 7.5, True, False, "", [], {}, [None], [[]], [{}], [0], [True],
            [value], [value, value], [value, None], [None, value], ["x", value], [1, value],
            [[value]], [[value], value],
            {"value": value}, [{"value": value}], str(value).upper(), f" {value}", f"{value}x",
        ]
    )  # fmt: skip


@st.composite
def access_payloads(draw: st.DrawFn) -> dict[str, Any]:
    """Payloads of two tenants that matter for access, with none to three fields spoilt."""
    kind, owner = draw(
        st.sampled_from(
            [("agent", AGENTS[0]), ("agent", AGENTS[1]), ("team", TEAMS[0]), ("user", USERS[0]), ("user", USERS[1])]
        )
    )
    payload = good_payload(
        tenant_id=draw(st.sampled_from([TENANTS[0], *TENANTS])),
        team_id=draw(st.sampled_from([*TEAMS, None])),
        owner_kind=kind,
        owner_id=owner,
        visibility=draw(st.sampled_from(["public", "confidential", "confidential", "private"])),
        indexed=draw(st.sampled_from([True, True, True, False])),
        scope=draw(st.sampled_from(["docs", "memory"])),
    )
    lists = st.lists
    payload["acl"] = {
        "read_team_ids": draw(lists(st.sampled_from(TEAMS), max_size=2)),
        "read_agent_ids": draw(lists(st.sampled_from(AGENTS), max_size=2)),
        "read_role_ids": draw(lists(st.sampled_from(ROLES), max_size=2)),
    }
    fields = [
        "schema_version", "tenant_id", "team_id", "owner_kind", "owner_id", "visibility", "indexed",
        "acl", "acl.read_team_ids", "acl.read_agent_ids", "acl.read_role_ids",
    ]  # fmt: skip
    for field in draw(st.lists(st.sampled_from(fields), max_size=3, unique=True)):
        spoil(draw, payload, field)
    return payload


def spoil(draw: st.DrawFn, payload: dict[str, Any], field: str) -> None:
    """Remove `field`, or put something malformed in its place."""
    *path, last = field.split(".")
    holder = payload
    for step in path:
        holder = holder[step] if isinstance(holder, dict) and step in holder else {}
    if not isinstance(holder, dict) or last not in holder:
        return
    if field == "acl":
        whole = copy.deepcopy(holder["acl"])
        flat = {f"acl.{key}": value for key, value in whole.items()} if isinstance(whole, dict) else {}
        holder["acl"] = draw(
            st.sampled_from([None, [], {}, "team_a", 5, ["team_a"], [whole], [whole, whole], [[whole]]])
        )
        if draw(st.booleans()):
            payload.update(flat)
    elif draw(st.integers(0, 4)) == 0:
        del holder[last]
    else:
        value = holder[last][0] if isinstance(holder[last], list) and holder[last] else holder[last]
        holder[last] = draw(malformed(value))
