"""Writing a small JSON file so that a kill at any moment leaves the old one or the new one, whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson


def replace_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value`, for the owner's eyes only, and return when it is on the disk.

    Raises:
        OSError: it could not be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)
