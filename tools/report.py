"""What exists, where, and what to type next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from infra.settings import DEFAULT_PORT
from tools.server import Server
from tools.workplace import Workplace


def show(place: Workplace, server: Server, collections: Sequence[str]) -> None:
    """Print the collections as the server has them, the places, and the next commands."""
    client = server.client()
    print(f"\n{'collection':<24}{'points':>9}{'payload indexes':>18}  vectors")
    for name in collections:
        info = client.get_collection(name)
        vectors = info.config.params.vectors
        sizes = ", ".join(f"{key} {one.size}" for key, one in vectors.items()) if isinstance(vectors, dict) else "?"
        points = client.count(name, exact=True).count
        print(f"{name:<24}{points:>9}{len(info.payload_schema):>18}  {sizes}")
    client.close()
    print(f"\nQdrant         {server.url}{' (laptop endpoint, loopback only)' if server.embedded else ''}")
    print(f"Pulumi state   {place.shown(place.state)} (stack local, configuration {place.configuration.name})")
    if server.embedded:
        print(f"data and log   {place.shown(place.endpoint)}")
    print("\nnext:")
    steps = [] if server.embedded else [("make sample", "load the sample memory into this server")]
    steps += [('make ask Q="when does a point expire?" AS=agt_helion', "ask as one agent, see what it may read")]
    steps += [("make questions", "three questions, each asked by two agents")] if server.embedded else []
    steps += [
        ("make preview", f"what `pulumi up` would change (edit {place.configuration.name})"),
        (_by_hand(place, server), "the ordinary command line on the same state"),
        ("make daemon", "run the jobs on their schedule; metrics at http://127.0.0.1:9464/metrics"),
        ("make down", "take it away again"),
    ]
    width = max(len(command) for command, _ in steps) + 2
    for command, what in steps:
        print(f"  {command:<{width}}{what}")


def _by_hand(place: Workplace, server: Server) -> str:
    port = urlsplit(server.url).port
    moved = server.embedded and port != DEFAULT_PORT and not os.environ.get("COMEMORY_PORT")
    return f". {place.shown(place.local)}/env && {f'COMEMORY_PORT={port} ' if moved else ''}pulumi stack"
