"""From a point of another schema to a payload of `cm_payload_v1`, or to the reason why there is none.

Nothing of the old payload decides who reads the new one but what the shape's reader calls user and agent, and of
these an unclear one refuses the point. The old fields are carried along under `legacy`, which no filter looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from comemory.errors import shown
from comemory.fingerprints import fingerprint
from comemory.migration.identity import PointIds, derived_ulid
from comemory.migration.record import Marker, Record, Unmappable
from comemory.migration.rules import Assignment, Rule, RuleSet
from comemory.migration.shapes import FLAT, SHAPES, shape_of
from comemory.migration.shapes.base import Shape, at
from comemory.migration.times import to_utc
from comemory.migration.vectors import VectorMap
from comemory.migration.whose import Whose, check_tenant, partition_at
from comemory.payload import SCHEMA_VERSION, Payload

TEXT: Final = "text"
"""Where the content stands in the new payload; the specification has no field for it."""
LEGACY: Final = "legacy"
"""Where the new payload says what it was before: origin, collection, id, shape, rule, and the old fields."""

NOT_PLANNED: Final = "shape.new"
"""Why a point has no place that came after the look at its collection, with a shape that was not seen there."""

_KIND_OF_SCOPE: Final = {
    "docs": "document", "messages": "message", "memory": "document", "artifacts": "artifact", "signals": "message",
}  # fmt: skip
_PREFIX_OF_KIND: Final = {"message": "msg", "artifact": "art"}
_OWNER_KIND: Final = {"agt": "agent", "team": "team", "user": "user"}
_ONE_MILLION: Final = 1_000_000
_MADE_HERE: Final = frozenset({"source_id", "chunk", "fingerprint", "created_at", "updated_at", TEXT, LEGACY})
_MOST_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Mapped:
    """A point that has a place: its new id, payload and collection, and by which shape and rule."""

    id: str
    payload: dict[str, Any]
    target: str
    shape: str
    rule: str
    vectors: VectorMap | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A point that is no memory."""

    shape: str
    what: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A point without a place: `code` to count by, `detail` for a person; shape and rule as far as found."""

    code: str
    detail: str
    shape: str | None = None
    rule: str | None = None


Outcome = Mapped | LeftOut | Refused


Layout = Callable[[Rule, str], VectorMap]
"""How the source's vectors stand in a target, by a rule; raises `Unmappable` where they do not fit."""


