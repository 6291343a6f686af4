"""Whose a point becomes: its tenant, owner and agent, each refused where the point leaves a doubt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from comemory.errors import shown
from comemory.identifiers import Kind
from comemory.migration.identity import derived_slug
from comemory.migration.record import Record, Unmappable
from comemory.migration.rules import Assignment, RuleSet
from comemory.migration.shapes.base import at, text

_TENANT_FIELDS: Final = ("tenant_id", "metadata.tenant_id", "meta.tenant_id")


class Whose:
    """Users and agents as the rules call them."""

    def __init__(self, rules: RuleSet) -> None:
        self._called = {
            Kind.USER: _called(rule.users for rule in rules.all()),
            Kind.AGENT: _called(rule.agents for rule in rules.all()),
        }

    def agent(self, record: Record, to: Assignment) -> str | None:
        """The rule's agent, else the one that the point names."""
        return to.agent if to.agent is not None else self._named(Kind.AGENT, "agent", record.agent, to.rule.agents)

    def owner(self, record: Record, to: Assignment, agent: str | None) -> str:
        """The rule's owner, else the user that the point names, else the agent, else the rule's team.

        Raises:
            Unmappable: nobody is named, or not where the rule says that somebody is, or what stands there is no id.
        """
        if to.owner is not None:
            return to.owner
        field = to.rule.user_field
        user = record.user if field is None else at(record.kept, field)
        if field is not None and user is None:
            raise Unmappable(
                "user.missing", f"the point has no {field}, where rule {to.rule.name!r} looks for its user"
            )
        named = self._named(Kind.USER, "user", user, to.rule.users) or agent or to.team
        if named is None:
            raise Unmappable("owner.unknown", f"neither rule {to.rule.name!r} nor the point says whose it is")
        return named

    def _named(self, kind: Kind, what: str, value: object, known: Mapping[str, str]) -> str | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise Unmappable(f"{what}.malformed", f"the point's {what} is {shown(value)}; expected an id")
        name = str(value)
        if name in known:
            return known[name]
        made = derived_slug(kind, name)
        if name not in self._called[kind].get(made, {name}):
            # Somebody at the old place has the name by which another is called here: they must not become one.
            raise Unmappable(
                f"{what}.ambiguous",
                f"the point's {what} is {shown(name)}, and the rules call another {made}; name it under `{what}s`",
            )
        return made


def partition_at(payload: Mapping[str, Any], field: str) -> str | None:
    """What a rule's `partition_field` holds; None where it is not there.

    Raises:
        Unmappable: it is no name.
    """
    value = at(payload, field)
    if value is None:
        return None
    said = text(value)
    if said is None:
        raise Unmappable("partition.malformed", f"the point's {field} is {shown(value)}; expected one name")
    return said


def check_tenant(payload: Mapping[str, Any], record: Record, to: Assignment) -> None:
    """Refuse a point that names its user or agent, and another tenant than a rule that does not look there.

    Users of two tenants may have one id; under one tenant they would become one reader.
    """
    named = (
        record.user is not None or to.rule.user_field is not None or (to.agent is None and record.agent is not None)
    )
    if to.rule.partitions is not None or to.tenant is None or to.owner is not None or not named:
        return
    for path in _TENANT_FIELDS:
        said = at(payload, path)
        if said is not None and said != record.partition and to.tenant not in (said, f"{Kind.TENANT.value}_{said}"):
            raise Unmappable(
                "tenant.other",
                f"the point's {path} is {shown(said)}, and rule {to.rule.name!r} puts it under {to.tenant}; say "
                f"which go there by `partition_field: {path}` and `partitions`",
            )


def _called(maps: Iterable[Mapping[str, str]]) -> dict[str, set[str]]:
    """The framework's names of each user or agent that the rules name."""
    found: dict[str, set[str]] = {}
    for names in maps:
        for name, called in names.items():
            found.setdefault(called, set()).add(name)
    return found
