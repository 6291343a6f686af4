"""Declared against live: what would have to change, as typed changes with one line of text each.

Only what is declared is compared: a value that the declaration leaves out is the server's own, whatever it is.
One comparator per aspect (vectors, sparse vectors, settings, metadata, indexes), after alembic's example;
`comemory.live` reads what the server says, `patch_body` turns in-place changes into Qdrant's `PATCH
/collections/{name}` request. Nothing here talks to a server.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from comemory.catalog import CollectionSpec, SparseVectorSpec, VectorSpec, next_version
from comemory.indexes import IndexSpec
from comemory.live import LiveCollection, LiveIndex

ABSENT_MEANS: dict[str, Any] = {
    "datatype": "float32",
    "sharding_method": "auto",
    "modifier": "none",
    "on_disk": False,
    "always_ram": False,
    "enabled": False,
    "is_tenant": False,
    "is_principal": False,
    "enable_hnsw": True,
    "lookup": True,
    "range": True,
    "tokenizer": "word",
    "lowercase": True,
    "phrase_matching": False,
    "ascii_folding": False,
}
"""Values that a server leaves out of its answer because they are its defaults."""

_PARAMS = ("replication_factor", "write_consistency_factor", "on_disk_payload")
_BLOCKS = ("hnsw_config", "optimizers_config", "strict_mode_config")
_IMMUTABLE_VECTOR = ("size", "distance", "datatype")


@dataclass(frozen=True)
class Change:
    """Something declared that is not so on the server."""

    collection: str

    @property
    def text(self) -> str:
        """One line for a person."""
        raise NotImplementedError


@dataclass(frozen=True)
class InPlace(Change):
    """A value that `PATCH` changes while the collection serves; `path` is where it stands in the declaration."""

    path: tuple[str, ...]
    live: Any
    declared: Any

    @property
    def text(self) -> str:
        """`cm_text_4_v1: hnsw_config.m is 16, declared 0 (changed in place)`."""
        where = f"{self.collection}: {'.'.join(self.path)}"
        return f"{where} is {_show(self.live)}, declared {_show(self.declared)} (changed in place)"


@dataclass(frozen=True)
class VectorMissing(Change):
    """A declared named vector that the collection does not have; it is added empty, no point is touched."""

    vector: str
    spec: VectorSpec | SparseVectorSpec

    @property
    def text(self) -> str:
        """Names the vector."""
        return f"{self.collection}: vector {self.vector!r} is missing (added in place; existing points have none)"


@dataclass(frozen=True)
class IndexMissing(Change):
    """A declared payload index that is not there; building it reads every point."""

    spec: IndexSpec

    @property
    def text(self) -> str:
        """Names field and type."""
        return f"{self.collection}: index on {self.spec.field} ({self.spec.type}) is missing (built in place)"


@dataclass(frozen=True)
class IndexRebuild(Change):
    """A payload index of another type or with other parameters: it is dropped and rebuilt."""

    spec: IndexSpec
    differences: tuple[tuple[str, Any, Any], ...]

    @property
    def text(self) -> str:
        """Names the field, what differs, and that filters on it suffer meanwhile."""
        what = ", ".join(f"{name} {_show(live)} -> {_show(declared)}" for name, live, declared in self.differences)
        return (
            f"{self.collection}: index on {self.spec.field} will be dropped and rebuilt ({what}); "
            "until it is built, filters on it are slow, or refused in strict mode"
        )


@dataclass(frozen=True)
class IndexUnexpected(Change):
    """An index that nobody declared. It is reported and left alone."""

    field: str
    type: str

    @property
    def text(self) -> str:
        """Names field and type."""
        return f"{self.collection}: index on {self.field} ({self.type}) is not declared (left alone)"


@dataclass(frozen=True)
class Impossible(Change):
    """A value that no request changes in an existing collection: a new version has to be declared."""

    path: tuple[str, ...]
    live: Any
    declared: Any

    @property
    def text(self) -> str:
        """Names the value and the collection to declare instead."""
        return (
            f"{self.collection}: {'.'.join(self.path)} is {_show(self.live)} and cannot be changed to "
            f"{_show(self.declared)} in an existing collection; "
            f"declare {next_version(self.collection)} and move the data"
        )


def compare(
    declared: CollectionSpec, live: LiveCollection, indexes: Iterable[IndexSpec] | None = None
) -> list[Change]:
    """Everything declared that is not so, vectors first, then settings, metadata and indexes.

    With `indexes` None the payload indexes are not looked at; an empty iterable says that none is declared.
    """
    changes: list[Change] = [
        *compare_vectors(declared, live),
        *compare_sparse_vectors(declared, live),
        *compare_sharding(declared, live),
        *compare_settings(declared, live),
        *compare_metadata(live, declared.stored_metadata()),
    ]
    if indexes is not None:
        changes += compare_indexes(live, indexes)
    return changes


def compare_vectors(declared: CollectionSpec, live: LiveCollection) -> Iterator[Change]:
    """Dense vectors: missing ones, what can never change, and what can."""
    name, found = declared.name, live.settings.get("vectors", {})
    if "" in found:
        yield Impossible(name, ("vectors",), "one unnamed vector", f"named {', '.join(declared.vectors)}")
        return
    for vector, spec in declared.vectors.items():
        if vector not in found:
            yield VectorMissing(name, vector, spec)
            continue
        wanted, has = spec.declared(), found[vector]
        for key in _IMMUTABLE_VECTOR:
            if key in wanted and not _same(key, wanted[key], has.get(key)):
                yield Impossible(name, ("vectors", vector, key), has.get(key, ABSENT_MEANS.get(key)), wanted[key])
        if wanted.get("multivector_config") != has.get("multivector_config"):
            path = ("vectors", vector, "multivector_config")
            yield Impossible(name, path, has.get("multivector_config"), wanted.get("multivector_config"))
        for key in ("on_disk", "hnsw_config"):
            if key in wanted:
                yield from _leaves(name, ("vectors", vector, key), wanted[key], has.get(key))
        if "quantization_config" in wanted:
            path = ("vectors", vector, "quantization_config")
            yield from _quantization(name, path, wanted["quantization_config"], has.get("quantization_config"))


def compare_sparse_vectors(declared: CollectionSpec, live: LiveCollection) -> Iterator[Change]:
    """Sparse vectors: missing ones, their index in place, modifier and datatype never."""
    found = live.settings.get("sparse_vectors") or {}
    for vector, spec in (declared.sparse_vectors or {}).items():
        if vector not in found:
            yield VectorMissing(declared.name, vector, spec)
            continue
        wanted, has = spec.declared(), found[vector]
        index, has_index = wanted.get("index", {}), has.get("index") or {}
        path = ("sparse_vectors", vector)
        for where, key, one, other in (
            ((*path, "modifier"), "modifier", wanted, has),
            ((*path, "index", "datatype"), "datatype", index, has_index),
        ):
            if key in one and not _same(key, one[key], other.get(key)):
                yield Impossible(declared.name, where, other.get(key, ABSENT_MEANS[key]), one[key])
        mutable = {key: value for key, value in index.items() if key != "datatype"}
        yield from _leaves(declared.name, (*path, "index"), mutable, has_index)


def compare_sharding(declared: CollectionSpec, live: LiveCollection) -> Iterator[Change]:
    """The number of shards and how points are spread over them: fixed when the collection is made."""
    for key in ("shard_number", "sharding_method"):
        wanted, has = getattr(declared, key), live.settings.get(key)
        if wanted is not None and not _same(key, wanted, has):
            yield Impossible(declared.name, (key,), ABSENT_MEANS.get(key) if has is None else has, wanted)


def compare_settings(declared: CollectionSpec, live: LiveCollection) -> Iterator[Change]:
    """Everything of the collection that `PATCH` changes: graph, optimizers, quantization, strict mode,
    replication.
    """
    wanted = declared.declared()
    for key in (*_BLOCKS, *_PARAMS):
        if key in wanted:
            yield from _leaves(declared.name, (key,), wanted[key], live.settings.get(key))
    if "quantization_config" in wanted:
        has = live.settings.get("quantization_config")
        yield from _quantization(declared.name, ("quantization_config",), wanted["quantization_config"], has)


def compare_metadata(live: LiveCollection, wanted: Mapping[str, Any]) -> Iterator[Change]:
    """Metadata, key by key; keys that are not wanted are left alone."""
    has = live.settings.get("metadata") or {}
    for key, value in wanted.items():
        if has.get(key) != value:
            yield InPlace(live.name, ("metadata", key), has.get(key), value)


def compare_indexes(live: LiveCollection, indexes: Iterable[IndexSpec]) -> Iterator[Change]:
    """Payload indexes: missing, different, and not declared."""
    wanted = {spec.field: spec for spec in indexes}
    for field, spec in wanted.items():
        yield from compare_index(live.name, spec, live.indexes.get(field))
    for field, index in live.indexes.items():
        if field not in wanted:
            yield IndexUnexpected(live.name, field, index.type)


def compare_index(collection: str, spec: IndexSpec, live: LiveIndex | None) -> Iterator[Change]:
    """One payload index. Qdrant changes no index in place: whatever differs, it is dropped and rebuilt."""
    if live is None:
        yield IndexMissing(collection, spec)
        return
    if spec.type != live.type:
        yield IndexRebuild(collection, spec, (("type", live.type, spec.type),))
        return
    differences = tuple(
        (key, live.params.get(key, ABSENT_MEANS.get(key)), value)
        for key, value in spec.parameters().items()
        if not _same(key, value, live.params.get(key))
    )
    if differences:
        yield IndexRebuild(collection, spec, differences)


def patch_body(changes: Iterable[Change]) -> dict[str, Any]:
    """The body of `PATCH /collections/{name}` that makes all in-place changes among `changes`; empty when
    there is none.
    """
    body: dict[str, Any] = {}
    for change in changes:
        if not isinstance(change, InPlace):
            continue
        path = ("params", *change.path) if change.path[0] in _PARAMS else change.path
        place = body
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = change.declared
    return body


def observed(declared: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """What the server says about exactly the declared keys, in the declaration's own shape.

    A key that the server leaves out because the declared value is its default keeps the declared value; one
    that it does not have is left out.
    """
    found: dict[str, Any] = {}
    for key, value in declared.items():
        has = live.get(key)
        if key == "quantization_config":
            if not list(_quantization("", (), value, has)):
                found[key] = value
            elif has is not None:
                found[key] = has
        elif isinstance(value, Mapping) and isinstance(has, Mapping):
            found[key] = observed(value, has)
        elif _same(key, value, has):
            found[key] = value
        elif has is not None:
            found[key] = has
    return found


def _leaves(collection: str, path: tuple[str, ...], wanted: Any, has: Any) -> Iterator[Change]:
    if isinstance(wanted, Mapping):
        for key, value in wanted.items():
            yield from _leaves(collection, (*path, key), value, has.get(key) if isinstance(has, Mapping) else None)
    elif not _same(path[-1], wanted, has):
        yield InPlace(collection, path, has, wanted)


def _quantization(collection: str, path: tuple[str, ...], wanted: dict[str, Any], has: Any) -> Iterator[Change]:
    """A quantization is one value: the server replaces it as a whole, so it is sent as a whole."""
    if has and has.get("disabled"):
        has = None
    if wanted.get("disabled"):
        if has:
            yield InPlace(collection, path, has, "Disabled")
        return
    ((kind, parameters),) = wanted.items()
    live = (has or {}).get(kind)
    if live is None or any(not _same(key, value, live.get(key)) for key, value in parameters.items()):
        yield InPlace(collection, path, has, wanted)


def _same(key: str, wanted: Any, has: Any) -> bool:
    if has is None:
        return key in ABSENT_MEANS and bool(ABSENT_MEANS[key] == wanted)
    if isinstance(wanted, bool) or isinstance(has, bool):
        return wanted is has
    if isinstance(wanted, int | float) and isinstance(has, int | float):
        return math.isclose(wanted, has, rel_tol=1e-6)
    if key == "stopwords":
        return _stopwords(wanted) == _stopwords(has)
    return bool(wanted == has)


def _stopwords(value: Any) -> tuple[frozenset[str], frozenset[str]]:
    if isinstance(value, str):
        return frozenset({value}), frozenset()
    return frozenset(value.get("languages") or ()), frozenset(value.get("custom") or ())


def _show(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
