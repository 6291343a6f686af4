"""Making vectors anew by a command that is sent a line for each text."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO

import orjson

from ops.errors import OpsError, SettingsError
from ops.rollover.embedding import EmbeddingFailed

_HIDDEN = ("COMEMORY_", "QDRANT_")
"""How variables begin, in any case, that a command does not get: keys are among them."""
_BYTES_OF_A_NUMBER = 64
_LAST_SECONDS = 10.0
"""How long it may take to end after the end of its input."""


class LinesTooMany(OpsError):
    """A command answered more than it was asked, so which vector is of which text is not known any more."""


class Command:
    """A process that gets a JSON string on a line for each text, and answers a JSON list of numbers on a line.

    It stays for many batches; one that failed is ended, and the next try starts it anew. No shell reads the
    command, its standard error is ours, and it sees no variable that may hold a key of Qdrant.

    A line that it writes unasked would give every later text the vector of the one before it. So nothing may wait
    to be read when a batch is sent, nor come after the last; where something does, that is not tried again.

    Args:
        command: as a shell would split it.
        size: numbers of a vector, which bounds what it may answer.
        timeout: seconds for one batch.

    Raises:
        SettingsError: it cannot be split.
    """

    def __init__(self, command: str, size: int, *, timeout: float = 120.0) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise SettingsError(f"--embed-command: cannot be split into words: {error}.") from None
        if not self._arguments:
            raise SettingsError("--embed-command: it is empty.")
        self.what = f"--embed-command {self._arguments[0]}"
        self._size, self._timeout = size, timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._answered = 0

    def __call__(self, texts: Sequence[str]) -> object:
        """Send the texts and wait for as many lines.

        Raises:
            EmbeddingFailed: it did not answer as it should; the process is gone then.
            LinesTooMany: it wrote more than it was asked for; so is it then.
        """
        try:
            process = self._process or self._start()
            self._demand_silence(process)
            lines = self._exchange(process, texts)
            self._answered += 1
            return [orjson.loads(line) for line in lines]
        except (EmbeddingFailed, LinesTooMany):
            self._end()
            raise
        except orjson.JSONDecodeError:
            self._end()
            raise EmbeddingFailed("a line it wrote is no JSON") from None

    def close(self) -> None:
        """Let the process end by the end of its input, and make it when it does not.

        Raises:
            LinesTooMany: it wrote something after its last answer.
        """
        process = self._process
        if process is None:
            return
        _, output = _pipes(process)
        try:
            if process.stdin is not None:
                process.stdin.close()
            with selectors.DefaultSelector() as selector:
                selector.register(output, selectors.EVENT_READ)
                if selector.select(_LAST_SECONDS) and os.read(output.fileno(), 1):
                    raise self._too_many()
            process.wait(timeout=_LAST_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            pass
        finally:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if not key.upper().startswith(_HIDDEN)}
        try:
            self._process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0, start_new_session=True,
            )  # fmt: skip
            self._answered = 0
        except OSError as error:
            raise EmbeddingFailed(f"it cannot be started: {error.strerror}") from None
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)  # whatever it started, too
        except (ProcessLookupError, PermissionError):
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def _demand_silence(self, process: subprocess.Popen[bytes]) -> None:
        """That nothing waits to be read; that it ended meanwhile is found when it is sent something."""
        _, output = _pipes(process)
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            if selector.select(0) and os.read(output.fileno(), 1):
                if self._answered:
                    raise self._too_many()
                raise EmbeddingFailed("it wrote something before it was asked for a vector")

    def _too_many(self) -> LinesTooMany:
        return LinesTooMany(
            f"{self.what} wrote more than a line for a text, so vectors may have gone to the wrong points. Let it "
            "write its messages to standard error; what this run embedded has to be made anew: empty the new "
            "collection before you run it again."
        )

    def _exchange(self, process: subprocess.Popen[bytes], texts: Sequence[str]) -> list[bytes]:
        """Write and read at once, so that neither side waits for ever for the other to empty its pipe."""
        stdin, stdout = _pipes(process)
        sending = memoryview(b"".join(orjson.dumps(text, option=orjson.OPT_APPEND_NEWLINE) for text in texts))
        received, lines = bytearray(), 0
        most = len(texts) * (self._size * _BYTES_OF_A_NUMBER + 1024)
        deadline = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as selector:
            os.set_blocking(stdin.fileno(), False)
            selector.register(stdin, selectors.EVENT_WRITE)
            selector.register(stdout, selectors.EVENT_READ)
            while lines < len(texts):
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise EmbeddingFailed(f"no answer within {self._timeout:g} s")
                for key, _ in ready:
                    if key.fileobj is stdin:
                        sending = self._send(stdin, sending)
                        if not sending:
                            selector.unregister(stdin)
                        continue
                    some = os.read(stdout.fileno(), 1 << 16)
                    if not some:
                        raise EmbeddingFailed(f"it ended after {lines} of {len(texts)} lines")
                    lines += some.count(b"\n")
                    received += some
                    if len(received) > most:
                        raise EmbeddingFailed("it writes more than vectors of this size can take")
        if sending or not received.endswith(b"\n") or lines > len(texts):
            if self._answered:
                raise self._too_many()
            raise EmbeddingFailed(f"it wrote more than {len(texts)} lines for {len(texts)} texts")
        return bytes(received).split(b"\n")[:-1]

    @staticmethod
    def _send(stdin: IO[bytes], sending: memoryview) -> memoryview:
        try:
            return sending[os.write(stdin.fileno(), sending[: 1 << 16]) :]
        except BlockingIOError:
            return sending
        except OSError:
            raise EmbeddingFailed("it does not read its input any more") from None


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None  # noqa: S101 (started with pipes)
    assert process.stdout is not None  # noqa: S101
    return process.stdin, process.stdout
