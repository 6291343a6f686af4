"""The payload of a point, `cm_payload_v1`: every field, two ways of reading it, and errors a job can count.

`Payload.parse` is for writers and accepts only what the specification asks for. `LenientPayload.parse` is for
readers and migrations; it also lets pass what the specification's own examples hold: shortened ULIDs,
placeholders for a fingerprint, and the other spellings of a time that the engine reads. Both keep unknown
fields as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from comemory.errors import CoMemoryError, shown
from comemory.identifiers import LENIENT_ULID, MAX_SLUG_LENGTH, SLUG, STRICT_ULID
from comemory.times import parse_time

SCHEMA_VERSION: Final = "cm_payload_v1"

OwnerKind = Literal["agent", "team", "user"]
Scope = Literal["docs", "messages", "memory", "artifacts", "signals"]
Visibility = Literal["public", "confidential", "private"]
SourceKind = Literal["document", "wiki", "message", "artifact", "web", "code"]
Metric = Literal["cosine", "dot", "euclid", "manhattan"]

OWNER_KINDS: Final[tuple[OwnerKind, ...]] = get_args(OwnerKind)
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
VISIBILITIES: Final[tuple[Visibility, ...]] = get_args(Visibility)
SOURCE_KINDS: Final[tuple[SourceKind, ...]] = get_args(SourceKind)


class Reason(StrEnum):
    """Why a field is refused; together with the field's name it is what the audit counts by."""

    MISSING = "missing"
    NULL = "null"
    LIST = "list"
    """A list where one value belongs, which the engine would read as any of its values."""
    WRONG_TYPE = "wrong_type"
    UNKNOWN = "unknown"
    """A string that is none of the field's values."""
    MALFORMED = "malformed"
    OUT_OF_RANGE = "out_of_range"
    MISMATCH = "mismatch"
    """A prefix that another field contradicts."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one field of a payload.

    `field` is the path in the payload (`chunk.chunk_idx`), `value` what stood there as an error may show it
    (shortened; empty where the field is missing), `expected` what belongs there.
    """

    field: str
    reason: Reason
    value: str
    expected: str

    @property
    def code(self) -> str:
        """`<field>.<reason>`, for example `tenant_id.missing`: stable, and free of content."""
        return f"{self.field}.{self.reason.value}"

    def __str__(self) -> str:
        if self.reason is Reason.MISSING:
            return f"{self.field} is missing; expected {self.expected}"
        return f"{self.field} is {self.value}; expected {self.expected}"


