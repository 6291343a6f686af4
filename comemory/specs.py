"""The base of every declared thing: immutable, and strict about unknown keys."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """A declaration. None means "not declared": the server's default holds and is never compared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def declared(self) -> dict[str, Any]:
        """The declared values as plain JSON, nested as Qdrant's REST interface nests them."""
        return self.model_dump(mode="json", exclude_none=True)
