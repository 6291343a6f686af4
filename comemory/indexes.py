"""Payload indexes: what one index is, and the ones that every memory collection needs.

An index must exist before data arrives: Qdrant adds the links that make a filtered search quick only to graph
segments built after the index, and with strict mode on a filter on an unindexed key is refused.
Field names and parameters are Qdrant's own (`PUT /collections/{name}/index`).
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from comemory.specs import Spec

IndexType = Literal["keyword", "integer", "float", "bool", "datetime", "geo", "text", "uuid"]

_COMMON = frozenset({"on_disk", "enable_hnsw"})
_TEXT = frozenset(
    {"tokenizer", "min_token_len", "max_token_len", "lowercase", "phrase_matching", "stopwords", "ascii_folding"}
    | {"stemmer"}
)
PARAMETERS: dict[IndexType, frozenset[str]] = {
    "keyword": _COMMON | {"is_tenant"},
    "uuid": _COMMON | {"is_tenant"},
    "integer": _COMMON | {"is_principal", "lookup", "range"},
    "float": _COMMON | {"is_principal"},
    "datetime": _COMMON | {"is_principal"},
    "bool": _COMMON,
    "geo": _COMMON,
    "text": _COMMON | _TEXT,
}
"""The parameters that each index type takes."""

_ALL = frozenset().union(*PARAMETERS.values())


class StopwordsSpec(Spec):
    """Words that a text index leaves out: whole languages ("english") and words of one's own."""

    languages: tuple[str, ...] | None = None
    custom: tuple[str, ...] | None = None


class StemmerSpec(Spec):
    """How a text index reduces words to their stem: the Snowball stemmer of one language."""

    type: Literal["snowball"] = "snowball"
    language: str


class IndexSpec(Spec):
    """One payload index. What is None is not declared: the server's default holds and never shows as drift.

    `field` is the payload key, dots for nesting (`acl.read_team_ids`). Raises `pydantic.ValidationError` when
    a parameter does not belong to the type, or when an integer index could serve neither equality (`lookup`)
    nor ranges (`range`).
    """

    field: str = Field(min_length=1)
    type: IndexType
    is_tenant: bool | None = None
    is_principal: bool | None = None
    on_disk: bool | None = None
    enable_hnsw: bool | None = None
    lookup: bool | None = None
    range: bool | None = None
    tokenizer: Literal["prefix", "whitespace", "word", "multilingual"] | None = None
    min_token_len: int | None = Field(None, ge=1)
    max_token_len: int | None = Field(None, ge=1)
    lowercase: bool | None = None
    phrase_matching: bool | None = None
    stopwords: str | StopwordsSpec | None = None
    ascii_folding: bool | None = None
    stemmer: StemmerSpec | None = None

    @model_validator(mode="after")
    def _parameters_fit_the_type(self) -> Self:
        foreign = sorted(self.parameters().keys() - PARAMETERS[self.type])
        if foreign:
            takers = sorted(kind for kind, names in PARAMETERS.items() if foreign[0] in names)
            raise ValueError(
                f"{foreign[0]} is not a parameter of a {self.type} index (field {self.field}); "
                f"it belongs to: {', '.join(takers)}"
            )
        if self.type == "integer" and self.lookup is False and self.range is False:
            raise ValueError(
                f"the integer index on {self.field} needs lookup or range: with both off it serves no filter"
            )
        return self

    def parameters(self) -> dict[str, Any]:
        """The declared parameters, without field and type, as plain JSON values."""
        return self.model_dump(mode="json", exclude_none=True, include=set(_ALL))

    def field_schema(self) -> dict[str, Any]:
        """The `field_schema` of Qdrant's create-index request."""
        return {"type": self.type, **self.parameters()}


def _keyword(field: str) -> IndexSpec:
    return IndexSpec(field=field, type="keyword")


PAYLOAD_INDEXES: tuple[IndexSpec, ...] = (
    _keyword("schema_version"),
    IndexSpec(field="tenant_id", type="keyword", is_tenant=True),
    _keyword("team_id"),
    _keyword("project_id"),
    _keyword("agent_id"),
    _keyword("owner_kind"),
    _keyword("owner_id"),
    _keyword("scope"),
    _keyword("visibility"),
    IndexSpec(field="indexed", type="bool"),
    _keyword("source_kind"),
    _keyword("source_id"),
    _keyword("chunk.chunk_id"),
    IndexSpec(field="chunk.chunk_idx", type="integer"),
    _keyword("fingerprint"),
    IndexSpec(field="created_at", type="datetime"),
    IndexSpec(field="updated_at", type="datetime"),
    IndexSpec(field="ttl_days", type="integer", lookup=True, range=True),
    _keyword("acl.read_team_ids"),
    _keyword("acl.read_agent_ids"),
    _keyword("acl.read_role_ids"),
    _keyword("tags"),
    _keyword("lang"),
    IndexSpec(field="importance", type="float"),
    _keyword("embedding.model"),
)
"""The indexes of every memory collection: all keys that an access, retention, duplicate or audit filter names."""
