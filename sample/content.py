"""The points of the sample, from the files in `data/`: what they say, and who may read it.

An entry of a TOML file holds one or more texts that share their payload fields. A text of a document or an artifact
is a chunk of one source; a message, a memory or a signal is a source of its own. `owner` is `kind:id`; the keys
`read_team_ids`, `read_agent_ids` and `read_role_ids` make the access list; `from` is the time of the first text,
and each further one is seven minutes later; `type` names the collection (text unless said otherwise).

Everything is computed from the files: identifiers, point ids and times are the same on every machine and at every
load. What is expired has a fixed date in the past; what is not has no retention, or one of a hundred years.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
import uuid
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ulid import ULID

from comemory.fingerprints import PREFIX as FINGERPRINT_PREFIX
from comemory.fingerprints import fingerprint
from comemory.points import point_id
from sample.people import DATA
from sample.vectors import MODEL

DIMENSIONS = {"text": 1024, "code": 768, "mm": 512}
"""The collection types of the sample, and the size of their vectors."""

COLLECTIONS = {kind: f"cm_{kind}_{dimension}_v1" for kind, dimension in DIMENSIONS.items()}
"""The collections that `make up` declares, by type."""

TENANTS = ("t_daarion", "t_nutra", "t_lexum", "t_orbita", "t_greenfold")

_SOURCE_OF = {
    "docs": "document",
    "messages": "message",
    "memory": "message",
    "artifacts": "artifact",
    "signals": "web",
}
_PREFIX_OF = {"document": "doc", "message": "msg", "artifact": "art"}
_ONE_SOURCE = {"docs", "artifacts"}
_STEP = timedelta(minutes=7)
_OTHER_WRITER = uuid.UUID("6f1c3c0e-5a0b-4f0e-9d0a-3f1f5f0c7b11")
"""Namespace of the ids of points that did not come through the library: copies and malformed ones."""


@dataclass(frozen=True)
class SamplePoint:
    """One point: its collection's type, its id and payload.

    `key` says where it comes from (`t_daarion/energy-report/0`; a copy has `+` behind it). `problem` is the code of
    what strict parsing complains of, for a payload that is malformed on purpose (`comemory.payload.Problem.code`).
    """

    key: str
    type: str
    id: str
    payload: dict[str, Any]
    problem: str | None = None

    @property
    def text(self) -> str:
        """The words that are embedded."""
        return str(self.payload["text"])


def points() -> list[SamplePoint]:
    """All points of the sample, well-formed ones first."""
    found = [point for entry in _entries() for point in _of_entry(entry)]
    return [*found, *_malformed()]


def _entries() -> Iterator[dict[str, Any]]:
    for tenant in TENANTS:
        yield from _handbook(tenant)
        for entry in _toml(tenant):
            yield {"tenant": tenant, **entry}
    yield from _toml("duplicates")


def _toml(name: str) -> list[dict[str, Any]]:
    with (DATA / f"{name}.toml").open("rb") as file:
        entries: list[dict[str, Any]] = tomllib.load(file)["entry"]
    return entries


def _handbook(tenant: str) -> Iterator[dict[str, Any]]:
    """Each section is a page of the tenant's wiki, each paragraph a chunk of it."""
    _, *sections = (DATA / "handbook.md").read_text(encoding="utf-8").split("\n## ")
    for section in sections:
        title, *paragraphs = (part.strip() for part in section.split("\n\n"))
        yield {
            "tenant": tenant,
            "name": f"handbook-{title.lower().replace(' ', '-')}",
            "owner": "team:team_core",
            "scope": "docs",
            "source_kind": "wiki",
            "visibility": "public",
            "from": datetime(2025, 1, 2, 9, tzinfo=UTC),
            "tags": ["handbook"],
            "texts": paragraphs,
        }


def _of_entry(entry: dict[str, Any]) -> Iterator[SamplePoint]:
    for number, text in enumerate(entry["texts"]):
        point = _point(entry, number, text)
        yield point
        if "again" in entry:
            yield _copy(point, entry["again"])


