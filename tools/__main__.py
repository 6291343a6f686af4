"""The steps behind `make`: `python -m tools up|down|preview|sample|ask|endpoint|stop|daemon`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from tools import daemon, down, jobs, report
from tools.errors import StepError
from tools.fetching import ToolError
from tools.pulumi_cli import ensure, language_plugin, version_of
from tools.server import Server, choose
from tools.stack import LocalStack
from tools.workplace import Workplace


def say(text: str) -> None:
    """Print the beginning of a step at once."""
    print(f"==> {text}", flush=True)


def prepare(place: Workplace) -> tuple[Server, LocalStack]:
    """Get the CLI, find the server, select the stack."""
    cli = ensure()
    say(f"Pulumi CLI {version_of(cli)}: {cli}")
    if language_plugin(cli) is None:
        print("    no language plugin beside it: the program runs inline through the Automation API", flush=True)
    place.prepare()
    place.write_environment(cli)
    server = choose(place)
    say(server.told)
    return server, LocalStack(place, cli)


def up(place: Workplace) -> None:
    """Everything from a fresh checkout to a filled server; changes nothing where all is there."""
    server, stack = prepare(place)
    before = stack.outputs().get("url")
    if before and before != server.url:
        print(f"    the stack was last brought up at {before}; what is there stays there", flush=True)
    say(f"pulumi up: the collections and their payload indexes at {server.url}")
    outcome = stack.up()
    parts = [f"{count} {name}" for name, count in sorted(outcome.operations.items())]
    print(
        f"    {', '.join(parts)}" if outcome.changed else "    everything is as declared: nothing changed",
        flush=True,
    )
    if server.embedded:
        say("sample memory (what the jobs have removed since stays away; `make sample` brings it back)")
        _sample(place, server.url, "load", "--once")
        say("the jobs of the daemon, each once")
        jobs.run_each(place, server.url)
    report.show(place, server, outcome.outputs["collections"])


def preview(place: Workplace) -> None:
    """What `up` would do."""
    _, stack = prepare(place)
    stack.preview()


def sample(place: Workplace) -> None:
    """Load the sample, on a server of one's own only because it was asked for."""
    server = choose(place)
    say(f"sample memory into {server.url}")
    _sample(place, server.url, "load")


def ask(place: Workplace) -> None:
    """Ask the sample a question as somebody: `Q` and `AS` come from make."""
    question, who = os.environ.get("Q", ""), os.environ.get("AS", "")
    server = choose(place)
    if not question:
        raise StepError('no question given; type for example: make ask Q="when does a point expire?" AS=agt_helion')
    _sample(place, server.url, "ask", *(["--as", who] if who else []), "--", question)


def questions(place: Workplace) -> None:
    """Three questions of the sample, each asked by two that may not read the same."""
    _sample(place, choose(place).url, "ask", "--demo")


def endpoint(place: Workplace) -> None:
    """Start the laptop endpoint, and nothing else."""
    say(choose(place).told)


def stop(place: Workplace) -> None:
    """Stop the laptop endpoint; its data stay."""
    running = down.stop_endpoint(place)
    say(f"stopped the endpoint at {running.url}; its data stay" if running else "the endpoint does not run")


def bring_down(place: Workplace) -> None:
    """Destroy the stack and stop the endpoint."""
    server, stack = prepare(place)
    down.down(place, server, stack)


STEPS: dict[str, Callable[[Workplace], None]] = {
    "up": up,
    "down": bring_down,
    "preview": preview,
    "sample": sample,
    "ask": ask,
    "questions": questions,
    "endpoint": endpoint,
    "stop": stop,
    "daemon": daemon.run,
}


def _sample(place: Workplace, url: str, *arguments: str) -> None:
    """Run the sample's own command; it takes the key from the environment."""
    environment = {**os.environ, "QDRANT_URL": url}
    done = subprocess.run(
        [sys.executable, "-m", "sample", *arguments], cwd=place.root, env=environment, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.returncode)  # it has said why


def main(arguments: Sequence[str]) -> int:
    """Run one step; what a person can mend is told in words, and ends with exit code 1."""
    if len(arguments) != 1 or arguments[0] not in STEPS:
        print(f"usage: python -m tools {'|'.join(STEPS)}", file=sys.stderr)
        return 2
    place = Workplace(Path(__file__).resolve().parent.parent)
    try:
        with place.lock():
            STEPS[arguments[0]](place)
    except (StepError, ToolError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except UnexpectedResponse as error:
        hint = "; set QDRANT_API_KEY to a key that may" if error.status_code in {401, 403} else ""
        print(f"error: {os.environ.get('QDRANT_URL')} answered {error.status_code}{hint}", file=sys.stderr)
        return 1
    except ResponseHandlingException as error:
        print(f"error: cannot reach Qdrant at {os.environ.get('QDRANT_URL')} ({error})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("broken off; the same command goes on where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
