"""The payloads that frameworks write, one module each: how such a payload is told, and what stands in it.

The shapes are told by fields that the others do not have, so a payload has one shape at most; a payload that would
have two has none. `flat` is what remains where a collection holds no framework's points at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from comemory.migration.shapes import (
    dify,
    flat,
    haystack,
    langchain,
    langchain_js,
    lightrag,
    llamaindex,
    mcp_server_qdrant,
    mem0,
    open_webui,
    roo_code,
)
from comemory.migration.shapes.base import Shape

FRAMEWORKS: Final[tuple[Shape, ...]] = (
    langchain.SHAPE,
    langchain_js.SHAPE,
    llamaindex.SHAPE,
    mem0.SHAPE,
    open_webui.SHAPE,
    haystack.SHAPE,
    dify.SHAPE,
    mcp_server_qdrant.SHAPE,
    lightrag.SHAPE,
    roo_code.SHAPE,
)
FLAT: Final[Shape] = flat.SHAPE
SHAPES: Final[Mapping[str, Shape]] = {shape.name: shape for shape in (*FRAMEWORKS, FLAT)}


def shape_of(payload: Mapping[str, Any]) -> Shape | None:
    """The one shape that the payload has, `flat` where it has no framework's; None for none, or several."""
    fitting = [shape for shape in FRAMEWORKS if shape.fits(payload)]
    if len(fitting) == 1:
        return fitting[0]
    return FLAT if not fitting and FLAT.fits(payload) else None
