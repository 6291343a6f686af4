"""An alias that goes from one collection of a stack to the next: Pulumi moves it, and never takes it away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pulumi
import pytest
from qdrant_client import QdrantClient

from comemory.profiles import declare
from infra.components.memory_collection import MemoryCollection
from infra.resources import Alias
from ops.rollover.switch import point
from ops.session import Session
from tests.conftest import SERVER_KEY, SERVER_URL
from tests.infra.conftest import Deployment, Program

pytestmark = pytest.mark.pulumi

KEY = SERVER_KEY if SERVER_URL else None


@pytest.fixture
def names(memory_name: str) -> tuple[str, str, str]:
    """The old collection, the new one, and the alias."""
    return memory_name, memory_name.replace("_v1", "_v2"), f"{memory_name}_current"


def stack(*entries: tuple[str, str | None], named_as_before: bool = False) -> Program:
    """A program of collections with their aliases; `named_as_before`: the alias as older versions named it."""

    def program(options: pulumi.ResourceOptions) -> None:
        there = pulumi.ResourceOptions(providers=[options.provider])  # type: ignore[list-item]
        for name, alias in entries:
            spec = declare(name, size=4, profile="multitenant", embedding_model="m")
            given = None if named_as_before else alias
            made = MemoryCollection(name, spec, indexes=(), alias=given, opts=there)
            if named_as_before and alias:
                below = pulumi.ResourceOptions(parent=made)
                Alias(f"{name}.alias", name=alias, collection=made.collection.name, opts=below)

    return program


def aliases(qdrant: QdrantClient) -> dict[str, str]:
    return {one.alias_name: one.collection_name for one in qdrant.get_aliases().aliases}


def switch(url: str, alias: str, collection: str) -> None:
    """As `comemory rollover switch` does."""
    with Session(url, api_key=KEY) as session:
        point(session, alias, collection)


@contextmanager
def never_away(qdrant_url: str, alias: str) -> Iterator[set[str | None]]:
    """Ask for the alias again and again meanwhile; what it named each time."""
    client = QdrantClient(url=qdrant_url, api_key=KEY, check_compatibility=False)
    seen: set[str | None] = set()
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.01):
            seen.add(aliases(client).get(alias))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield seen
    finally:
        over.set()
        asking.join()
        client.close()


@pytest.mark.parametrize("refreshed", [False, True], ids=["as it was", "refreshed"])
def test_an_alias_that_was_switched_by_hand_moves_in_the_stack_and_is_never_away(
    deploy: Callable[..., Deployment], qdrant: QdrantClient, qdrant_url: str, names: tuple[str, str, str],
    *, refreshed: bool,
) -> None:  # fmt: skip
    old, new, alias = names
    deployment = deploy()
    deployment.program = stack((old, alias), (new, None))
    assert deployment.up().ok
    switch(qdrant_url, alias, new)

    with never_away(qdrant_url, alias) as seen:
        if refreshed:
            assert deployment.refresh().ok
        deployment.program = stack((old, None), (new, alias))
        moved = deployment.up()
    assert moved.ok, moved.text
    assert moved.changes.keys() <= {"same", "update"} and moved.changes.get("update", 0) == (not refreshed)
    assert seen == {new}

    again = deployment.preview()
    assert set(again.changes) == {"same"}, again.text
    deployment.program = stack((new, alias))
    gone = deployment.up()
    assert gone.ok and gone.changes["delete"] == 2, gone.text  # the component and the old collection
    assert aliases(qdrant)[alias] == new
    assert deployment.destroy().ok
    assert alias not in aliases(qdrant)


def test_a_stack_that_nobody_changed_points_the_alias_back_after_a_refresh_only(
    deploy: Callable[..., Deployment], qdrant: QdrantClient, qdrant_url: str, names: tuple[str, str, str]
) -> None:
    old, new, alias = names
    deployment = deploy()
    deployment.program = stack((old, alias), (new, None))
    assert deployment.up().ok
    switch(qdrant_url, alias, new)

    plain = deployment.up()
    assert set(plain.changes) == {"same"}, plain.text
    assert aliases(qdrant)[alias] == new

    assert deployment.refresh().changes["update"] == 1
    assert deployment.preview().changes["update"] == 1, "a preview shows it"
    with never_away(qdrant_url, alias) as seen:
        back = deployment.up()
    assert back.ok and back.changes["update"] == 1, back.text
    assert aliases(qdrant)[alias] == old
    assert seen <= {old, new}
    assert deployment.destroy().ok


def test_an_alias_that_no_entry_has_any_more_goes_only_if_it_is_where_the_stack_knows_it(
    deploy: Callable[..., Deployment], qdrant: QdrantClient, qdrant_url: str, names: tuple[str, str, str]
) -> None:
    old, new, alias = names
    deployment = deploy()
    deployment.program = stack((old, alias), (new, None))
    assert deployment.up().ok
    switch(qdrant_url, alias, new)
    deployment.program = stack((old, None), (new, None))
    left = deployment.up()
    assert left.ok and f"alias {alias} points to {new} and not to {old} any more; it is left" in left.text
    assert aliases(qdrant)[alias] == new

    deployment.program = stack((old, None), (new, alias))
    assert deployment.up().ok, "one that is where the entry wants it is taken over"
    deployment.program = stack((old, None), (new, None))
    assert deployment.up().ok
    assert alias not in aliases(qdrant)
    assert deployment.destroy().ok


def test_a_stack_made_before_keeps_its_alias_under_another_resource_name(
    deploy: Callable[..., Deployment], qdrant: QdrantClient, names: tuple[str, str, str]
) -> None:
    old, _, alias = names
    deployment = deploy()
    deployment.program = stack((old, alias), named_as_before=True)
    assert deployment.up().ok
    deployment.program = stack((old, alias))
    now = deployment.up()
    assert now.ok and set(now.changes) == {"same"}, now.text
    assert f"alias.{alias}" in {one["urn"].rpartition("::")[2] for one in _state(deployment)}
    assert deployment.destroy().ok
    assert alias not in aliases(qdrant)


def test_two_collections_of_a_program_cannot_have_one_alias(
    deploy: Callable[..., Deployment], names: tuple[str, str, str]
) -> None:
    old, new, alias = names
    deployment = deploy()
    deployment.program = stack((old, alias), (new, alias))
    refused = deployment.preview()
    assert not refused.ok
    assert f"alias.{alias}" in refused.text


def _state(deployment: Deployment) -> list[dict[str, str]]:
    return deployment.stack.export_stack().deployment["resources"]