def _point(entry: dict[str, Any], number: int, text: str) -> SamplePoint:
    tenant, name, scope = entry["tenant"], entry["name"], entry["scope"]
    kind = entry.get("type", "text")
    source_kind = entry.get("source_kind", _SOURCE_OF[scope])
    key = f"{tenant}/{name}/{number}"
    created = entry["from"] + number * _STEP
    chunked = scope in _ONE_SOURCE
    source = _identifier(
        _PREFIX_OF.get(source_kind, "doc"),
        f"{tenant}/{name}" if chunked else key,
        entry["from"] if chunked else created,
    )
    owner_kind, owner_id = entry["owner"].split(":", 1)
    payload: dict[str, Any] = {
        "schema_version": "cm_payload_v1",
        "tenant_id": tenant,
        "team_id": entry.get("team_id"),
        "project_id": entry.get("project_id"),
        "agent_id": entry.get("agent_id"),
        "owner_kind": owner_kind,
        "owner_id": owner_id,
        "scope": scope,
        "visibility": entry["visibility"],
        "indexed": entry.get("indexed", True),
        "source_kind": source_kind,
        "source_id": source,
        "chunk": {"chunk_id": _identifier("chk", key, created), "chunk_idx": number if chunked else 0},
        "fingerprint": fingerprint(text),
        "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lang": entry.get("lang", "en"),
        "embedding": {"model": MODEL, "dim": DIMENSIONS[kind], "metric": "cosine"},
        "text": text,
    }
    access = {name: entry[name] for name in ("read_team_ids", "read_agent_ids", "read_role_ids") if name in entry}
    optional = {name: entry[name] for name in ("tags", "importance", "ttl_days") if name in entry}
    payload |= optional | ({"acl": access} if access else {})
    return SamplePoint(key, kind, _foreign_id(key) if entry.get("foreign_id") else point_id(payload), payload)


def _copy(point: SamplePoint, changes: dict[str, Any]) -> SamplePoint:
    """The same chunk as a careless importer writes it again, a day later: another point id, another chunk id."""
    payload = deepcopy(point.payload)
    created = datetime.fromisoformat(payload["created_at"]) + timedelta(days=1)
    payload["created_at"] = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    payload["chunk"]["chunk_id"] = _identifier("chk", f"{point.key}+", created)
    for name, value in changes.items():
        if name == "fingerprint_prefix":
            payload["fingerprint"] = value + payload["fingerprint"].removeprefix(FINGERPRINT_PREFIX)
        else:
            payload[name] = value
    return SamplePoint(f"{point.key}+", point.type, _foreign_id(f"{point.key}+"), payload)


def _malformed() -> Iterator[SamplePoint]:
    """A sound payload with one thing wrong, for each case of `malformed.json`, spread over the tenants."""
    cases = json.loads((DATA / "malformed.json").read_text(encoding="utf-8"))
    for number, case in enumerate(cases):
        entry = {
            "tenant": TENANTS[number % len(TENANTS)],
            "name": f"malformed-{case['name'].replace(' ', '-')}",
            "agent_id": "agt_importer",
            "owner": "agent:agt_importer",
            "scope": "docs",
            "visibility": "private",
            "from": datetime(2025, 3, 1, 12, tzinfo=UTC),
        }
        point = _point(entry, 0, case["text"])
        payload = point.payload | case.get("set", {})
        for name in case.get("drop", []):
            del payload[name]
        yield SamplePoint(point.key, "text", _foreign_id(point.key), payload, case["problem"])


def _foreign_id(key: str) -> str:
    return str(uuid.uuid5(_OTHER_WRITER, key))


def _identifier(prefix: str, key: str, created: datetime) -> str:
    """A ULID whose time is real and whose random part comes from the key."""
    milliseconds = int(created.timestamp() * 1000)
    return f"{prefix}_{ULID.from_bytes(milliseconds.to_bytes(6) + hashlib.sha256(key.encode()).digest()[:10])}"
