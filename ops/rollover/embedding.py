"""Making vectors anew: by a command (`embed_command`), or by a Python function.

Whatever comes back is checked before it is written: as many vectors as texts, each of the collection's size, of
finite numbers. A batch that failed is tried again with growing pauses; no error holds a text.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Protocol

from ops.errors import OpsError, SettingsError

Vectors = list[list[float]]

MOST_FLOAT32 = 3.4028234663852886e38


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
        pause, tried, why = self._pause, 0, ""
        while tried < self._tries:
            if tried and self._stop.wait(min(pause, 30.0)):
                break
            pause *= 2 if tried else 1
            tried += 1
            try:
                return checked(self._embed(texts), len(texts), self._size)
            except EmbeddingFailed as failure:
                why = str(failure)
        raise OpsError(
            f"{self._embed.what} failed on a batch of {len(texts)} texts ({tried} "
            f"{'try' if tried == 1 else 'tries'}): {why}. What was copied stays; run it again when it works."
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
        values = [value.item() if hasattr(value, "item") else value for value in values]  # numbers of numpy
        if not all(type(value) in (int, float) for value in values):
            raise EmbeddingFailed(f"vector {number} holds something that is no number")
        if not all(abs(value) <= MOST_FLOAT32 for value in values):  # NaN is not, either
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

    What it prints goes to standard error: standard output is for the report.

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
            with redirect_stdout(sys.stderr):
                found = getattr(importlib.import_module(module), function)
        except (Exception, SystemExit) as error:
            raise SettingsError(f"--embed: cannot import '{name}': {type(error).__name__}: {error}.") from None
        if not callable(found):
            raise SettingsError(f"--embed: '{name}' is no function.")
        self._function: Callable[[list[str]], object] = found

    def __call__(self, texts: Sequence[str]) -> object:
        """Call it; it limits its own time. Raises EmbeddingFailed, naming the error and not what it says."""
        try:
            with redirect_stdout(sys.stderr):
                return self._function(list(texts))
        except (Exception, SystemExit) as error:
            raise EmbeddingFailed(f"it raised {type(error).__name__}") from None

    def close(self) -> None:
        """There is nothing to give up."""
