"""A way to a Kubernetes Service from outside its cluster: what `kubectl port-forward` does, for one process.

The near end is a socket file in a folder that only this user may enter, not a port that every program of the
machine could use. Each connection to it is one port-forward of its own to a pod that is ready, made when it is
needed: one that was dropped for being idle, or whose pod went away, is followed by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from comemory.specs import Spec
from infra.provider.errors import ProviderError

if TYPE_CHECKING:
    from infra.provider.kubernetes_api import Dialer, Forwarded

QDRANT_PORT = 6333
DIAL_SECONDS = 20.0
FOLDER_PREFIX = "qdrant-forward-"
LONGEST_FOLDER = 60
_CHUNK = 256 * 1024


class KubernetesAccess(Spec):
    """An API server, as a kubeconfig describes it."""

    kubeconfig: str | None = Field(
        None,
        min_length=1,
        description="Path or text of a kubeconfig. Default: KUBECONFIG, else ~/.kube/config, else that of the pod.",
    )
    context: str | None = Field(
        None, min_length=1, description="Context of the kubeconfig. Default: its current one."
    )


class KubernetesService(KubernetesAccess):
    """A Service to which the provider opens a port-forward for the time of the operation."""

    service: str = Field(min_length=1, description="Name of the Service.")
    namespace: str = Field("default", min_length=1, description="Its namespace.")
    port: int | None = Field(
        None, ge=1, le=65535, description="Port of the Service. Default: that of the url, else 6333."
    )

    def url(self, *, tls: bool) -> str:
        """The address by which the Service is known inside its cluster; TLS is checked against that name."""
        scheme = "https" if tls else "http"
        return f"{scheme}://{self.service}.{self.namespace}.svc:{self.port or QDRANT_PORT}"

    def __str__(self) -> str:
        return f"Service {self.service} in namespace {self.namespace}"


class PortForward:
    """Connections to one Service. `problem` says why the last one failed; nothing is opened before `open`."""

    def __init__(self, target: KubernetesService, port: int) -> None:
        self.problem: ProviderError | None = None
        self._target = target
        self._port = port
        # The path of a socket has a limit of about a hundred bytes, which a long TMPDIR would pass.
        short = len(tempfile.gettempdir()) < LONGEST_FOLDER
        self._folder = tempfile.TemporaryDirectory(
            prefix=FOLDER_PREFIX,
            dir=None if short else "/tmp",  # noqa: S108
            ignore_cleanup_errors=True,
        )
        self.socket = Path(self._folder.name) / "socket"
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()
        self._dialer: Dialer | None = None

    async def open(self) -> None:
        """Listen; each later call does nothing."""
        async with self._opening:
            if self._server is None:
                self._server = await asyncio.start_unix_server(self._serve, self.socket)

    def close(self) -> None:
        """Stop listening, and take the socket file away. The end of the process does the same."""
        if self._server is not None:
            self._server.close()
        self._folder.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._carry(reader, writer)
        except ProviderError as error:
            self.problem = error
        except asyncio.CancelledError:
            # The loop ends; the stream server of Python 3.11 would report a task that was cancelled as a fault.
            return
        except OSError as error:
            self.problem = ProviderError(f"the port-forward to {self._target} broke ({error}); try again")
        except Exception as error:
            # Nobody awaits this task: what is not kept here would only be seen as an answer that never came.
            self.problem = ProviderError(
                f"the port-forward to {self._target} failed by a defect of the provider ({type(error).__name__})"
            )
            raise
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            forwarded = await asyncio.wait_for(asyncio.to_thread(self._dial), DIAL_SECONDS)
        except TimeoutError:
            raise ProviderError(
                f"the API server did not open a port-forward to {self._target} within {DIAL_SECONDS:g} s; try again"
            ) from None
        # Its own thread carries the other half of this pair to the API server, and ends when either is closed.
        pair = socket.socket(fileno=forwarded.stream.socket(forwarded.port).detach())
        far_reader, far_writer = await asyncio.open_connection(sock=pair)
        out = asyncio.create_task(_copy(reader, far_writer))
        back = asyncio.create_task(_copy(far_reader, writer))
        try:
            await asyncio.wait((out, back), return_when=asyncio.FIRST_COMPLETED)
            received = await back if back.done() else 1
        finally:
            for task in (out, back):
                task.cancel()
            await asyncio.gather(out, back, return_exceptions=True)
            far_writer.close()
        if received:
            self.problem = None
            return
        if self._dialer is not None:
            self._dialer.forget()
        said = " ".join((forwarded.stream.error(forwarded.port) or "closed without an answer").split())[:300]
        raise ProviderError(
            f"pod {forwarded.pod} of {self._target} does not answer on port {forwarded.port} ({said})"
        )

    def _dial(self) -> Forwarded:
        # The client of Kubernetes takes a second to import: only who needs it waits for it.
        from infra.provider.kubernetes_api import Dialer  # noqa: PLC0415

        if self._dialer is None:
            self._dialer = Dialer(self._target, self._port)
        return self._dialer.dial()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Hand on all that comes; how many bytes those were."""
    count = 0
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            count += len(data)
            writer.write(data)
            await writer.drain()
    return count
