"""Taking the stack away: no points go without a person's yes, and on a server of one's own not even then."""

from __future__ import annotations

import os
import sys

from qdrant_client import QdrantClient, models

from tools.endpoint import LocalEndpoint, Running
from tools.errors import StepError
from tools.server import Server
from tools.stack import LocalStack
from tools.workplace import Workplace


def stop_endpoint(place: Workplace) -> Running | None:
    """Stop the laptop endpoint of this checkout."""
    return LocalEndpoint(place.root, place.endpoint).stop()


def down(place: Workplace, server: Server, stack: LocalStack) -> None:
    """Destroy the stack, and stop the laptop endpoint.

    On the laptop endpoint the declared collections go with their points, after a yes (or CONFIRM=yes). On a server
    that QDRANT_URL names no point is ever deleted: a collection that holds some stops it before anything is done.
    """
    outputs = stack.outputs()
    last = outputs.get("url")
    if last and last != server.url and not server.embedded:
        raise StepError(f"the stack was last brought up at {last}, not at {server.url}; set QDRANT_URL to that one")
    if last and last != server.url:
        raise StepError(f"the stack was last brought up at {last}; take it away there: QDRANT_URL={last} make down")
    client = server.client()
    try:
        filled = _filled(client, outputs.get("collections", []))
        listed = ", ".join(f"{name} ({count} points)" for name, count in filled.items())
        if filled and not server.embedded:
            raise StepError(
                f"not deleted, because they hold points: {listed} at {server.url}. Empty them first, or set "
                f"deletion_policy to `retain` in {place.configuration.name} and run `make up` to leave them there"
            )
        if outputs:
            _confirm(f"delete {listed or 'the empty collections of the stack'} at {server.url}")
        for name in filled:
            client.delete(name, models.FilterSelector(filter=models.Filter()), wait=True)
    finally:
        client.close()
    print("==> pulumi destroy", flush=True)
    stack.destroy()
    if server.embedded and (running := stop_endpoint(place)):
        print(f"==> stopped the endpoint at {running.url}", flush=True)
    print(f"gone: the stack's collections; kept: {place.shown(place.local)} (`make clean` removes it)")


def _filled(client: QdrantClient, names: list[str]) -> dict[str, int]:
    counts = {name: client.count(name, exact=True).count for name in names if client.collection_exists(name)}
    return {name: count for name, count in counts.items() if count}


def _confirm(what: str) -> None:
    if os.environ.get("CONFIRM") == "yes":
        return
    if not sys.stdin.isatty():
        raise StepError(
            f"this would {what}; say yes with: make down CONFIRM=yes (or `make stop`, which deletes nothing)"
        )
    if input(f"This will {what}. Type yes to go on: ").strip() != "yes":
        raise StepError("nothing was deleted; `make stop` stops the endpoint and keeps everything")
