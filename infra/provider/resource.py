"""What every resource type of the provider does, and what it is given to do it with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pydantic
from pulumi.provider.experimental import provider as protocol

from comemory.drift import Change, IndexMissing, IndexRebuild, InPlace, VectorMissing
from comemory.specs import Spec
from infra.provider.connection import Connection
from infra.provider.engine_log import EngineLog
from infra.provider.errors import ProviderError
from infra.provider.properties import failures, property_path

S = TypeVar("S", bound=Spec)


@dataclass
class Context:
    """The connection and the way to speak to the person who runs Pulumi."""

    connection: Connection
    log: EngineLog

    def owner(self, urn: str) -> str:
        """The name that marks collections as this stack's: `project/stack`, unless another is configured."""
        stack, project = urn.removeprefix("urn:pulumi:").split("::")[:2]
        return self.connection.owner or f"{project}/{stack}"


class Handler(Protocol):
    """One resource type. `check` and `diff` need no server."""

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Say what is wrong with the inputs."""

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Say what would change."""

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Make it, or take over what an interrupted run of this stack has made."""

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """Read it for a refresh or an import; no id means that it is gone."""

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Change it in place."""

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """Delete it as far as nothing is lost by accident."""


def invalid(model: type[Spec], values: Mapping[str, Any]) -> list[protocol.CheckFailure]:
    """What the model says against the values, leaving out what is not known yet."""
    try:
        model.model_validate(values)
    except pydantic.ValidationError as error:
        return list(failures(error))
    return []


def validated(model: type[S], values: Mapping[str, Any]) -> S:
    """The values as the model. Raises `ProviderError` with the first problem; `check` has seen them all before."""
    try:
        return model.model_validate(values)
    except pydantic.ValidationError as error:
        problem = next(failures(error))
        raise ProviderError(f"{problem.property or model.__name__}: {problem.reason}") from None


def difference(
    changes: Iterable[Change], unknown: Iterable[str] = (), replaces: Iterable[str] = ()
) -> protocol.DiffResponse:
    """Changes as Pulumi's diff: each under the property that it is about."""
    kinds = protocol.PropertyDiffKind
    detailed: dict[str, protocol.PropertyDiff] = {}
    for change in changes:
        match change:
            case InPlace(path=path, live=live):
                detailed[property_path(path)] = protocol.PropertyDiff(
                    kinds.ADD if live is None else kinds.UPDATE, False
                )
            case VectorMissing(vector=vector, spec=spec):
                kind = "sparse_vectors" if type(spec).__name__.startswith("Sparse") else "vectors"
                detailed[property_path((kind, vector))] = protocol.PropertyDiff(kinds.ADD, False)
            case IndexRebuild(differences=differences):
                for name, _, _ in differences:
                    detailed[name] = protocol.PropertyDiff(kinds.UPDATE, False)
            case IndexMissing():
                detailed["type"] = protocol.PropertyDiff(kinds.ADD, False)
            case _:
                raise ProviderError(change.text)
    for key in unknown:
        detailed[key] = protocol.PropertyDiff(kinds.UPDATE, True)
    for key in replaces:
        detailed[key] = protocol.PropertyDiff(kinds.UPDATE_REPLACE, True)
    return protocol.DiffResponse(
        changes=bool(detailed), replaces=list(replaces), diffs=sorted(detailed), detailed_diff=detailed
    )
