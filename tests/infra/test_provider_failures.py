"""Errors that a person can act on, and the key that is nowhere to be read."""

from __future__ import annotations

import pulumi
import pytest
from pulumi import automation
from qdrant_client import QdrantClient

from infra.resources import Collection, PayloadIndex

pytestmark = pytest.mark.pulumi

KEY = "manage-key-that-nobody-may-read"
READ_KEY = "read-only-key-that-nobody-may-read"


def one(name: str, fields: tuple[str, ...] = (), **properties):
    def program(opts: pulumi.ResourceOptions) -> None:
        vectors = {"dense": {"size": 4, "distance": "Cosine"}}
        collection = Collection("memory", name=name, **{"vectors": vectors, **properties}, opts=opts)
        for field in fields:
            PayloadIndex(field, collection=collection.name, field=field, type="keyword", opts=opts)

    return program


def only_error(outcome, about: str) -> str:
    assert not outcome.ok, outcome.text
    assert "Traceback" not in outcome.text and 'File "' not in outcome.text, outcome.text
    found = [line for line in outcome.errors() if about in line]
    assert len(found) == 1, outcome.text
    return found[0]


def test_wrong_values_name_the_key_and_need_no_server(deploy):
    stack = deploy(url="http://127.0.0.1:9")
    stack.program = one("cm_x", hnsw_config={"m": -1, "ef": 3}, deletion_policy="maybe")
    outcome = stack.preview()
    assert not outcome.ok
    text = " ".join(outcome.text.split())
    assert "hnsw_config.m" in text and "not -1" in text
    assert "hnsw_config.ef" in text and "there is no such property" in text
    assert "deletion_policy" in text and "not 'maybe'" in text


def test_a_server_that_does_not_answer_is_named(deploy):
    stack = deploy(url="http://127.0.0.1:9")
    stack.program = one("cm_x")
    sentence = only_error(stack.up(), "cannot reach")
    assert (
        sentence
        == "cannot reach Qdrant at http://127.0.0.1:9 (connection refused); start it, or correct qdrant:url"
    )


@pytest.mark.embedded_only("needs an endpoint with keys of the test's own")
def test_keys_are_checked_and_never_written(deploy, start_endpoint):
    endpoint = start_endpoint(api_key=KEY, read_only_api_key=READ_KEY)
    logged = {"PULUMI_DEBUG_COMMANDS": "true"}

    wrong = deploy(url=endpoint.url, api_key="wrong-key-of-the-test", environment=logged)
    wrong.program = one("cm_x")
    outcome = wrong.up()
    assert "refused the API key" in only_error(outcome, "API key")
    assert "wrong-key-of-the-test" not in outcome.text
    assert b"wrong-key-of-the-test" not in wrong.everything_written()

    reader = deploy(url=endpoint.url, api_key=READ_KEY)
    reader.program = one("cm_x")
    outcome = reader.up()
    assert "the API key may not create collection cm_x" in only_error(outcome, "API key")
    assert READ_KEY not in outcome.text

    stack = deploy(url=endpoint.url, api_key=KEY, environment=logged)
    stack.program = one("cm_x", ("tags",))
    made = stack.up()
    assert made.ok, made.text
    assert KEY not in made.text and KEY not in stack.refresh().text
    written = stack.everything_written()
    assert b"cm_x" in written and b"qdrant:index:Collection" in written, "the state was looked at"
    assert KEY.encode() not in written
    assert QdrantClient(url=endpoint.url, api_key=KEY, check_compatibility=False).collection_exists("cm_x")


@pytest.mark.embedded_only("kills an endpoint and starts it again")
def test_a_run_that_lost_its_server_halfway_is_finished_by_the_next(deploy, start_endpoint):
    endpoint = start_endpoint()
    stack = deploy(url=endpoint.url, timeout=2.0)
    fields = tuple(f"field_{number}" for number in range(8))

    def dies_after_the_collection(opts: pulumi.ResourceOptions) -> None:
        collection = Collection("memory", name="cm_x", vectors={"dense": {"size": 4}}, opts=opts)

        def kill(name: str) -> str:
            if endpoint.process.poll() is None:
                endpoint.kill()
            return name

        for field in fields:
            PayloadIndex(field, collection=collection.name.apply(kill), field=field, type="keyword", opts=opts)

    stack.program = dies_after_the_collection
    broken = stack.up()
    assert not broken.ok and "cannot reach Qdrant" in broken.text, broken.text

    restarted = endpoint.restart()
    assert restarted.url == endpoint.url
    stack.program = one("cm_x", fields)
    finished = stack.up()
    assert finished.ok, finished.text
    live = QdrantClient(url=restarted.url, check_compatibility=False).get_collection("cm_x")
    assert set(live.payload_schema) == set(fields)


def test_an_address_that_is_not_known_yet_is_previewed_without_a_connection(deploy, qdrant_url, collection_name):
    """As when the server is made in the same run: its address is an output that only the update knows."""
    stack = deploy(url=_Later(qdrant_url))
    stack.program = one(collection_name, ("tags",))
    foreseen = stack.preview()
    assert foreseen.ok and foreseen.changes["create"] >= 4, foreseen.text
    made = stack.up()
    assert made.ok, made.text


class _Later:
    """An output that is unknown in a preview."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self) -> pulumi.Output[str]:
        if pulumi.runtime.is_dry_run():
            return pulumi.Output.from_input(self._url).apply(lambda _: pulumi.output.UNKNOWN)
        return pulumi.Output.from_input(self._url)


@pytest.mark.embedded_only("needs an endpoint with a key of the test's own")
def test_the_stacks_settings_configure_the_provider_that_resources_take_by_default(deploy, start_endpoint):
    endpoint = start_endpoint(api_key=KEY)
    stack = deploy(url=endpoint.url)
    stack.stack.set_config("qdrant:url", automation.ConfigValue(endpoint.url))
    stack.stack.set_config("qdrant:api_key", automation.ConfigValue(KEY, secret=True))
    stack.program = lambda _: one("cm_x", ("tags",))(pulumi.ResourceOptions())
    made = stack.up()
    assert made.ok, made.text
    written = stack.everything_written()
    assert b"pulumi:providers:qdrant::default" in written and KEY.encode() not in written
