"""What breaks the schema: filters that let the engine count it, and the same for one payload in Python.

The filters read a payload as the engine's indexes do, which is coarser than the model: a list of one value is that
value, an empty list is no value, a whole number may be written 7.0, and every time that the engine reads will do.
`payload_problems` goes by the model. Both give reasons of one form, `<field>.<reason>`, free of content; a point
may have several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qdrant_client import models

from comemory.filters import Condition, either, is_empty, is_text, matches, matches_any
from comemory.identifiers import Kind, parse_identifier
from comemory.payload import (
    OWNER_KINDS,
    SCHEMA_VERSION,
    SCOPES,
    SOURCE_KINDS,
    VISIBILITIES,
    LenientPayload,
    Payload,
    Reason,
)
from comemory.times import EARLIEST, LATEST

CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "schema_version": (SCHEMA_VERSION,),
    "scope": SCOPES,
    "visibility": VISIBILITIES,
    "owner_kind": OWNER_KINDS,
    "source_kind": SOURCE_KINDS,
}
"""Required fields that hold one of a few words."""

REQUIRED_TEXTS: Final = ("tenant_id", "owner_id", "source_id", "fingerprint")
NULLABLE_TEXTS: Final = ("team_id", "project_id", "agent_id")
SINGLE_VALUED: Final = (*CHOICES, "tenant_id", "owner_id", *NULLABLE_TEXTS, "indexed", "ttl_days")
"""Fields in which several values open access, or change retention, and of which the engine can list the values."""

WRONG_TENANT: Final = f"tenant_id.{Reason.MALFORMED}"
"""Counted from the distinct tenants, by `is_tenant_id`: no filter knows a prefix."""

_DISTANCES: Final = {"Cosine": "cosine", "Dot": "dot", "Euclid": "euclid", "Manhattan": "manhattan"}


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """What all vectors of a collection have in common; None where it is not known, which no payload contradicts.

    `dim` is the size of its vectors, `metric` a payload's word for its distance, `model` what made them.
    """

    dim: int | None = None
    metric: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, vector: Mapping[str, Any] | None, metadata: Mapping[str, Any]) -> EmbeddingSpace:
        """Read it from a vector's configuration (`size`, `distance`) and the collection's metadata."""
        vector = vector or {}
        return cls(vector.get("size"), _DISTANCES.get(str(vector.get("distance"))), metadata.get("embedding_model"))


@dataclass(frozen=True, slots=True)
class Check:
    """A reason, and the filter for the points that it holds for."""

    reason: str
    condition: models.Filter


def checks(space: EmbeddingSpace | None = None) -> list[Check]:
    """Every check that the engine can count, but for fields with several values (see `several_values`)."""
    found: list[Check] = []

    def check(field: str, reason: Reason, must: Sequence[Condition] = (), unless: Sequence[Condition] = ()) -> None:
        condition = models.Filter(must=list(must) or None, must_not=list(unless) or None)
        found.append(Check(f"{field}.{reason.value}", condition))

    def check_presence(field: str) -> None:
        check(field, Reason.MISSING, must=[is_empty(field)], unless=[_is_null(field)])
        check(field, Reason.NULL, must=[is_empty(field), _is_null(field)])

    for field, allowed in CHOICES.items():
        check_presence(field)
        check(field, Reason.WRONG_TYPE, unless=[is_empty(field), is_text(field)])
        check(field, Reason.UNKNOWN, must=[_is_other(field, allowed)])
    for field in REQUIRED_TEXTS:
        check_presence(field)
        check(field, Reason.WRONG_TYPE, unless=[is_empty(field), is_text(field)])
    for field in NULLABLE_TEXTS:
        check(field, Reason.WRONG_TYPE, unless=[is_empty(field), is_text(field)])
    check_presence("indexed")
    booleans = [matches("indexed", value=True), matches("indexed", value=False)]
    check("indexed", Reason.WRONG_TYPE, unless=[is_empty("indexed"), *booleans])
    check_presence("created_at")
    for field in ("created_at", "updated_at"):
        check(field, Reason.MALFORMED, unless=[is_empty(field), _is_time(field)])
    below, from_one = _range("ttl_days", lt=1), _range("ttl_days", gte=1)
    check("ttl_days", Reason.WRONG_TYPE, unless=[is_empty("ttl_days"), below, from_one])
    check("ttl_days", Reason.OUT_OF_RANGE, must=[below])
    below, from_zero, above = _range("importance", lt=0), _range("importance", gte=0), _range("importance", gt=1)
    check("importance", Reason.WRONG_TYPE, unless=[is_empty("importance"), below, from_zero])
    check("importance", Reason.OUT_OF_RANGE, must=[either(below, above)])
    owner = models.Filter(must=[is_text("owner_id"), matches_any("owner_kind", OWNER_KINDS)])
    for visibility in ("confidential", "private"):
        condition = models.Filter(must=[matches("visibility", visibility)], must_not=[owner])
        found.append(Check(_without_owner(visibility), condition))
    if space is not None:
        found += _space_checks(space)
    return found


def several_values(field: str) -> models.Filter:
    """The points where `field` holds several values. The engine reads the payload of every point for this.

    So ask only when `has_value` finds fewer points than the distinct values of the field count together.
    """
    return models.Filter(must=[models.FieldCondition(key=field, values_count=models.ValuesCount(gte=2))])


def has_value(field: str) -> models.Filter:
    """The points that the index of a field of `SINGLE_VALUED` holds a value of."""
    if field == "indexed":
        return either(matches(field, value=True), matches(field, value=False))
    if field == "ttl_days":
        return either(_range(field, lt=1), _range(field, gte=1))
    return models.Filter(must=[is_text(field)])


def is_tenant_id(value: object) -> bool:
    """Whether `value` is `t_<slug>`."""
    try:
        parse_identifier(value, Kind.TENANT)  # type: ignore[arg-type]
    except ValueError:
        return False
    return True


def countable_reasons() -> frozenset[str]:
    """Every reason that the engine can count, given the indexes of a memory collection."""
    space = EmbeddingSpace(dim=1, metric="any", model="any")
    lists = {f"{field}.{Reason.LIST.value}" for field in SINGLE_VALUED}
    return frozenset({check.reason for check in checks(space)} | lists | {WRONG_TENANT})


def payload_problems(payload: Mapping[str, Any], space: EmbeddingSpace, *, lenient: bool = False) -> list[str]:
    """Every reason for which a payload is wrong in a collection of this space, sorted; empty when it is not.

    With `lenient` what `LenientPayload` accepts passes.
    """
    model = LenientPayload if lenient else Payload
    reasons = {problem.code for problem in model.problems(payload)}
    embedding = payload.get("embedding")
    if isinstance(embedding, Mapping):
        for key in ("dim", "metric", "model"):
            wanted, stands = getattr(space, key), embedding.get(key)
            if type(stands) is type(wanted) and stands != wanted:
                reasons.add(f"embedding.{key}.{Reason.MISMATCH.value}")
    visibility = payload.get("visibility")
    if visibility in ("confidential", "private") and not (
        isinstance(payload.get("owner_id"), str) and payload.get("owner_kind") in OWNER_KINDS
    ):
        reasons.add(_without_owner(visibility))
    return sorted(reasons)


def _without_owner(visibility: str) -> str:
    return f"{visibility}.no_owner"


def _space_checks(space: EmbeddingSpace) -> Iterator[Check]:
    mismatch = Reason.MISMATCH.value
    if space.dim is not None:
        other = either(_range("embedding.dim", lt=space.dim), _range("embedding.dim", gt=space.dim))
        yield Check(f"embedding.dim.{mismatch}", other)
    for key, wanted in (("metric", space.metric), ("model", space.model)):
        if wanted is not None:
            condition = models.Filter(must=[_is_other(f"embedding.{key}", [wanted])])
            yield Check(f"embedding.{key}.{mismatch}", condition)


def _is_null(key: str) -> models.IsNullCondition:
    return models.IsNullCondition(is_null=models.PayloadField(key=key))


def _is_other(key: str, values: Sequence[str]) -> models.FieldCondition:
    """Points with a string under `key` that is none of `values`."""
    return models.FieldCondition(key=key, match=models.MatchExcept(**{"except": list(values)}))


def _is_time(key: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, range=models.DatetimeRange(gte=EARLIEST, lte=LATEST))


def _range(key: str, **bounds: float) -> models.FieldCondition:
    return models.FieldCondition(key=key, range=models.Range(**bounds))
