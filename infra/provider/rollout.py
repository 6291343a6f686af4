"""The resource `Rollout`: waits until every pod of a StatefulSet is ready with the newest of its templates.

Pulumi's provider for Kubernetes judges a StatefulSet by its status alone. Right after a change that is still the
status of before, so an update would be called done while not one pod has been restarted.
"""

from __future__ import annotations

import asyncio
import time

from pulumi.provider.experimental import provider as protocol
from pydantic import Field

from comemory.specs import Spec
from infra.provider.errors import TimedOutError
from infra.provider.port_forward import KubernetesAccess
from infra.provider.properties import UNKNOWN, Properties, plain_map
from infra.provider.resource import Context, invalid, validated

POLL_SECONDS = 1.0
TRIGGERS = ("namespace", "name", "revision")


class RolloutSpec(Spec):
    """Which StatefulSet is waited for, and when again."""

    namespace: str = Field(min_length=1, description="Namespace of the StatefulSet.")
    name: str = Field(min_length=1, description="Its name.")
    revision: str = Field(min_length=1, description="Another text waits again, such as the object's generation.")
    seconds: int = Field(600, ge=1, description="How long it may take.")
    kubernetes: KubernetesAccess = Field(KubernetesAccess(), description="The API server that is asked.")


class RolloutHandler:
    """Waits when it is made and when its revision is another. It changes nothing."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Refuse what is no declaration."""
        wrong = invalid(RolloutSpec, plain_map(request.new_inputs))
        return protocol.CheckResponse(inputs=request.new_inputs, failures=wrong)

    async def diff(self, request: protocol.DiffRequest) -> protocol.DiffResponse:
        """Another object or revision is waited for; how, and for how long, is no difference."""
        new, old = plain_map(request.new_inputs), plain_map(request.old_state)
        changed = [key for key in TRIGGERS if new.get(key) is UNKNOWN or new.get(key) != old.get(key)]
        kind = protocol.PropertyDiff(protocol.PropertyDiffKind.UPDATE, True)
        return protocol.DiffResponse(
            changes=bool(changed), diffs=changed, detailed_diff=dict.fromkeys(changed, kind)
        )

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        """Wait. What did not become ready is not remembered, so that the next update waits again."""
        if request.preview:
            return protocol.CreateResponse(None, dict(request.properties))
        wanted = await _wait(request.properties)
        return protocol.CreateResponse(f"{wanted.namespace}/{wanted.name}", dict(request.properties))

    async def read(self, request: protocol.ReadRequest) -> protocol.ReadResponse:
        """There is nothing to read."""
        return protocol.ReadResponse(request.resource_id, dict(request.properties), dict(request.inputs))

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        """Wait again."""
        if not request.preview:
            await _wait(request.news)
        return protocol.UpdateResponse(properties=dict(request.news))

    async def delete(self, request: protocol.DeleteRequest) -> None:
        """There is nothing to delete."""


async def _wait(properties: Properties) -> RolloutSpec:
    # The client takes long to import, and most runs of the provider have no use for it.
    from infra.provider.kubernetes_api import StatefulSetStatus  # noqa: PLC0415

    wanted = validated(RolloutSpec, plain_map(properties))
    status = StatefulSetStatus(wanted.kubernetes, wanted.namespace, wanted.name)
    until = time.monotonic() + wanted.seconds
    while (missing := await asyncio.to_thread(status.missing)) is not None:
        if time.monotonic() > until:
            raise TimedOutError(
                f"StatefulSet {wanted.namespace}/{wanted.name} is not rolled out after {wanted.seconds} s: "
                f"{missing}; look at the pod's events and log, mend what they name, and run `pulumi up` again"
            )
        await asyncio.sleep(POLL_SECONDS)
    return wanted