class Mapper:
    """Maps the points of one collection.

    Args:
        rules: whose they become.
        collection: its name on the source.
        shapes: the names of the shapes that a look at the whole collection found; None takes any. `flat` beside a
            framework's shape is not taken for one.
        layout: where the vectors go; None: the vectors are not looked at.
    """

    def __init__(
        self,
        rules: RuleSet,
        collection: str,
        *,
        shapes: frozenset[str] | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.rules, self.collection, self._shapes, self._layout = rules, collection, shapes, layout
        self._sound: set[tuple[tuple[str, str], ...]] = set()
        self._ids = PointIds(rules.origin, collection)
        self._source = lru_cache(maxsize=10_000)(derived_ulid)
        mine = rules.of_collection(collection)
        fields = self._fields = tuple(dict.fromkeys(rule.partition_field for rule in mine if rule.partition_field))
        self._assign = lru_cache(maxsize=10_000)(
            lambda partition, *said: rules.assign(collection, partition, dict(zip(fields, said, strict=True)))
        )
        self._whose = Whose(rules)
        forced = {rule.shape for rule in mine if rule.shape is not None}
        self._forced = SHAPES[forced.pop()] if len(forced) == 1 else None

    def map(self, point_id: int | str, payload: Mapping[str, Any] | None) -> Outcome:
        """The outcome for one point, as a scroll returns it."""
        stored = payload or {}
        shape: Shape | None = None
        rule: Rule | None = None
        try:
            shape = self._shape(stored)
            record = shape.read(stored)
            if isinstance(record, Marker):
                return LeftOut(shape.name, record.what)
            assigned = self._assignment(stored, record, shape)
            rule = assigned.rule
            check_tenant(stored, record, assigned)
            return self._mapped(point_id, record, assigned, shape)
        except Unmappable as reason:
            return Refused(reason.code, reason.detail, shape.name if shape else None, rule.name if rule else None)

    def _shape(self, payload: Mapping[str, Any]) -> Shape:
        if payload.get("schema_version") == SCHEMA_VERSION:
            raise Unmappable("schema_version.already", f"the payload is of {SCHEMA_VERSION} already")
        found = shape_of(payload)
        if found is None and self._forced is not None and self._forced.fits(payload):
            found = self._forced
        if found is None or (self._shapes is not None and found.name not in self._shapes):
            if found is not None and (found is not FLAT or not self._shapes):
                raise Unmappable(NOT_PLANNED, f"a point is of shape {found.name}, of which there was none before")
            looks = "no known shape" if found is None else f"shape {found.name}, which is not this collection's"
            raise Unmappable("shape.unknown", f"the payload has {looks}; its fields: {shown(sorted(payload), 200)}")
        return found

    def _assignment(self, payload: Mapping[str, Any], record: Record, shape: Shape) -> Assignment:
        declared = [partition_at(payload, field) for field in self._fields]
        assigned = self._assign(record.partition, *declared)
        if assigned is None:
            said = ", ".join(map(shown, (record.partition, *declared)))
            raise Unmappable("rule.none", f"no rule is about partition {said}")
        if assigned.rule.shape not in (None, shape.name):
            raise Unmappable(
                "shape.other", f"the point is of shape {shape.name}, the rule of {assigned.rule.shape}"
            )
        return assigned

    def _mapped(self, point_id: int | str, record: Record, to: Assignment, shape: Shape) -> Mapped:
        if to.tenant is None:
            raise Unmappable("tenant.unknown", f"rule {to.rule.name!r} names no tenant")
        if not to.target:
            raise Unmappable("target.unknown", f"rule {to.rule.name!r} names no target collection")
        vectors = None if self._layout is None else self._layout(to.rule, to.target)
        new_id, chunk_id = self._ids.of(point_id)
        return Mapped(
            id=new_id,
            payload=self._payload((point_id, chunk_id), record, to, shape, vectors),
            target=to.target,
            shape=shape.name,
            rule=to.rule.name,
            vectors=vectors,
        )

    def _payload(
        self,
        ids: tuple[int | str, str],
        record: Record,
        to: Assignment,
        shape: Shape,
        vectors: VectorMap | None,
    ) -> dict[str, Any]:
        rule = to.rule
        point_id, chunk_id = ids
        content = record.content
        if not isinstance(content, str) or not content.strip():
            raise Unmappable("content.missing", f"the point has no text (its content is {shown(content, 20)})")
        scope = rule.scope or record.scope
        if scope is None:
            raise Unmappable("scope.unknown", f"neither rule {rule.name!r} nor the point says a scope")
        agent = self._whose.agent(record, to)
        owner = self._whose.owner(record, to, agent)
        kind = rule.source_kind or record.source_kind or _KIND_OF_SCOPE[scope]
        origin = (self.rules.origin, self.collection)
        source = ("point", point_id) if record.source is None else ("source", record.partition or "", record.source)
        made: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "tenant_id": to.tenant,
            "owner_kind": _OWNER_KIND.get(owner.partition("_")[0], ""),
            "owner_id": owner,
            "scope": scope,
            "visibility": rule.visibility,
            "indexed": rule.indexed,
            "source_kind": kind,
            "source_id": self._source(_PREFIX_OF_KIND.get(kind, "doc"), to.tenant, *origin, *source),
            "chunk": {
                "chunk_id": chunk_id,
                "chunk_idx": _position(record.position),
            },
            "fingerprint": fingerprint(content),
            "created_at": self._created(record, to),
            TEXT: content,
            LEGACY: {
                "origin": self.rules.origin,
                "collection": self.collection,
                "id": point_id,
                "shape": shape.name,
                "rule": rule.name,
                "fields": record.kept,
            },
        }
        optional = {
            "team_id": to.team,
            "project_id": to.project,
            "agent_id": agent,
            "acl": to.acl,
            "tags": list(to.tags) or None,
            "lang": rule.lang,
            "updated_at": None if record.updated is None else to_utc("updated_at", record.updated, to.zone),
            "embedding": _embedding(to.embedding_model or record.model, vectors),
        }
        made |= {key: value for key, value in optional.items() if value is not None}
        self._check(made)
        return made

    def _check(self, made: dict[str, Any]) -> None:
        """Hold the payload against the schema, once for all points that differ only in what is made here.

        Source, chunk, fingerprint and times are well-formed by the way in which they are made; text and old fields
        are no part of the schema.
        """
        said = tuple((key, repr(value)) for key, value in made.items() if key not in _MADE_HERE)
        if said in self._sound:
            return
        if problems := Payload.problems(made):
            raise Unmappable(problems[0].code, "; ".join(map(str, problems)))
        if len(self._sound) < _MOST_KEPT:
            self._sound.add(said)

    def _created(self, record: Record, to: Assignment) -> str:
        value = record.created
        if to.rule.created_field is not None:
            value = at(record.kept, to.rule.created_field)
        if value is None:
            if to.created_at is None:
                raise Unmappable(
                    "created_at.missing",
                    f"the point says no time; declare `created_at` in rule {to.rule.name!r}, or for all",
                )
            return to.created_at
        return to_utc("created_at", value, to.zone)


def _embedding(model: str | None, vectors: VectorMap | None) -> dict[str, Any] | None:
    if vectors is not None and vectors.model is not None and model not in (None, vectors.model):
        raise Unmappable(
            "embedding.other",
            f"the vector was made by {shown(model)}, those of the target by {shown(vectors.model)}",
        )
    made: dict[str, Any] = {} if model is None else {"model": model}
    if vectors is not None and vectors.space is not None:
        made |= {"dim": vectors.space.dim, "metric": vectors.space.metric}
    return made or None


def _position(value: object) -> int:
    """Where in its source a chunk stands; 0 where that is not a whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _ONE_MILLION**2:
        return 0
    return int(value)


def shapes_to_read(found: frozenset[str], rules: RuleSet, collection: str) -> frozenset[str]:
    """Of the shapes that points of a collection have, those that are read.

    `flat` beside a framework's shape is a framework's point with something missing, unless a rule names it.
    """
    frameworks = found - {FLAT.name}
    declared = any(rule.shape == FLAT.name for rule in rules.of_collection(collection))
    return found if declared or not frameworks else frameworks
