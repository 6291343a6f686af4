"""Serve the provider: `python -m infra.provider <engine address>`, as Pulumi calls it."""

import sys

# httpx imports its own command line (rich, pygments, click) where it can: a fifth of the time that this
# process takes to start.
sys.modules["httpx._main"] = None  # type: ignore[assignment]

from infra.provider.server import main  # noqa: E402

main()
