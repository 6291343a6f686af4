"""Rules: from the name of a collection to whom its points belong. As YAML, see docs/migration.md.

The first rule that matches decides, and the built-in ones, the mapping table of the specification, come last. A
rule that says nothing of readers makes points private to their owner; a point whose owner nobody knows is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from comemory.errors import InvalidIdentifierError, shown
from comemory.identifiers import Kind, parse_identifier
from comemory.migration.record import Unmappable
from comemory.migration.shapes import SHAPES
from comemory.migration.times import check_zone, to_utc
from comemory.payload import Acl, Scope, SourceKind, Visibility
from comemory.specs import Spec

_WORD = re.compile(r"\{(\w*)\}")
TEMPLATES: Final = ("tenant", "team", "project", "agent", "owner", "target")
_NAMES: Final = {
    "tenant": (Kind.TENANT,), "team": (Kind.TEAM,), "project": (Kind.PROJECT,), "agent": (Kind.AGENT,),
    "owner": (Kind.AGENT, Kind.TEAM, Kind.USER),
}  # fmt: skip


def _check_name(key: str, value: str, kinds: tuple[Kind, ...], *, groups: bool = False) -> None:
    """Refuse what gives no identifier of these kinds, whatever its groups match (that is checked for each point).

    The prefix has to stand in the rule: a name that somebody gave a collection must not choose between a user and a
    whole team.
    """
    for kind in kinds:
        try:
            parse_identifier(_WORD.sub("x", value) if groups else value, kind)
        except InvalidIdentifierError:
            continue
        return
    expected = " or ".join(f"{kind.value}_<slug>" for kind in kinds)
    raise ValueError(
        f"{key} is {shown(value)}; expected {expected}{', whose prefix is no group' if groups else ''}"
    )


def _time(value: object) -> str | None:
    """A declared time in UTC; YAML makes a date of what is written without quotes."""
    if isinstance(value, date):
        value = value.isoformat()
    try:
        return None if value is None else to_utc("created_at", value)
    except Unmappable as fault:
        if fault.code.endswith("no_zone"):
            raise ValueError(f"{shown(value)} names no offset; write it as 2024-09-01T00:00:00Z") from None
        raise ValueError(fault.detail) from None


Zone = Annotated[str, AfterValidator(check_zone)]
CreatedAt = Annotated[str | None, BeforeValidator(_time)]


class Rule(Spec):
    """What becomes of the points of some collections.

    The values of `tenant`, `team`, `project`, `agent`, `owner`, `target` and of `tags` are written as they shall
    stand in the payload, prefix included (`agt_{agent}`); `{name}` stands for the group `(?P<name>…)` of one of the
    patterns. `tenant`, `target`, `zone`, `created_at` and `embedding_model` hold over those of the rule set.
    """

    name: str = Field(min_length=1, description="What reports call the rule.")
    collections: str = Field(
        min_length=1, description="Regular expression that the collection's whole name matches."
    )
    partitions: str | None = Field(
        None,
        description="Regular expression for the framework's own tenant inside the collection: Open WebUI's "
        "`tenant_id`, Dify's `group_id`, LightRAG's `workspace_id`. Null: any, also none.",
    )
    partition_field: str | None = Field(
        None,
        description="Where in the payload that tenant stands, such as `metadata.customer`; null: by the shape.",
    )
    shape: str | None = Field(None, description=f"One of {', '.join(SHAPES)}; null: found by looking.")
    target: str | None = Field(None, description="The collection that the points go to.")
    tenant: str | None = Field(None, description="Such as t_daarion.")
    team: str | None = Field(None, description="Such as team_core.")
    project: str | None = Field(None, description="Such as proj_helion.")
    agent: str | None = Field(
        None, description="Such as agt_helion; null: the one that the point names, if it does."
    )
    owner: str | None = Field(
        None,
        description="agt_…, team_… or user_…; null: the user that the point names, else the agent, else the team.",
    )
    users: Mapping[str, str] = Field(
        default_factory=dict, description="Who a user is called under the schema, by the framework's id: user_…."
    )
    agents: Mapping[str, str] = Field(default_factory=dict, description="The same for agents: agt_….")
    scope: Scope | None = Field(
        None, description="Null: what the shape says of itself (mem0: memory), else refused."
    )
    source_kind: SourceKind | None = Field(None, description="Null: by the shape, else by the scope.")
    visibility: Visibility = Field("private", description="Who else may read.")
    acl: Acl | None = Field(None, description="Readers of confidential points besides their owner.")
    tags: tuple[str, ...] = Field((), description="Tags.")
    indexed: bool = Field(True, description="Whether agents find the points.")
    lang: str | None = Field(None, description="Language code.")
    zone: Zone | None = Field(None, description="Time zone of times without an offset, such as Europe/Kyiv.")
    created_at: CreatedAt = Field(None, description="For points that say no time: when they were made.")
    created_field: str | None = Field(None, description="Where in the payload the time stands: `metadata.date`.")
    user_field: str | None = Field(
        None, description="Where in the payload the user stands whose the point is: `metadata.user_id`."
    )
    embedding_model: str | None = Field(None, description="What made the vectors; null: what the points say.")
    vectors: Mapping[str, str | None] = Field(
        default_factory=dict,
        description='The target\'s name of each vector of the source; "" is the unnamed one, null leaves it out.',
    )

    @field_validator("collections", "partitions")
    @classmethod
    def _is_pattern(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from None
        return value

    @field_validator("shape")
    @classmethod
    def _is_shape(cls, value: str | None) -> str | None:
        if value is not None and value not in SHAPES:
            raise ValueError(f"is none of {', '.join(SHAPES)}")
        return value

    @model_validator(mode="after")
    def _captures_are_there(self) -> Self:
        named, parted = (re.compile(pattern or "").groupindex for pattern in (self.collections, self.partitions))
        if twice := sorted(named.keys() & parted.keys()):
            raise ValueError(f"the group (?P<{twice[0]}>…) stands in both patterns; give one another name")
        groups = {*named, *parted}
        for key in (*TEMPLATES, "tags"):
            values = getattr(self, key)
            for value in (values,) if isinstance(values, str) else values or ():
                for word in _WORD.findall(value):
                    if word not in groups:
                        raise ValueError(
                            f"{key} has {{{word}}}, and no pattern of the rule has a group (?P<{word}>…)"
                        )
        for key, kinds in _NAMES.items():
            template = getattr(self, key)
            if template is not None:
                _check_name(key, template, kinds, groups=True)
        for key, kind in (("users", Kind.USER), ("agents", Kind.AGENT)):
            for name, value in getattr(self, key).items():
                _check_name(f"{key}.{name}", value, (kind,))
        if self.partition_field is not None and self.partitions is None:
            raise ValueError("partition_field says where to look, and no `partitions` what for")
        if self.owner is not None and self.user_field is not None:
            raise ValueError("owner and user_field both say whose the points are; give one")
        if self.acl is not None and self.visibility != "confidential":
            raise ValueError(f"acl opens confidential points only, and visibility is {self.visibility}")
        return self


@dataclass(frozen=True, slots=True)
class Assignment:
    """A rule applied to one collection and partition: its templates filled in."""

    rule: Rule
    tenant: str | None
    target: str | None
    team: str | None = None
    project: str | None = None
    agent: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    zone: str | None = None
    created_at: str | None = None
    embedding_model: str | None = None
    acl: Mapping[str, Any] | None = field(default=None)


class RuleSet(Spec):
    """Rules, what holds for all of them, and the name of the place that the points come from.

    `origin` parts the ids of points of equal collections and ids on two servers; it is kept in every payload.
    """

    version: Literal[1] = Field(1, description="Of this format.")
    origin: str = Field("legacy", pattern=r"^[a-z0-9][a-z0-9_.-]{0,62}$", description="What the source is called.")
    tenant: str | None = Field(None, description="The tenant, where a rule names none.")
    target: str | None = Field(None, description="The target collection, where a rule names none.")
    zone: Zone | None = Field(None, description="Time zone of times without an offset, where a rule names none.")
    created_at: CreatedAt = Field(None, description="When points were made that say no time.")
    embedding_model: str | None = Field(None, description="What made the vectors.")
    builtin: bool = Field(True, description="Whether the specification's table comes after the rules.")
    rules: tuple[Rule, ...] = Field((), description="The first that matches decides.")

    @field_validator("tenant")
    @classmethod
    def _is_tenant(cls, value: str | None) -> str | None:
        if value is not None:
            parse_identifier(value, Kind.TENANT)
        return value

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [rule.name for rule in self.all()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules are named {twice[0]!r}")
        return self

    def all(self) -> tuple[Rule, ...]:
        """The rules in the order in which they are asked."""
        return (*self.rules, *BUILTIN) if self.builtin else self.rules

    def of_collection(self, collection: str) -> tuple[Rule, ...]:
        """The rules that may decide about points of this collection."""
        return tuple(rule for rule in self.all() if re.fullmatch(rule.collections, collection))

    def assign(
        self, collection: str, partition: str | None, fields: Mapping[str, str | None] | None = None
    ) -> Assignment | None:
        """What the first matching rule says; None where there is none.

        Args:
            collection: its name.
            partition: what the shape says is the framework's own tenant.
            fields: what stands at each `partition_field` of the collection's rules.
        """
        for rule in self.all():
            named = re.fullmatch(rule.collections, collection)
            if named is None:
                continue
            parted = None
            if rule.partitions is not None:
                at = partition if rule.partition_field is None else (fields or {}).get(rule.partition_field)
                parted = None if at is None else re.fullmatch(rule.partitions, at)
                if parted is None:
                    continue
            captured = named.groupdict() | (parted.groupdict() if parted else {})
            filled = {key: _fill(getattr(rule, key), captured) for key in TEMPLATES}
            return Assignment(
                rule=rule,
                # An empty text is a group that matched nothing; it is refused later, and never the default.
                tenant=self.tenant if filled["tenant"] is None else filled["tenant"],
                target=self.target if filled["target"] is None else filled["target"],
                team=filled["team"],
                project=filled["project"],
                agent=filled["agent"],
                owner=filled["owner"],
                tags=tuple(_fill(tag, captured) or "" for tag in rule.tags),
                zone=rule.zone or self.zone,
                created_at=rule.created_at or self.created_at,
                embedding_model=rule.embedding_model or self.embedding_model,
                acl=None if rule.acl is None else rule.acl.model_dump(exclude_none=True),
            )
        return None


def _fill(template: str | None, captured: Mapping[str, str | None]) -> str | None:
    if template is None:
        return None
    return _WORD.sub(lambda word: captured[word[1]] or "", template)


def _table(rows: Iterable[tuple[str, dict[str, Any]]]) -> tuple[Rule, ...]:
    return tuple(Rule(name=f"builtin:{name}", **values) for name, values in rows)


BUILTIN: Final = _table(
    (
        ("helion_docs", {"collections": "helion_docs", "agent": "agt_helion", "scope": "docs"}),
        ("nutra_messages", {"collections": "nutra_messages", "agent": "agt_nutra", "scope": "messages"}),
        (
            "druid_legal_kb",
            {"collections": "druid_legal_kb", "agent": "agt_druid", "scope": "docs", "tags": ("legal_kb",)},
        ),
        (
            "nutra_food_knowledge",
            {"collections": "nutra_food_knowledge", "agent": "agt_nutra", "scope": "docs", "tags": ("food_kb",)},
        ),
        ("*_memory_items", {"collections": ".*_memory_items", "scope": "memory"}),
        ("*_artifacts", {"collections": ".*_artifacts", "scope": "artifacts"}),
    )
)
"""The table "Migration Mapping (Legacy Collections)" of the specification. It names no tenant."""
