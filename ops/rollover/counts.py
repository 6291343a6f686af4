"""Exact counts by tenant and scope on both sides, and what ought to explain every difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from comemory.payload import SCOPES
from ops.collectors.tenants import count_tenants
from ops.metrics import OTHER_SCOPES
from ops.rollover.pair import Pair

Key = tuple[str, str]
Counts = Counter[Key]


@dataclass(frozen=True, slots=True)
class Line:
    """One tenant and scope: how many points the old collection has, and the new one.

    `own` is how many more points the new collection has by what applications wrote or deleted there.
    """

    tenant: str
    scope: str
    old: int
    new: int
    own: int

    @property
    def right(self) -> bool:
        """Whether the counts agree, applications' writes aside."""
        return self.old + self.own == self.new


def compare(pair: Pair, own: Counts) -> list[Line]:
    """A line for each tenant and scope that either side has, as the server counts them now."""
    old, new = count_tenants(pair.session, pair.old), count_tenants(pair.session, pair.new)
    keys = sorted(old.keys() | new.keys() | {key for key, count in own.items() if count})
    return [Line(*key, old.get(key, 0), new.get(key, 0), own[key]) for key in keys]


def counted_under(payload: Mapping[str, Any]) -> Iterator[Key]:
    """The tenants and scopes that a point is counted under: one, unless it has lists where one value belongs."""
    tenants = {value for value in _listed(payload.get("tenant_id")) if isinstance(value, str)}
    scopes: set[str] = {
        value for value in _listed(payload.get("scope")) if isinstance(value, str) and value in SCOPES
    }
    yield from product(tenants or {""}, scopes or {OTHER_SCOPES})


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
