"""Drift: what of a collection is not as it should be, by kind. The metric, the audit and the docs show the same.

What is declared (`collections.declared`) is compared in full. Without a declaration every memory collection
still needs its payload indexes, strict mode, and vectors of the size that its name says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from comemory.declaration import Declared
from comemory.drift import Change, IndexUnexpected, compare_indexes
from comemory.errors import InvalidNameError
from comemory.indexes import PAYLOAD_INDEXES
from comemory.live import LiveCollection
from comemory.naming import CollectionName
from ops.declared import drift as declared_drift
from ops.settings import CollectionsSettings

COLLECTION_KINDS: Mapping[str, str] = {
    "index_missing": "A payload index is missing; filters on its key are slow, or refused in strict mode.",
    "index_rebuild": "A payload index has another type or other parameters; it must be dropped and built again.",
    "strict_mode_off": "Filters on keys without an index are not refused, but read every point.",
    "size_mismatch": "The vectors have another size than the collection's name says.",
    "vector_missing": "A declared vector is not there.",
    "in_place": "A setting differs from the declaration; `pulumi up` changes it while the collection serves.",
    "impossible": "Something differs that cannot be changed in an existing collection; declare the next version.",
}
"""Kinds of drift of one collection, with what each means."""

LAYOUT_KINDS: Mapping[str, str] = {
    "collection_missing": "A collection that is declared, or named in `collections.include`, is not on the server.",
    "alias_wrong": "A declared alias is missing or names another collection.",
    "alias_dangling": "An alias names a collection that does not exist; counted under that name.",
}
"""Kinds of drift that concern the server as a whole."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One thing that is not as it should be; `text` is one line for a person."""

    collection: str
    kind: str
    text: str


def collection_drift(live: LiveCollection, declared: Declared | None = None) -> list[Drift]:
    """The drift of a collection that exists, with `declared` or, without, against what every one needs."""
    name = live.name
    found = list(_size_mismatch(live))
    if not (live.settings.get("strict_mode_config") or {}).get("enabled"):
        found.append(Drift(name, "strict_mode_off", f"{name}: strict mode is off"))
    changes: Iterable[Change] = (
        declared_drift(declared, live) if declared is not None else compare_indexes(live, PAYLOAD_INDEXES)
    )
    for change in changes:
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(change).__name__).lower()
        if not isinstance(change, IndexUnexpected):
            found.append(Drift(name, kind, change.text))
    return found


def layout_drift(
    settings: CollectionsSettings, declared: Iterable[Declared], names: Iterable[str], aliases: Mapping[str, str]
) -> list[Drift]:
    """Collections and aliases that should be there and are not, and aliases that lead nowhere."""
    there = set(names)
    declared = tuple(declared)
    wanted = {one.spec.name for one in declared} | (set(settings.include) - set(aliases))
    found = [Drift(name, "collection_missing", f"{name}: is not on the server") for name in sorted(wanted - there)]
    for one in declared:
        if one.alias is not None and aliases.get(one.alias) != one.spec.name:
            target = aliases.get(one.alias)
            says = "does not exist" if target is None else f"names {target}"
            found.append(Drift(one.spec.name, "alias_wrong", f"{one.spec.name}: alias {one.alias} {says}"))
    for alias, target in sorted(aliases.items()):
        if target not in there:
            found.append(Drift(target, "alias_dangling", f"{target}: does not exist, but alias {alias} names it"))
    return found


def dense_vector(live: LiveCollection) -> tuple[str, Mapping[str, object]] | None:
    """The vector that the collection's name speaks of: `dense`, or the only one; None where that is not clear."""
    vectors = live.settings.get("vectors") or {}
    if "dense" in vectors:
        return "dense", vectors["dense"]
    return next(iter(vectors.items())) if len(vectors) == 1 else None


def _size_mismatch(live: LiveCollection) -> Iterator[Drift]:
    dense = dense_vector(live)
    try:
        dim = CollectionName.parse(live.name, types=[live.name.split("_")[1]] if "_" in live.name else []).dim
    except InvalidNameError:
        return
    if dense is not None and dense[1]["size"] != dim:
        vector, spec = dense
        says = f"{live.name}: the name says {dim} dimensions, vector {vector!r} has {spec['size']}"
        yield Drift(live.name, "size_mismatch", says)
