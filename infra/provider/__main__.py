"""Serve the provider: `python -m infra.provider <engine address>`, as Pulumi calls it."""

from infra.provider.server import main

main()
