"""The gRPC plumbing around the provider: Pulumi's own servicer, with errors as one sentence.

Pulumi's servicer turns every exception into a message with a traceback. Here an error that a person can act on
reaches the command line as its sentence alone; anything else is a defect: it is named as one, and its
traceback goes to standard error.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from infra.provider.engine_log import EngineLog
from infra.provider.errors import ProviderError
from infra.provider.provider import VERSION, QdrantProvider

Method = Callable[[ProviderServicer, Any, Any], Awaitable[Any]]

_METHODS = (
    "CheckConfig",
    "Configure",
    "Check",
    "Diff",
    "Create",
    "Read",
    "Update",
    "Delete",
    "Invoke",
    "GetSchema",
)


def _one_sentence(method: Method) -> Method:
    async def call(self: ProviderServicer, request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await method(self, request, context)
        except Exception as raised:
            # The servicer wraps what the provider raised; the original is the context of the wrapper.
            error = raised.__context__ or raised
            if isinstance(error, ProviderError):
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            traceback.print_exception(error, file=sys.stderr)
            await context.abort(
                grpc.StatusCode.INTERNAL,
                f"the qdrant provider has a defect: {type(error).__name__} (the traceback is on standard error)",
            )

    return call


class Servicer(ProviderServicer):
    """Pulumi's servicer for Python providers, with readable errors and a working `DiffConfig`."""

    async def DiffConfig(self, request: Any, context: Any) -> provider_pb2.DiffResponse:  # noqa: N802
        """Say that another address or key changes the provider, and replaces nothing that it manages."""
        changed = dict(request.olds) != dict(request.news)
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=kind)


for _name in _METHODS:
    setattr(Servicer, _name, _one_sentence(getattr(ProviderServicer, _name)))


async def _serve(engine_address: str) -> None:
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    provider = QdrantProvider(EngineLog(engine_address))
    servicer = Servicer([], VERSION, provider, engine_address=engine_address)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    # Pulumi reads the port from the first line of standard output.
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


def main() -> None:
    """Serve until the engine ends this process.

    The engine's address is the first argument that is not an option.
    """
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    if not addresses:
        sys.exit("this is a Pulumi plugin: Pulumi starts it and passes the address of its engine")
    try:
        asyncio.run(_serve(addresses[0]))
    except KeyboardInterrupt:
        # Control-C reaches the whole process group; the engine has told us to cancel and waits for the end.
        sys.exit(0)
