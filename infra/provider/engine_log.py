"""Messages to the person who runs Pulumi: they appear under the resource, in a preview as in an update."""

from __future__ import annotations

import contextlib

import grpc
import grpc.aio
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc


class EngineLog:
    """Sends messages to the engine that started this provider."""

    def __init__(self, engine_address: str) -> None:
        self._address = engine_address
        self._stub: engine_pb2_grpc.EngineStub | None = None

    async def info(self, urn: str, message: str) -> None:
        """Say something worth knowing."""
        await self._send(engine_pb2.INFO, urn, message)

    async def warning(self, urn: str, message: str) -> None:
        """Say something to think about before going on."""
        await self._send(engine_pb2.WARNING, urn, message)

    async def _send(self, severity: engine_pb2.LogSeverity.ValueType, urn: str, message: str) -> None:
        if self._stub is None:
            # The channel belongs to the event loop, which does not run yet when this object is made.
            self._stub = engine_pb2_grpc.EngineStub(grpc.aio.insecure_channel(self._address))
        # A message that cannot be delivered must not fail the work that it is about.
        with contextlib.suppress(grpc.RpcError):
            await self._stub.Log(engine_pb2.LogRequest(severity=severity, urn=urn, message=message))