class InvalidPayloadError(CoMemoryError):
    """A payload that breaks the schema; `problems` says where and how."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("payload breaks cm_payload_v1: " + "; ".join(map(str, self.problems)))


def _slug(*prefixes: str) -> Any:
    longest = max(map(len, prefixes)) + 1 + MAX_SLUG_LENGTH
    return StringConstraints(pattern=rf"^(?:{'|'.join(prefixes)})_{SLUG}$", max_length=longest)


def _time(value: str) -> str:
    if parse_time(value) is None:
        raise PydanticCustomError("string_pattern_mismatch", "not a time")
    return value


_RFC3339 = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})$"

_Tenant = Annotated[str, _slug("t")]
_Team = Annotated[str, _slug("team")]
_Project = Annotated[str, _slug("proj")]
_Agent = Annotated[str, _slug("agt")]
_Role = Annotated[str, _slug("role")]
_Owner = Annotated[str, _slug("agt", "team", "user")]
_Source = Annotated[str, StringConstraints(pattern=rf"^(?:doc|msg|art)_{STRICT_ULID}$")]
_LenientSource = Annotated[str, StringConstraints(pattern=rf"^(?:doc|msg|art)_{LENIENT_ULID}$")]
_Chunk = Annotated[str, StringConstraints(pattern=rf"^chk_{STRICT_ULID}$")]
_LenientChunk = Annotated[str, StringConstraints(pattern=rf"^chk_{LENIENT_ULID}$")]
_Fingerprint = Annotated[str, StringConstraints(pattern=r"^(?:[Ss][Hh][Aa]256:)?[0-9A-Fa-f]{64}$")]
_Time = Annotated[str, StringConstraints(pattern=_RFC3339), AfterValidator(_time)]
_LenientTime = Annotated[str, AfterValidator(_time)]
_Text = Annotated[str, StringConstraints(min_length=1)]
_Lang = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$")]

_EXPECTED: Final[dict[str, str]] = {
    "schema_version": f"{SCHEMA_VERSION!r}",
    "tenant_id": "t_<slug>",
    "team_id": "team_<slug> or null",
    "project_id": "proj_<slug> or null",
    "agent_id": "agt_<slug> or null",
    "owner_kind": f"one of {', '.join(OWNER_KINDS)}",
    "owner_id": "agt_<slug>, team_<slug> or user_<slug>, as owner_kind says",
    "scope": f"one of {', '.join(SCOPES)}",
    "visibility": f"one of {', '.join(VISIBILITIES)}",
    "indexed": "true or false",
    "source_kind": f"one of {', '.join(SOURCE_KINDS)}",
    "source_id": "doc_<ulid>, msg_<ulid> or art_<ulid>, as source_kind says",
    "chunk": "an object with chunk_id and chunk_idx",
    "chunk.chunk_id": "chk_<ulid>",
    "chunk.chunk_idx": "a whole number from 0",
    "fingerprint": "a SHA-256: 64 hexadecimal digits, with or without sha256: before them",
    "created_at": "an RFC 3339 time such as 2026-01-26T12:00:00Z",
    "updated_at": "an RFC 3339 time such as 2026-01-26T12:00:00Z, or null",
    "acl": "an object of lists, or null",
    "acl.read_team_ids": "a list of team_<slug>",
    "acl.read_agent_ids": "a list of agt_<slug>",
    "acl.read_role_ids": "a list of role_<slug>",
    "tags": "a list of strings that are not empty",
    "lang": "a language code such as uk, en or pt-BR",
    "importance": "a number from 0 to 1",
    "ttl_days": "a whole number from 1, or null",
    "embedding": "an object with model, dim and metric",
    "embedding.model": "the name of the embedding model",
    "embedding.dim": "a whole number from 1",
    "embedding.metric": f"one of {', '.join(get_args(Metric))}",
}

_SOURCE_PREFIX: Final = {"document": "doc_", "message": "msg_", "artifact": "art_"}
_OWNER_PREFIX: Final = {"agent": "agt_", "team": "team_", "user": "user_"}


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class Chunk(_Part):
    """Which part of the source this point is."""

    chunk_id: _Chunk
    chunk_idx: Annotated[int, Field(ge=0)]


class LenientChunk(Chunk):
    """A chunk whose ULID may be shortened."""

    chunk_id: _LenientChunk


class Acl(_Part):
    """Who may read a confidential point besides its owner."""

    read_team_ids: list[_Team] | None = None
    read_agent_ids: list[_Agent] | None = None
    read_role_ids: list[_Role] | None = None


class Embedding(_Part):
    """What made the vector."""

    model: _Text | None = None
    dim: Annotated[int, Field(ge=1)] | None = None
    metric: Metric | None = None


class Payload(_Part):
    """A payload as writers have to make it.

    The nullable fields and the optional ones may be null or absent, which means the same. Fields this class
    does not know are kept as they came. `Payload(...)` raises pydantic's own error, `Payload.parse` ours.
    """

    schema_version: Literal["cm_payload_v1"]
    tenant_id: _Tenant
    team_id: _Team | None = None
    project_id: _Project | None = None
    agent_id: _Agent | None = None
    owner_kind: OwnerKind
    owner_id: _Owner
    scope: Scope
    visibility: Visibility
    indexed: bool
    source_kind: SourceKind
    source_id: _Source
    chunk: Chunk
    fingerprint: _Fingerprint
    created_at: _Time
    acl: Acl | None = None
    tags: list[_Text] | None = None
    lang: _Lang | None = None
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    ttl_days: Annotated[int, Field(ge=1)] | None = None
    embedding: Embedding | None = None
    updated_at: _Time | None = None

    @field_validator("owner_id")
    @classmethod
    def _owner_is_of_its_kind(cls, value: str, info: ValidationInfo) -> str:
        return _prefixed(value, _OWNER_PREFIX.get(info.data.get("owner_kind", "")))

    @field_validator("source_id")
    @classmethod
    def _source_is_of_its_kind(cls, value: str, info: ValidationInfo) -> str:
        return _prefixed(value, _SOURCE_PREFIX.get(info.data.get("source_kind", "")))

    @classmethod
    def parse(cls, payload: Mapping[str, Any]) -> Self:
        """Read a payload as it is stored or about to be.

        Raises:
            InvalidPayloadError: with every problem found, not only the first.
        """
        try:
            return cls.model_validate(payload)
        except ValidationError as error:
            raise InvalidPayloadError(_problems(error)) from None

    @classmethod
    def problems(cls, payload: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What `parse` would complain of; empty when it would not."""
        try:
            cls.model_validate(payload)
        except ValidationError as error:
            return _problems(error)
        return ()

    def to_payload(self) -> dict[str, Any]:
        """The payload as a dict to be stored: what was given, unknown fields included, and nothing added."""
        return self.model_dump(exclude_unset=True)


