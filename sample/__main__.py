"""`python -m sample load` and `python -m sample ask`; the key comes from the environment, QDRANT_API_KEY."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated
from urllib.parse import urlsplit

import typer
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sample import legacy
from sample.ask import Hit, ask, why_readable
from sample.load import MissingCollectionsError, load
from sample.people import Person, people, person
from sample.questions import questions

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
Url = Annotated[str, typer.Option(envvar="QDRANT_URL", help="address of the Qdrant server")]
DEFAULT_URL = "http://127.0.0.1:6333"
_WIDTH = 100
_DEMO_LIMIT = 3


def main() -> None:
    """Run the command; what a person can mend ends in one sentence and exit code 1."""
    try:
        app(standalone_mode=True)
    except (ApiException, MissingCollectionsError, LookupError) as error:
        print(f"error: {_sentence(error)}", file=sys.stderr)
        sys.exit(1)


@app.command(name="load")
def load_command(
    url: Url = DEFAULT_URL,
    once: Annotated[
        bool, typer.Option("--once", help="leave a collection alone that holds points of the sample already")
    ] = False,
) -> None:
    """Write the sample's points into the collections of `make up`; a second time changes nothing."""
    results = load(_client(url), once=once)
    table = Table("collection", "added", "changed", "unchanged", box=box.SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    for result in results:
        table.add_row(result.collection, str(result.added), str(result.changed), str(result.unchanged))
    _console().print(table)


@app.command(name="ask")
def ask_command(
    question: Annotated[str, typer.Argument(help="in words; may be left out with --demo")] = "",
    name: Annotated[
        str, typer.Option("--as", help="who asks: a name from `python -m sample people`")
    ] = "agt_helion",
    demo: Annotated[bool, typer.Option("--demo", help="three questions, each asked by two principals")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    url: Url = DEFAULT_URL,
) -> None:
    """Find the passages nearest to a question among those that somebody may read."""
    client, console = _client(url), _console()
    if demo:
        shown = [
            (asker, _answer(client, console, one.ask, asker, _DEMO_LIMIT))
            for one in questions()
            if one.demo is not None
            for asker in _announce(console, one.demo, (one.asker, one.hidden_from[0]))
        ]
        crossed = sum(
            hit.payload.get("tenant_id") != asker.principal.tenant_id for asker, hits in shown for hit in hits
        )
        total = sum(len(hits) for _, hits in shown)
        console.print(f"{total} passages shown; {crossed} of another tenant than the asker's.")
    elif question:
        _answer(client, console, question, person(name), limit)
    else:
        raise typer.BadParameter('give a question, as in: python -m sample ask "when does a point expire?"')


@app.command(name="people")
def people_command() -> None:
    """List those who can ask."""
    table = Table("name", "tenant", "teams", "roles", "who that is", box=box.SIMPLE)
    for one in people().values():
        principal = one.principal
        table.add_row(
            one.name, principal.tenant_id, ", ".join(principal.team_ids),
            ", ".join(principal.role_ids), one.about,
        )  # fmt: skip
    _console().print(table)


@app.command(name="legacy")
def legacy_command(url: Url = DEFAULT_URL) -> None:
    """Write a part of the sample as it stood before the schema: a collection per agent (docs/migration.md)."""
    for name, count in legacy.write(_client(url)).items():
        print(f"{name}: {count} points")


def _announce(console: Console, what: str, names: tuple[str, str]) -> list[Person]:
    console.print(Text(f"\n{what}", style="bold"))
    return [person(name) for name in names]


def _answer(client: QdrantClient, console: Console, question: str, asker: Person, limit: int) -> list[Hit]:
    """Print who asks what and the answer as a table."""
    principal = asker.principal
    hits = ask(client, question, principal, limit=limit)
    groups = principal.team_ids + principal.role_ids
    console.print(Text(f"\n{asker.name} of {principal.tenant_id} ({', '.join(groups)}) asks: {question}"))
    if not hits:
        console.print("  nothing near the question that this principal may read")
        return hits
    table = Table(box=box.SIMPLE)
    table.add_column("score", justify="right")
    table.add_column("passage", ratio=1)
    for heading in ("tenant, scope", "visibility", "readable because"):
        table.add_column(heading)
    for hit in hits:
        payload = hit.payload
        table.add_row(
            f"{hit.score:.2f}",
            Text(payload["text"]),
            f"{payload['tenant_id']}\n{payload['scope']}",
            payload["visibility"],
            why_readable(payload, principal),
        )
    console.print(table)
    return hits


def _client(url: str) -> QdrantClient:
    # A key that stays on this machine needs no TLS; for any other address the client's warning is right.
    if urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"}:
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
    key = os.environ.get("QDRANT_API_KEY")
    if key and not (key.isascii() and key.isprintable() and key == key.strip()):
        # Sent all the same, it would be printed in the client's own error.
        raise LookupError("QDRANT_API_KEY holds a line break, a blank or another character that no key has")
    return QdrantClient(url=url, api_key=key, timeout=30, check_compatibility=False)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH)


def _sentence(error: Exception) -> str:
    if isinstance(error, UnexpectedResponse):
        if error.status_code in {401, 403}:
            return f"the server refuses the key ({error.status_code}); set QDRANT_API_KEY to one that may write"
        if error.status_code == 404:
            return "a collection of the sample is not on the server; `make up` makes it"
        return f"the server answered {error.status_code}: {error.content.decode(errors='replace')[:300]}"
    if isinstance(error, ResponseHandlingException):
        return f"no answer from the server ({error}); is it running, and is --url right?"
    return str(error.args[0] if error.args else error)


if __name__ == "__main__":
    main()
