"""Making vectors anew: by a command that is sent a line for each text, or by a Python function.

Whatever comes back is checked before it is written: as many vectors as texts, each of the collection's size, of
finite numbers. A batch that failed is tried again with growing pauses; no error holds a text.
"""

from __future__ import annotations

import importlib
import math
import os
import selectors
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from ops.errors import OpsError, SettingsError

Vectors = list[list[float]]

MOST_FLOAT32 = 3.4028234663852886e38
_HIDDEN = ("COMEMORY_", "QDRANT_")
"""Variables that a command does not get: keys are among them."""
_BYTES_OF_A_NUMBER = 64


class EmbeddingFailed(Exception):
    """One try failed; the text says why, without content."""


class Embed(Protocol):
    """What makes vectors of one batch of texts, once."""

    what: str

    def __call__(self, texts: Sequence[str]) -> object:
        """The vectors, unchecked. Raises EmbeddingFailed."""

    def close(self) -> None:
        """Give up what it holds."""


class Embedder:
    """Vectors of texts, in bounded batches and with several tries.

    Args:
        embed: makes them.
        size: numbers of a vector.
        batch: texts at a time.
        tries: of one batch.
        stop: ends the waiting between two tries.
        pause: seconds before the second try; each further one waits twice as long, at most 30 s.
    """

    def __init__(
        self,
        embed: Embed,
        size: int,
        *,
        batch: int = 64,
        tries: int = 5,
        stop: threading.Event | None = None,
        pause: float = 0.5,
    ) -> None:
        self._embed, self._size, self._batch, self._tries, self._pause = embed, size, batch, tries, pause
        self._stop = stop or threading.Event()

    def close(self) -> None:
        """Give up what it holds."""
        self._embed.close()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text, in their order.

        Raises:
            OpsError: a batch failed as often as it was tried.
        """
        made: Vectors = []
        for start in range(0, len(texts), self._batch):
            made += self._one_batch(texts[start : start + self._batch])
        return made

    def _one_batch(self, texts: Sequence[str]) -> Vectors:
        pause, why = self._pause, ""
        for number in range(self._tries):
            if number and self._stop.wait(min(pause, 30.0)):
                break
            pause *= 2 if number else 1
            try:
                return checked(self._embed(texts), len(texts), self._size)
            except EmbeddingFailed as failure:
                why = str(failure)
        raise OpsError(
            f"{self._embed.what} failed on a batch of {len(texts)} texts ({self._tries} tries): {why}. What was "
            "copied stays; run it again when it works."
        )


def checked(found: object, count: int, size: int) -> Vectors:
    """The vectors, if they are that many, of this size, and of finite numbers.

    Raises:
        EmbeddingFailed: they are not.
    """
    rows = _listed(found)
    if rows is None or len(rows) != count:
        raise EmbeddingFailed(f"it gave {'no list' if rows is None else f'{len(rows)} vectors'} for {count} texts")
    made = []
    for number, row in enumerate(rows, 1):
        values = _listed(row)
        if values is None or len(values) != size:
            shown = "is no list" if values is None else f"has {len(values)} numbers"
            raise EmbeddingFailed(f"vector {number} {shown}; the collection's have {size}")
        if not all(type(value) in (int, float) for value in values):
            raise EmbeddingFailed(f"vector {number} holds something that is no number")
        if not all(math.isfinite(value) and abs(value) <= MOST_FLOAT32 for value in values):
            raise EmbeddingFailed(f"vector {number} holds a number that is infinite, too large, or none (NaN)")
        made.append([float(value) for value in values])
    return made


def _listed(value: Any) -> list[Any] | None:
    """A list, a tuple, or what has a `tolist` as the arrays of numpy and torch do."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, list | tuple) else None


class Function:
    """A function `list[str] -> list[list[float]]`, named as `module:function`; modules of the working folder count.

    Raises:
        SettingsError: it cannot be imported, or is no function.
    """

    def __init__(self, name: str) -> None:
        self.what = f"--embed {name}"
        module, _, function = name.partition(":")
        if not module or not function:
            raise SettingsError(f"--embed: '{name}' is not of the form module:function.")
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            found = getattr(importlib.import_module(module), function)
        except Exception as error:
            raise SettingsError(f"--embed: cannot import '{name}': {type(error).__name__}: {error}.") from None
        if not callable(found):
            raise SettingsError(f"--embed: '{name}' is no function.")
        self._function: Callable[[list[str]], object] = found

    def __call__(self, texts: Sequence[str]) -> object:
        """Call it; it limits its own time. Raises EmbeddingFailed, naming the error and not what it says."""
        try:
            return self._function(list(texts))
        except Exception as error:
            raise EmbeddingFailed(f"it raised {type(error).__name__}") from None

    def close(self) -> None:
        """There is nothing to give up."""


class Command:
    """A process that gets a JSON string on a line for each text, and answers a JSON list of numbers on a line.

    It stays for many batches; one that failed is ended, and the next try starts it anew. No shell reads the
    command, its standard error is ours, and it sees no variable that may hold a key of Qdrant.

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

    def __call__(self, texts: Sequence[str]) -> object:
        """Send the texts and wait for as many lines. Raises EmbeddingFailed; the process is gone then."""
        try:
            process = self._process or self._start()
            lines = self._exchange(process, texts)
            return [orjson.loads(line) for line in lines]
        except EmbeddingFailed:
            self._end()
            raise
        except orjson.JSONDecodeError:
            self._end()
            raise EmbeddingFailed("a line it wrote is no JSON") from None

    def close(self) -> None:
        """Let the process end by the end of its input, and make it after two seconds."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.close()
                self._process.wait(timeout=2)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(_HIDDEN)}
        try:
            self._process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0, start_new_session=True,
            )  # fmt: skip
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

    def _exchange(self, process: subprocess.Popen[bytes], texts: Sequence[str]) -> list[bytes]:
        """Write and read at once, so that neither side waits for ever for the other to empty its pipe."""
        assert process.stdin is not None  # noqa: S101 (started with pipes)
        assert process.stdout is not None  # noqa: S101
        sending = memoryview(b"".join(orjson.dumps(text, option=orjson.OPT_APPEND_NEWLINE) for text in texts))
        received, lines = bytearray(), 0
        most = len(texts) * (self._size * _BYTES_OF_A_NUMBER + 1024)
        deadline = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as selector:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
            selector.register(process.stdout, selectors.EVENT_READ)
            while lines < len(texts):
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise EmbeddingFailed(f"no answer within {self._timeout:g} s")
                for key, _ in ready:
                    if key.fileobj is process.stdin:
                        sending = self._send(process, sending)
                        if not sending:
                            selector.unregister(process.stdin)
                        continue
                    some = os.read(process.stdout.fileno(), 1 << 16)
                    if not some:
                        raise EmbeddingFailed(f"it ended after {lines} of {len(texts)} lines")
                    lines += some.count(b"\n")
                    received += some
                    if len(received) > most:
                        raise EmbeddingFailed("it writes more than vectors of this size can take")
        if sending or not received.endswith(b"\n") or lines > len(texts):
            raise EmbeddingFailed(f"it wrote more than {len(texts)} lines for {len(texts)} texts")
        return bytes(received).split(b"\n")[:-1]

    @staticmethod
    def _send(process: subprocess.Popen[bytes], sending: memoryview) -> memoryview:
        assert process.stdin is not None  # noqa: S101
        try:
            return sending[os.write(process.stdin.fileno(), sending[: 1 << 16]) :]
        except BlockingIOError:
            return sending
        except OSError:
            raise EmbeddingFailed("it does not read its input any more") from None