class LenientPayload(Payload):
    """A payload as readers may meet it.

    Beyond `Payload` it accepts: ULIDs of 1 to 26 letters and digits; any fingerprint that is not empty; every
    time that the engine reads. Such a payload is read, kept and expired as usual, but it is never a duplicate
    unless its fingerprint is whole.
    """

    source_id: _LenientSource
    chunk: LenientChunk
    fingerprint: _Text
    created_at: _LenientTime
    updated_at: _LenientTime | None = None


def _prefixed(value: str, prefix: str | None) -> str:
    if prefix and not value.startswith(prefix):
        raise PydanticCustomError("mismatch", "expected the prefix {prefix}", {"prefix": prefix})
    return value


_REASONS: Final = {
    "missing": Reason.MISSING,
    "literal_error": Reason.UNKNOWN,
    "string_pattern_mismatch": Reason.MALFORMED,
    "string_too_short": Reason.MALFORMED,
    "string_too_long": Reason.MALFORMED,
    "greater_than_equal": Reason.OUT_OF_RANGE,
    "less_than_equal": Reason.OUT_OF_RANGE,
    "finite_number": Reason.OUT_OF_RANGE,
    "mismatch": Reason.MISMATCH,
}


def _problems(error: ValidationError) -> tuple[Problem, ...]:
    return tuple(_problem(details) for details in error.errors(include_url=False))


def _problem(details: ErrorDetails) -> Problem:
    field = ".".join(step for step in details["loc"] if isinstance(step, str))
    value = details["input"]
    expected = _EXPECTED.get(field, "an object with the fields of cm_payload_v1")
    in_list = bool(details["loc"]) and isinstance(details["loc"][-1], int)
    reason = _REASONS.get(details["type"], Reason.WRONG_TYPE)
    if reason is Reason.MISSING:
        return Problem(field, reason, "", expected)
    if reason is Reason.MISMATCH:
        expected = f"a value that begins with {details['ctx']['prefix']}, as its kind says"
    elif value is None:
        reason = Reason.NULL
    elif isinstance(value, (list, tuple)):
        reason = Reason.LIST if not in_list else Reason.WRONG_TYPE
    elif reason is Reason.UNKNOWN and not isinstance(value, str):
        reason = Reason.WRONG_TYPE
    place = f" at position {details['loc'][-1]}" if in_list else ""
    return Problem(field or "payload", reason, shown(value) + place, expected)
