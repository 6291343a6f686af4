"""JSON Web Tokens in place of keys, as a server with `service.jwt_rbac` takes them: HS256, signed with its key."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jwt
from pydantic import BaseModel, ValidationError

LEEWAY_SECONDS = 30
"""How long after its end a token is still taken, for clocks that differ."""


class _One(BaseModel):
    collection: str
    access: Literal["r", "rw"]


class _Claims(BaseModel):
    # Without the claim a server grants everything.
    access: Literal["r", "m"] | list[_One] = "m"
    value_exists: object = None


@dataclass(frozen=True)
class Claims:
    """What a good token allows: everything (`r` or `m`), or a level for each collection named."""

    everything: Literal["r", "m"] | None
    collections: Mapping[str, Literal["r", "rw"]]


class Expired(Exception):
    """The token was good once."""


class Unusable(Exception):
    """The token asks for something that this endpoint does not do."""


def claims(token: str, key: str) -> Claims | None:
    """What the token allows; None when it is none of ours.

    Raises:
        Expired: its end has come.
        Unusable: it has the claim `value_exists`, which is not looked at here and so must not be passed over.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a short key is the business of whoever chose it
            found = _Claims.model_validate(jwt.decode(token, key, ["HS256"], leeway=LEEWAY_SECONDS))
    except jwt.ExpiredSignatureError:
        raise Expired from None
    except (jwt.InvalidTokenError, ValidationError):
        return None
    if found.value_exists is not None:
        raise Unusable("value_exists")
    if isinstance(found.access, str):
        return Claims(found.access, {})
    return Claims(None, {one.collection: one.access for one in found.access})
