"""The two collections of a rollover: that both are there, what the server can do, and where vectors go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from comemory.live import LiveCollection
from comemory.migration.vectors import PREFERRED, UNNAMED, VectorMap, VectorMismatch, lay_out
from ops.errors import OpsError
from ops.jobs.limits import Limits
from ops.session import Session
from ops.writing import demand_modes


@dataclass(frozen=True, slots=True)
class Anew:
    """That vectors are made anew from the content, instead of being copied.

    Args:
        field: the payload's field that holds the text.
        model: what makes the vectors; None: what the new collection's metadata says.
    """

    field: str = "text"
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two collections of one server.

    `vectors` says which vectors are copied, by their names on both sides; `made` is the one that is made anew from
    the text in `text` (None: none is), of `size` numbers, and `embedding` what a payload says of it; `left_out` are
    vectors of the old collection that the new one does not have; `unindexed` are fields that the old one has an
    index on and the new one has not, or has one of another type.
    """

    session: Session
    old: str
    new: str
    vectors: VectorMap
    limits: Limits
    live: LiveCollection
    made: str | None = None
    text: str = ""
    size: int = 0
    embedding: Mapping[str, Any] | None = None
    left_out: tuple[str, ...] = ()
    unindexed: tuple[str, ...] = ()

    @property
    def read(self) -> bool | list[str]:
        """The vectors to read of an old point, as a scroll asks for them."""
        names = sorted(self.vectors.names)
        return True if UNNAMED in names else names or False

    def page(self, batch: int) -> int:
        """How many points one page and one upsert may hold."""
        return self.limits.page(batch)


def open_pair(session: Session, old: str, new: str, anew: Anew | None = None, *, vectors: bool = True) -> Pair:
    """Look at both collections.

    Args:
        session: of the server that has both.
        old: the collection that applications use now.
        new: the one that is to take its place.
        anew: how vectors are made; None: they are copied.
        vectors: whether it matters where they go.

    Raises:
        OpsError: one is missing, they are the same, their vectors do not fit, or the server is too old.
    """
    demand_modes(session, "a rollover")
    names, aliases = session.collections(), session.aliases()
    for name in (old, new):
        if name in aliases:
            raise OpsError(
                f"'{name}' is an alias of {aliases[name]}; name the collections themselves. Nothing was done."
            )
    if old == new:
        raise OpsError(f"'{old}' is named twice; a rollover goes from one collection to another.")
    if old not in names:
        raise OpsError(f"There is no collection '{old}' at {session.url}. Nothing was done.")
    if new not in names:
        raise OpsError(
            f"There is no collection '{new}' at {session.url}, and a rollover makes none. Declare it beside "
            f"'{old}' (an entry with this name under `comemory:collections` of the stack), run `pulumi up`, and "
            "try again. Nothing was done."
        )
    infos = {name: session.collection(name) for name in (old, new)}
    source, target = (LiveCollection.from_rest(name, infos[name]) for name in (old, new))
    limits = _smaller(Limits.of(infos[old]), Limits.of(infos[new]))
    if not vectors:
        return Pair(session, old, new, VectorMap({}, None, frozenset()), limits, target)
    made = (
        Pair(session, old, new, _copied(source, target), limits, target)
        if anew is None
        else _made(session, source, target, limits, anew)
    )
    types = {field: index.type for field, index in target.indexes.items()}
    lacks = sorted(field for field, index in source.indexes.items() if types.get(field) != index.type)
    return replace(made, unindexed=tuple(lacks))


def _copied(source: LiveCollection, target: LiveCollection) -> VectorMap:
    try:
        return lay_out(source, target)
    except VectorMismatch as fault:
        raise OpsError(
            f"The vectors of {source.name} cannot be copied to {target.name}: {fault}. Where the content is to be "
            "embedded anew, give --embed-command or --embed. Nothing was done."
        ) from None


def _made(session: Session, source: LiveCollection, target: LiveCollection, limits: Limits, anew: Anew) -> Pair:
    """One dense vector is made; others are copied where the new collection has the same."""
    dense: dict[str, Any] = dict(target.settings.get("vectors") or {})
    name = PREFERRED if PREFERRED in dense else next(iter(dense)) if len(dense) == 1 else None
    if name is None:
        raise OpsError(
            f"{target.name} has no vector '{PREFERRED}' and not exactly one dense vector, so which is to be made "
            "from the content is not known. Nothing was done."
        )
    model = anew.model or target.metadata.get("embedding_model")
    if not isinstance(model, str):
        raise OpsError(
            f"What makes the vectors is not known: {target.name} names no `embedding_model` in its metadata (its "
            "entry in the stack sets it). Say it with --model; payloads keep it. Nothing was done."
        )
    said = target.metadata.get("embedding_model")
    if isinstance(said, str) and said != model:
        raise OpsError(f"--model: {target.name} is for vectors of {said}, not of {model}. Nothing was done.")
    sparse = dict(target.settings.get("sparse_vectors") or {})
    theirs = {**dict(source.settings.get("vectors") or {}), **dict(source.settings.get("sparse_vectors") or {})}
    copied = {
        one: one for one, declared in theirs.items()
        if one != name and (one in sparse or _alike(declared, dense.get(one)))
    }  # fmt: skip
    size, metric = int(dense[name]["size"]), str(dense[name]["distance"]).lower()
    return Pair(
        session, source.name, target.name, VectorMap(copied, None, frozenset()), limits, target,
        made=name, text=anew.field, size=size, embedding={"model": model, "dim": size, "metric": metric},
        left_out=tuple(sorted(theirs.keys() - copied.keys() - {name})),
    )  # fmt: skip


def _alike(ours: Mapping[str, Any], theirs: Mapping[str, Any] | None) -> bool:
    keys = ("size", "distance", "multivector_config")
    return theirs is not None and all(ours.get(key) == theirs.get(key) for key in keys)


def _smaller(one: Limits, other: Limits) -> Limits:
    """What both collections allow."""

    def least(name: str) -> int | None:
        known = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        return min(known, default=None)

    return Limits(*(least(name) for name in Limits.__slots__))
