"""The vectors of two collections side by side: what goes where, and why it cannot.

A vector is copied only where the target's has the same size, metric and, where both say one, the same embedding
model: numbers of two models in one space are found by nobody.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from comemory.errors import CoMemoryError
from comemory.live import LiveCollection

UNNAMED = ""
PREFERRED = "dense"
_COMPARED = ("size", "distance", "multivector_config")


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding space: dimensions and metric, as the payload's `embedding` says them."""

    dim: int
    metric: str


class VectorMismatch(CoMemoryError):
    """Two collections whose vectors do not fit; the text has a sentence for each fault."""


@dataclass(frozen=True, slots=True)
class VectorMap:
    """Where each vector of the source goes: `names` from its name there ("" is the unnamed one) to the target's.

    `exact` names the target's vectors that are stored in the precision of the source, which a check can compare;
    `model` is the embedding model that the target says.
    """

    names: Mapping[str, str]
    space: Space | None
    exact: frozenset[str]
    model: str | None = None

    def apply(self, vector: object) -> dict[str, Any]:
        """A point's vectors, as a scroll returns them, by the target's names; what it does not have is left out."""
        given = vector if isinstance(vector, Mapping) else {UNNAMED: vector}
        return {
            target: given[source]
            for source, target in self.names.items()
            if given.get(source) not in (None, [], {})
        }


def lay_out(
    source: LiveCollection,
    target: LiveCollection,
    *,
    names: Mapping[str, str | None] | None = None,
    model: str | None = None,
) -> VectorMap:
    """The map from `source` to `target`.

    Args:
        source: as its server describes it.
        target: as its server describes it; its metadata may name its `embedding_model`.
        names: what the rules say of names; a null leaves a vector out. A vector not named goes to the one of the
            same name; the source's only dense vector also to `dense`, or to the target's only one.
        model: what made the source's vectors, where the rules say; else its own metadata may.

    Raises:
        VectorMismatch: with every fault found.
    """
    named = dict(names or {})
    dense, sparse = _vectors(source), _sparse(source)
    their_dense, their_sparse = _vectors(target), _sparse(target)
    faults = [f"there is no vector {name!r} on the source; it has {_list(dense, sparse)}"
              for name in named if name not in dense and name not in sparse]  # fmt: skip
    found: dict[str, str] = {}
    for name in (*dense, *sparse):
        to = named[name] if name in named else _same(name, dense, their_dense, their_sparse)
        if name in named and to is None:
            continue
        if to is None or to not in (their_dense if name in dense else their_sparse):
            faults.append(
                f"vector {_shown(name)} of {source.name} has no place in {target.name}, which has "
                f"{_list(their_dense, their_sparse)}; name one under `vectors` of the rule, or null to leave it out"
            )
            continue
        found[name] = to
        if name in dense:
            places = f"vector {_shown(name)} of {source.name}", f"vector {_shown(to)} of {target.name}"
            faults += _differences(dense[name], their_dense[to], *places)
    if len(set(found.values())) < len(found):
        faults.append("two vectors of the source go to the same one of the target")
    faults += [
        f"the target's vector {_shown(name)} would get none; every point of {target.name} has it"
        for name in their_dense if name == PREFERRED and name not in found.values()
    ]  # fmt: skip
    said = model or _model(source)
    theirs = _model(target)
    if said and theirs and said != theirs:
        faults.append(
            f"the vectors of {source.name} were made by {said}, those of {target.name} by {theirs}; the content "
            "has to be embedded anew"
        )
    if faults:
        raise VectorMismatch("; ".join(faults))
    main = next((dense[name] for name in found if name in dense), None)
    space = None if main is None else Space(int(main["size"]), str(main["distance"]).lower())
    exact = frozenset(
        to for name, to in found.items()
        if name in sparse or _precision(dense[name]) == _precision(their_dense[to])
    )  # fmt: skip
    return VectorMap(found, space, exact, theirs)


def canonical(vector: object) -> object:
    """A vector in a form that compares: dense numbers as 32-bit bytes, sparse ones by rising index."""
    if isinstance(vector, Mapping):
        pairs = sorted(zip(vector.get("indices") or (), vector.get("values") or (), strict=True))
        return [index for index, _ in pairs], array("f", [value for _, value in pairs]).tobytes()
    if isinstance(vector, list) and vector and isinstance(vector[0], list):
        return [array("f", one).tobytes() for one in vector]
    return array("f", vector).tobytes() if isinstance(vector, list) else vector


def _vectors(live: LiveCollection) -> dict[str, Mapping[str, Any]]:
    return dict(live.settings.get("vectors") or {})


def _sparse(live: LiveCollection) -> dict[str, Mapping[str, Any]]:
    return dict(live.settings.get("sparse_vectors") or {})


def _same(
    name: str, dense: Mapping[str, Any], their_dense: Mapping[str, Any], their_sparse: Mapping[str, Any]
) -> str | None:
    """Where a vector goes that no rule names. Sparse ones of two names may be of two models: no guess."""
    if name not in dense:
        return name if name in their_sparse else None
    if name in their_dense and name != UNNAMED:
        return name
    if len(dense) > 1:
        return None
    if PREFERRED in their_dense:
        return PREFERRED
    return next(iter(their_dense)) if len(their_dense) == 1 else None


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], of_source: str, of_target: str) -> list[str]:
    return [
        f"{of_source} has {key} {ours.get(key)}, {of_target} has {theirs.get(key)}"
        for key in _COMPARED
        if ours.get(key) != theirs.get(key)
    ] + _coarser(ours, theirs, of_source, of_target)


def _coarser(ours: Mapping[str, Any], theirs: Mapping[str, Any], of_source: str, of_target: str) -> list[str]:
    """Whole numbers from 0 to 255 hold nothing of a fraction; fewer digits of one are no other vector."""
    here, there = _precision(ours), _precision(theirs)
    if there == "uint8" != here:
        return [f"{of_source} has datatype {here}, {of_target} has {there}, which would cut its fractions off"]
    return []


def _model(live: LiveCollection) -> str | None:
    said = live.metadata.get("embedding_model")
    return said if isinstance(said, str) else None


def _precision(vector: Mapping[str, Any]) -> object:
    return vector.get("datatype") or "float32"


def _shown(name: str) -> str:
    return "(unnamed)" if name == UNNAMED else repr(name)


def _list(dense: Mapping[str, Any], sparse: Mapping[str, Any]) -> str:
    all_of_them = [_shown(name) for name in dense] + [f"{_shown(name)} (sparse)" for name in sparse]
    return ", ".join(all_of_them) or "none"
