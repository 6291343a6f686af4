"""Tokens: what they hold, when they are made anew, what is refused, what is secret."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import jwt
import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.provider.experimental import provider as protocol
from pulumi.provider.experimental.property_value import PropertyValue

from infra.provider.access_token import AccessTokenHandler, AccessTokenSpec
from infra.provider.connection import Connection
from infra.provider.errors import ProviderError
from infra.provider.properties import UNKNOWN, plain_map, to_properties
from infra.provider.resource import Context
from infra.resources import AccessToken, Collection

KEY = "an-api-key-of-more-than-thirty-two-bytes"
URN = "urn:pulumi:test::comemory::qdrant:index:AccessToken::daemon"


class Said:
    """What would be told to the person who runs Pulumi."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def info(self, _: str, message: str) -> None:
        self.lines.append(message)

    warning = info


class Tokens:
    """The handler, with the engine's part played by plain dictionaries."""

    def __init__(self, provider_key: str | None = None) -> None:
        self.said = Said()
        self.handler = AccessTokenHandler(Context(Connection(api_key=provider_key), self.said))

    def problems(self, **inputs: Any) -> list[str]:
        request = protocol.CheckRequest(URN, {}, to_properties(inputs), b"")
        return [failure.reason for failure in asyncio.run(self.handler.check(request)).failures or ()]

    def made(self, **inputs: Any) -> dict[str, Any]:
        request = protocol.CreateRequest(URN, to_properties(inputs), 0, False)
        return plain_map(asyncio.run(self.handler.create(request)).properties or {})

    def changed(self, state: dict[str, Any], **inputs: Any) -> list[str]:
        request = protocol.DiffRequest(URN, "id", to_properties(state), to_properties(inputs), [])
        return list(asyncio.run(self.handler.diff(request)).diffs or ())


@given(
    collections=st.dictionaries(st.text(min_size=1, max_size=20), st.sampled_from(["r", "rw"]), min_size=1),
    days=st.floats(0.5, 3650),
)
def test_a_token_says_what_was_declared_and_never_lacks_access(collections, days):
    now = datetime(2026, 12, 1, tzinfo=UTC)
    claims = AccessTokenSpec(collections=collections, valid_days=days, renew_before_days=0).claims(now)
    assert {one["collection"]: one["access"] for one in claims["access"]} == collections
    assert abs(claims["exp"] - (now + timedelta(days=days)).timestamp()) <= 1


def test_a_token_for_everything_with_a_subject_that_a_point_can_revoke():
    revocable = {"collection": "users", "matches": [{"key": "id", "value": "andrii"}]}
    state = Tokens().made(access="r", api_key=KEY, subject="grafana", value_exists=revocable)
    claims = jwt.decode(state["token"], KEY, ["HS256"])
    assert claims["access"] == "r" and claims["subject"] == "grafana" and claims["value_exists"] == revocable
    assert state["expires_at"].endswith("Z")
    assert datetime.fromisoformat(state["expires_at"]).timestamp() == claims["exp"]
    assert jwt.get_unverified_header(state["token"])["alg"] == "HS256"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "a token without an access claim has full rights"),
        ({"collections": {}}, "at least 1 item"),
        ({"collections": {"c": "m"}}, "'r' or 'rw'"),
        ({"collections": {"c": "r"}, "access": "r"}, "give collections or access, not both"),
        ({"access": "rw"}, "'r' or 'm'"),
        ({"access": "r", "valid_days": 30}, "renew_before_days 30 must be less than valid_days 30"),
        ({"access": "r", "api_key": "S3CRET\n"}, "api_key begins or ends with a blank"),
        ({"access": "r", "payload": {}}, "there is no such property"),
    ],
)
def test_what_is_refused_is_named_without_the_key(inputs, said):
    (problem,) = Tokens().problems(**{"api_key": KEY, **inputs})
    assert said in problem and "S3CRET" not in problem


