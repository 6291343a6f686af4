"""The provider: its configuration, its schema, and which resource a request is about."""

from __future__ import annotations

from pulumi.provider.experimental import provider as protocol

from infra.provider.connection import Connection, check_config
from infra.provider.engine_log import EngineLog
from infra.provider.errors import ProviderError
from infra.provider.properties import plain_map
from infra.provider.resource import Context, Handler
from infra.provider.schema import RESOURCES, text, token
from infra.provider.version import VERSION

__all__ = ["VERSION", "QdrantProvider"]


class QdrantProvider(protocol.Provider):
    """Serves the resources of `infra.provider.schema.RESOURCES`."""

    def __init__(self, log: EngineLog) -> None:
        self._context = Context(Connection(), log)
        self._handlers: dict[str, Handler] = {
            token(name): handler(self._context) for name, (_, handler, _, _) in RESOURCES.items()
        }

    async def get_schema(self, request: protocol.GetSchemaRequest) -> protocol.GetSchemaResponse:
        """The schema as JSON."""
        return protocol.GetSchemaResponse(text())

    async def check_config(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Check the configuration without a connection.

        Key and kubeconfig become secrets here, also when a program passes it plainly.
        """
        inputs = dict(request.new_inputs)
        for key in ("api_key", "kubernetes"):
            if key in inputs:
                inputs[key] = inputs[key].with_secret(True)
        return protocol.CheckResponse(inputs, check_config(plain_map(inputs)))

    async def configure(self, request: protocol.ConfigureRequest) -> protocol.ConfigureResponse:
        """Take the configuration; the connection is made when it is first needed."""
        self._context.connection = Connection.from_config(plain_map(request.args))
        return protocol.ConfigureResponse(
            accept_secrets=True, supports_preview=True, accept_resources=True, accept_outputs=False
        )

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """See the resource's handler."""
        return await self._handler(request.type).check(request)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """See the resource's handler."""
        return await self._handler(request.type).diff(request)

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """See the resource's handler."""
        return await self._handler(request.type).create(request)

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """See the resource's handler."""
        return await self._handler(request.type).read(request)

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """See the resource's handler."""
        return await self._handler(request.type).update(request)

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """See the resource's handler."""
        await self._handler(request.type).delete(request)

    def _handler(self, resource_type: str) -> Handler:
        # A child of components carries their types before its own:
        # `comemory:MemoryCollection$qdrant:index:Collection`.
        try:
            return self._handlers[resource_type.rsplit("$", 1)[-1]]
        except KeyError:
            raise ProviderError(
                f"{resource_type} is not a resource of this provider; it has: {', '.join(self._handlers)}"
            ) from None
