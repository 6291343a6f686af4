"""Generated keys: long, secret, the same until the generation is raised."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pulumi.provider.experimental import provider as protocol

from infra.address import key_problem
from infra.provider.api_key import ApiKeyHandler, fingerprint
from infra.provider.connection import Connection
from infra.provider.engine_log import EngineLog
from infra.provider.errors import ProviderError
from infra.provider.properties import UNKNOWN, plain_map, to_properties
from infra.provider.resource import Context

URN = "urn:pulumi:test::comemory::qdrant:index:ApiKey::it"
HANDLER = ApiKeyHandler(Context(Connection(), EngineLog("unused")))


def created(preview: bool = False) -> protocol.CreateResponse:
    request = protocol.CreateRequest(URN, to_properties({"generation": 1}), 0, preview)
    return asyncio.run(HANDLER.create(request))


def changed(state: dict[str, Any], **inputs: Any) -> bool | None:
    request = protocol.DiffRequest(URN, "id", to_properties(state), to_properties(inputs), [])
    return asyncio.run(HANDLER.diff(request)).changes


def test_a_key_is_random_long_enough_to_sign_with_and_secret() -> None:
    keys = set()
    for _ in range(50):
        properties = created().properties or {}
        values = plain_map(properties)
        assert properties["value"].contains_secret() and not properties["fingerprint"].contains_secret()
        assert values["fingerprint"] == fingerprint(values["value"]) and values["value"] not in str(
            properties["fingerprint"]
        )
        assert key_problem(values["value"]) is None
        assert len(values["value"]) >= 43, "32 random bytes"
        keys.add(values["value"])
    assert len(keys) == 50


def test_only_another_generation_makes_another_key() -> None:
    state = plain_map(created().properties or {})
    assert changed(state, generation=1) is False
    assert changed(state) is False, "the first generation is the default"
    assert changed(state, generation=2) is True
    request = protocol.UpdateRequest(
        URN, "id", to_properties(state), to_properties({"generation": 2}), 0, [], preview=False
    )
    after = plain_map(asyncio.run(HANDLER.update(request)).properties or {})
    assert after["value"] != state["value"] and after["fingerprint"] != state["fingerprint"]


def test_a_preview_knows_no_key() -> None:
    values = plain_map(created(preview=True).properties or {})
    assert values["value"] is UNKNOWN and values["fingerprint"] is UNKNOWN


def test_a_refresh_keeps_it_and_an_import_is_refused() -> None:
    state = created().properties or {}
    request = protocol.ReadRequest(URN, "id", state, to_properties({"generation": 1}))
    assert plain_map(asyncio.run(HANDLER.read(request)).properties or {}) == plain_map(state)
    with pytest.raises(ProviderError, match="cannot be imported"):
        asyncio.run(HANDLER.read(protocol.ReadRequest(URN, "id", {}, {})))


@pytest.mark.parametrize("generation", [0, -1, "two"])
def test_what_is_no_generation_is_refused(generation: Any) -> None:
    request = protocol.CheckRequest(URN, {}, to_properties({"generation": generation}), b"")
    (failure,) = asyncio.run(HANDLER.check(request)).failures or ()
    assert failure.property == "generation"
