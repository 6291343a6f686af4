"""Whose a point is: the rule by which a tenant's points, or one owner's in it, are exported and erased.

Identifiers are compared as they are, character by character: no prefix, no case, no Unicode form, no blank is
looked through, and the number 5 is not the tenant "5". A list of one value is that value, as everywhere. A point
that names several tenants belongs to others, too, so it is shared, and never taken for one's own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from qdrant_client import models

from comemory.filters import Condition, at_most_one, every, matches

NAMING_FIELDS = ("acl.read_team_ids", "acl.read_agent_ids", "team_id", "agent_id")
"""Where a point can name a team or agent that does not own it."""


class Belonging(Enum):
    """How a point stands to a subject."""

    OWN = "own"
    SHARED = "shared"
    """It names the subject, and others beside it in the same field."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Subject:
    """A tenant, or one owner in it."""

    tenant: str
    owner: str | None = None

    def __str__(self) -> str:
        return self.tenant if self.owner is None else f"{self.tenant}/{self.owner}"

    @property
    def fields(self) -> dict[str, str]:
        """What the payload of an own point holds."""
        return {"tenant_id": self.tenant} | ({} if self.owner is None else {"owner_id": self.owner})

    def belonging(self, payload: Mapping[str, Any] | None) -> Belonging:
        """Whether a point with this payload is the subject's own."""
        alone = True
        for key, wanted in self.fields.items():
            value = (payload or {}).get(key)
            values = value if isinstance(value, list) else [value]
            if not any(isinstance(one, str) and one == wanted for one in values):
                return Belonging.OTHER
            alone = alone and len(values) == 1
        return Belonging.OWN if alone else Belonging.SHARED

    def any_filter(self) -> models.Filter:
        """Points that name the subject: own and shared ones."""
        return every(*(matches(key, value) for key, value in self.fields.items()))

    def own_filter(self, *more: Condition) -> models.Filter:
        """Points that are the subject's own, and meet `more`."""
        alone = [at_most_one(key) for key in self.fields]
        return every(*more, *(matches(key, value) for key, value in self.fields.items()), *alone)

    def named_filter(self) -> models.Filter | None:
        """Points of the tenant that name the owner without being the owner's; None for a whole tenant."""
        if self.owner is None:
            return None
        return models.Filter(
            must=[matches("tenant_id", self.tenant)],
            should=[matches(key, self.owner) for key in NAMING_FIELDS],
            must_not=[matches("owner_id", self.owner)],
        )

    def looks_alike(self, tenant: object) -> bool:
        """Whether a person could take this other `tenant_id` for the subject's."""
        return tenant != self.tenant and _look(tenant) == _look(self.tenant)


def _look(value: object) -> str:
    """A text without what is passed over: prefix, case, blanks, hyphens for underscores, forms of one letter."""
    plain = unicodedata.normalize("NFKC", str(value)).casefold()
    shown = "".join(c for c in plain if not c.isspace() and unicodedata.category(c) not in {"Cf", "Cc"})
    return unicodedata.normalize("NFKC", shown).replace("-", "_").removeprefix("t_")
