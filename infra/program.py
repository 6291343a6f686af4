"""The Pulumi program: the declared collections on one Qdrant server.

One function, run by the ordinary command line (`infra/__main__.py`) and inline by the Automation API
(`tools.stack`), so that both make the same resources.
"""

from __future__ import annotations

import pulumi
from pulumi.runtime.config import CONFIG

from infra.components.memory_collection import MemoryCollection
from infra.resources import Provider
from infra.settings import ConfigurationError, StackSettings, environment, load


def program() -> None:
    """Declare everything of the current stack.

    Raises pulumi.RunError, which the command line shows as it is, when the configuration is wrong.
    """
    try:
        declare_stack(load(CONFIG.get()))
    except ConfigurationError as error:
        raise pulumi.RunError(f"the configuration of stack {pulumi.get_stack()} is wrong:\n{error}") from error


def declare_stack(settings: StackSettings) -> None:
    """Declare the provider and the collections, and export what a person or another program asks for."""
    endpoint = settings.endpoint
    url = endpoint.address(environment())
    key = endpoint.api_key
    provider = Provider(
        "qdrant",
        url=url,
        # A key of the environment is left there: the provider reads it itself, and no state file holds it.
        api_key=pulumi.Output.secret(key.get_secret_value()) if key else None,
        timeout=endpoint.timeout,
        tls_ca=endpoint.tls_ca,
    )
    options = pulumi.ResourceOptions(providers=[provider])
    made = [
        MemoryCollection(one.spec.name, one.spec, indexes=one.indexes, alias=one.alias, opts=options)
        for one in settings.resolved()
    ]
    pulumi.export("url", url)
    pulumi.export("collections", [collection.ready for collection in made])
    pulumi.export("indexes", sum(len(collection.indexes) for collection in made))