def test_what_is_not_known_yet_is_taken_on_trust():
    inputs = {"collections": PropertyValue.computed(), "api_key": PropertyValue.computed()}
    assert plain_map(inputs) == {"collections": UNKNOWN, "api_key": UNKNOWN}
    handler = Tokens().handler
    request = protocol.CheckRequest(URN, {}, inputs, b"")
    assert not asyncio.run(handler.check(request)).failures


def test_a_short_key_is_warned_of():
    tokens = Tokens()
    assert tokens.problems(access="r", api_key="short") == []
    assert "less than 32 bytes" in tokens.said.lines[0]


def test_a_good_token_is_left_and_one_that_ends_soon_or_has_another_key_is_made_anew():
    tokens = Tokens()
    inputs = {"access": "r", "api_key": KEY, "valid_days": 60}
    state = tokens.made(**inputs)
    assert tokens.changed(state, **inputs) == []
    assert tokens.changed(state, **{**inputs, "access": "m"}) == ["access"]
    assert tokens.changed(state, **{**inputs, "subject": "x"}) == ["subject"]
    assert tokens.changed({**state, "renew_before_days": 59.9999999}, **inputs, renew_before_days=59.9999999) == [
        "expires_at"
    ]
    assert "it ends on" in tokens.said.lines[-1]
    past = jwt.encode({"access": "r", "exp": int(time.time()) - 1}, KEY, "HS256")
    assert tokens.changed({**state, "token": past}, **inputs) == ["expires_at"]
    assert "it ended on" in tokens.said.lines[-1]


def test_the_providers_key_signs_where_none_is_given_and_another_one_makes_the_token_anew():
    state = Tokens(KEY).made(access="r")
    assert jwt.decode(state["token"], KEY, ["HS256"])["access"] == "r"
    assert "api_key" not in state
    assert Tokens(KEY).changed(state, access="r") == []
    rotated = Tokens(KEY[::-1])
    assert rotated.changed(state, access="r") == ["expires_at"]
    assert "present API key" in rotated.said.lines[-1]
    with pytest.raises(ProviderError, match="no key to sign the token with"):
        Tokens().made(access="r")


@pytest.mark.pulumi
@pytest.mark.embedded_only("needs an endpoint with a key of the test's own")
def test_a_stack_makes_a_token_that_the_server_takes_and_no_file_shows(deploy, start_endpoint, tmp_path):
    endpoint = start_endpoint(api_key=KEY, jwt_rbac="true")
    stack = deploy(url=endpoint.url, api_key=KEY)
    given_out: list[str] = []

    def program(opts: pulumi.ResourceOptions, valid_days: float = 60) -> None:
        collection = Collection(
            "mine", name="cm_a_4_v1", vectors={"dense": {"size": 4, "distance": "Cosine"}}, opts=opts
        )
        token = AccessToken(
            "daemon", collections=collection.name.apply(lambda name: {name: "rw"}), valid_days=valid_days, opts=opts
        )
        pulumi.export("expires_at", token.expires_at)
        pulumi.export("token", token.token)

    stack.program = program
    planned = stack.preview()
    assert planned.ok and planned.changes["create"] >= 2, planned.text
    made = stack.up()
    assert made.ok, made.text
    outputs = stack.stack.outputs()
    assert outputs["token"].secret and not outputs["expires_at"].secret
    given_out.append(outputs["token"].value)
    for path, status in (("/collections/cm_a_4_v1", 200), ("/collections/other", 403), ("/metrics", 403)):
        assert httpx.get(endpoint.url + path, headers={"api-key": given_out[0]}).status_code == status

    again = stack.preview()
    assert again.ok and set(again.changes) == {"same"}, again.text
    assert stack.refresh().changes.keys() == {"same"}

    stack.program = lambda opts: program(opts, 90)
    planned = stack.preview()
    assert planned.ok and planned.changes["update"] == 1, planned.text
    renewed = stack.up()
    assert renewed.ok and renewed.changes["update"] == 1, renewed.text
    given_out.append(stack.stack.outputs()["token"].value)
    assert given_out[0] != given_out[1]
    written = stack.everything_written()
    assert not [secret for secret in (*given_out, KEY) if secret.encode() in written]
    gone = stack.destroy()
    assert gone.ok and "the server takes it until" in gone.text, gone.text
