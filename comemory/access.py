"""Who may read a point: the rule in plain Python (`can_read`) and the same rule as a Qdrant filter (`read_filter`).

The two agree on every payload, well-formed or not; the tests hold one against the other on the engine. A
payload that is missing a field, or has null or a value of the wrong type in it, is not opened by that field. A
list where one value belongs is read as the engine reads it, as any of its values: a guard against that would
make every query 5 to 100 times slower, so the payload model refuses to write such a list and the audit finds
those that others wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qdrant_client import models

from comemory.errors import InvalidIdentifierError, InvalidPrincipalError, shown
from comemory.filters import Condition, either, every, is_empty, matches, matches_any
from comemory.identifiers import Kind, parse_identifier
from comemory.payload import SCHEMA_VERSION, OwnerKind, Scope

_OWNERS: Final = {"agent": Kind.AGENT, "team": Kind.TEAM, "user": Kind.USER}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a tenant, the owner on whose behalf, and the teams, agents and roles that come with it.

    Owner rules compare `owner_kind` and `owner_id`, ACL rules the three id lists. Nothing is derived: an agent that
    is to use grants made to itself has its own id in `agent_ids` (`Principal.agent` puts it there).

    Raises:
        InvalidPrincipalError: no tenant, or an id with another prefix than its place asks for.
    """

    tenant_id: str
    owner_kind: OwnerKind
    owner_id: str
    team_ids: tuple[str, ...] = ()
    agent_ids: tuple[str, ...] = ()
    role_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check("tenant_id", self.tenant_id, Kind.TENANT)
        owner = _OWNERS.get(self.owner_kind) if isinstance(self.owner_kind, str) else None
        if owner is None:
            raise InvalidPrincipalError(
                f"principal's owner_kind is {shown(self.owner_kind)}; expected one of {', '.join(_OWNERS)}"
            )
        _check("owner_id", self.owner_id, owner)
        for name, kind in (("team_ids", Kind.TEAM), ("agent_ids", Kind.AGENT), ("role_ids", Kind.ROLE)):
            ids = getattr(self, name)
            if isinstance(ids, str) or not isinstance(ids, Collection):
                raise InvalidPrincipalError(f"principal's {name} is {shown(ids)}; expected a collection of ids")
            for one in ids:
                _check(name, one, kind)
            object.__setattr__(self, name, tuple(sorted(set(ids))))

    @classmethod
    def agent(
        cls, tenant_id: str, agent_id: str, *, team_ids: Iterable[str] = (), role_ids: Iterable[str] = ()
    ) -> Principal:
        """An agent that reads what it owns and what is granted to it, its teams and its roles."""
        return cls(tenant_id, "agent", agent_id, _ids(team_ids), (agent_id,), _ids(role_ids))

    @classmethod
    def user(
        cls, tenant_id: str, user_id: str, *, team_ids: Iterable[str] = (), role_ids: Iterable[str] = ()
    ) -> Principal:
        """A person who reads what they own and what is granted to their teams and roles."""
        return cls(tenant_id, "user", user_id, _ids(team_ids), (), _ids(role_ids))


def _ids(ids: Iterable[str]) -> Any:
    return ids if isinstance(ids, str) else tuple(ids)


def _check(field: str, value: object, kind: Kind) -> None:
    try:
        parse_identifier(value, kind)  # type: ignore[arg-type]
    except InvalidIdentifierError as error:
        raise InvalidPrincipalError(f"principal's {field}: {error}") from None


def can_read(payload: Mapping[str, Any], principal: Principal, *, only_indexed: bool = True) -> bool:
    """Whether `principal` may read a point with this payload; the oracle that `read_filter` agrees with.

    Args:
        payload: as stored, well-formed or not.
        principal: who asks.
        only_indexed: also ask that `indexed` is true, as retrieval for agents does.
    """

    def holds(key: str, *wanted: str) -> bool:
        return any(isinstance(value, str) and value in wanted for value in _values(payload, key))

    if not (holds("schema_version", SCHEMA_VERSION) and holds("tenant_id", principal.tenant_id)):
        return False
    if only_indexed and not any(value is True for value in _values(payload, "indexed")):
        return False
    owns = holds("owner_kind", principal.owner_kind) and holds("owner_id", principal.owner_id)
    if owns and holds("visibility", "private", "confidential"):
        return True
    if holds("visibility", "confidential") and (
        holds("acl.read_agent_ids", *principal.agent_ids)
        or holds("acl.read_team_ids", *principal.team_ids)
        or holds("acl.read_role_ids", *principal.role_ids)
    ):
        return True
    no_team = payload.get("team_id") is None or payload["team_id"] == []
    return holds("visibility", "public") and (no_team or holds("team_id", *principal.team_ids))


def _values(payload: Mapping[str, Any], key: str) -> Sequence[Any]:
    """The values the engine sees under `key`: those of a list, else the one. A path leads through objects only."""
    found: Any = payload
    for step in key.split("."):
        if not isinstance(found, Mapping):
            return ()
        found = found.get(step)
    return found if isinstance(found, (list, tuple)) else (found,)


_OF_SCHEMA: Final = matches("schema_version", SCHEMA_VERSION)
_INDEXED: Final = matches("indexed", value=True)
_OWNERS_EYES: Final = matches_any("visibility", ("private", "confidential"))
_CONFIDENTIAL: Final = matches("visibility", "confidential")
_PUBLIC: Final = matches("visibility", "public")
_NO_TEAM: Final = is_empty("team_id")


def read_filter(
    principal: Principal,
    *,
    only_indexed: bool = True,
    scopes: Collection[Scope] = (),
    tags: Collection[str] = (),
    project_ids: Collection[str] = (),
    also: Sequence[Condition] = (),
) -> models.Filter:
    """The filter for `principal`'s queries: exactly the points that `can_read` says yes to, narrowed by the rest.

    Args:
        principal: who asks.
        only_indexed: also ask that `indexed` is true, as retrieval for agents does.
        scopes: only points of one of these scopes; none means all of them.
        tags: only points with at least one of these tags.
        project_ids: only points of one of these projects.
        also: further conditions that have to hold, too; they can only narrow.

    Returns:
        A filter of your own: parts of it are shared between calls, so add conditions through `also`.
    """
    if not isinstance(principal, Principal):
        raise InvalidPrincipalError(f"a read filter needs a Principal, not {shown(principal)}")
    granted: list[Condition] = []
    public: list[Condition] = [_NO_TEAM]
    if principal.agent_ids:
        granted.append(matches_any("acl.read_agent_ids", principal.agent_ids))
    if principal.team_ids:
        granted.append(matches_any("acl.read_team_ids", principal.team_ids))
        public.append(matches_any("team_id", principal.team_ids))
    if principal.role_ids:
        granted.append(matches_any("acl.read_role_ids", principal.role_ids))
    rules: list[Condition] = [
        every(_OWNERS_EYES, matches("owner_kind", principal.owner_kind), matches("owner_id", principal.owner_id)),
        every(_PUBLIC, either(*public)),
    ]
    if granted:
        rules.append(every(_CONFIDENTIAL, either(*granted)))
    must: list[Condition] = [matches("tenant_id", principal.tenant_id), _OF_SCHEMA]
    if only_indexed:
        must.append(_INDEXED)
    for key, wanted in (("scope", scopes), ("tags", tags), ("project_id", project_ids)):
        if isinstance(wanted, str):
            raise TypeError(f"read_filter: {key} is {shown(wanted)}; expected a collection of strings")
        if wanted:
            must.append(matches_any(key, tuple(wanted)))
    return every(*must, either(*rules), *also)
