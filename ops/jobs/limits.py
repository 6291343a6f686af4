"""How large a page, a list of ids and a filter may be, as a collection's strict mode has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold; None is no limit. The names are those of `strict_mode_config`."""

    max_query_limit: int | None = None
    condition_max_size: int | None = None
    filter_max_conditions: int | None = None

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Limits:
        """The limits of a collection, from what the server says of it."""
        strict = info["config"].get("strict_mode_config") or {}
        if not strict.get("enabled"):
            return cls()
        return cls(*(strict.get(name) for name in cls.__slots__))

    def page(self, wanted: int) -> int:
        """How many points one page may hold."""
        return min(wanted, self.max_query_limit or wanted)

    def ids(self, wanted: int) -> int:
        """How many ids or values one condition may list."""
        return min(wanted, self.condition_max_size or wanted)

    def conditions(self, wanted: int, *, beside: int) -> int:
        """How many conditions a filter may have beside the `beside` that it always has; at least one."""
        return max(1, min(wanted, (self.filter_max_conditions or wanted + beside) - beside))


def parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """`items` in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
