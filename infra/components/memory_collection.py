"""A memory collection with everything it needs before the first point arrives."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from comemory.catalog import CollectionSpec
from comemory.indexes import PAYLOAD_INDEXES, IndexSpec
from infra.resources import Alias, Collection, PayloadIndex


class MemoryCollection(pulumi.ComponentResource):
    """One collection, its payload indexes, and its alias.

    `ready` is the collection's name, known once every index exists: what writes points should take the name from
    there, because Qdrant links a filtered graph only in segments built after their index. The alias, too, appears
    only then; given to another `MemoryCollection` of the stack, it moves there in one step. Pass the provider with
    `opts=pulumi.ResourceOptions(providers=[...])`; `spec` and `indexes` come from `comemory.profiles.declare` and
    `comemory.indexes`, or from the stack configuration (`infra.settings`).
    """

    collection: Collection
    indexes: tuple[PayloadIndex, ...]
    alias: Alias | None
    ready: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        spec: CollectionSpec,
        *,
        indexes: Sequence[IndexSpec] = PAYLOAD_INDEXES,
        alias: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("comemory:index:MemoryCollection", resource_name, None, opts)
        below = pulumi.ResourceOptions(parent=self)
        self.collection = Collection.from_spec(spec, resource_name=resource_name, opts=below)
        self.indexes = tuple(
            PayloadIndex.from_spec(
                index, self.collection.name, resource_name=f"{resource_name}.{index.field}", opts=below
            )
            for index in indexes
        )
        self.ready = pulumi.Output.all(self.collection.name, *(index.id for index in self.indexes)).apply(
            lambda values: str(values[0])
        )
        self.alias = self._aliased(alias, resource_name) if alias else None
        self.register_outputs({"name": self.ready, "indexes": len(self.indexes)})

    def _aliased(self, alias: str, resource_name: str) -> Alias:
        """The alias, as a resource that keeps its name when it goes to another collection.

        Pulumi so moves it in place. With two resources the new one would be made first, and the end of the old one
        could take away the alias that both are about.
        """
        options = pulumi.ResourceOptions(
            parent=self,
            depends_on=list(self.indexes),
            aliases=[pulumi.Alias(name=f"{resource_name}.alias")],  # its name in stacks made before
        )
        return Alias(f"alias.{alias}", name=alias, collection=self.collection.name, opts=options)
