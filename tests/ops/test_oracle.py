"""Audit and census against a count in plain Python over a scroll of the same points, well-formed or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient

from comemory.audit import WRONG_TENANT, is_tenant_id
from comemory.payload import SCOPES
from ops import metrics
from ops.jobs.audit import AuditJob
from ops.jobs.census import CensusJob
from ops.snapshot import tenant_label
from tests.comemory.test_audit import as_the_engine_reads, expected_reasons, payloads
from tests.support.memory import Memory, context_for, memory


@pytest.fixture(scope="module")
def filled(qdrant: QdrantClient) -> Iterator[Memory]:
    with memory(qdrant, metadata={"embedding_model": "model-a"}) as made:
        yield made


@st.composite
def of_some_tenant(draw: st.DrawFn) -> dict[str, Any]:
    """A payload with up to three fields spoilt, but none with several values: those count under each of them."""
    payload = draw(payloads().filter(lambda payload: not as_the_engine_reads(payload)[1]))
    tenant = draw(st.sampled_from(["t_a", "t_b", "t_b", "acme"]))
    scope = draw(st.sampled_from(SCOPES))
    return {
        key: tenant if value == "t_a" else scope if value == "docs" else value for key, value in payload.items()
    }


def read(memory: Memory) -> list[dict[str, Any]]:
    """All payloads, as the engine's indexes see them."""
    points, _ = memory.client.scroll(memory.name, limit=1000, with_payload=True)
    return [as_the_engine_reads(point.payload or {})[0] for point in points]


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def audited(payloads: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Points by tenant and reason."""
    counts: Counter[tuple[str, str]] = Counter()
    for payload in payloads:
        tenant = text(payload.get("tenant_id"))
        for reason in expected_reasons(payload)[0]:
            counts[tenant, reason] += 1
        if isinstance(payload.get("tenant_id"), str) and not is_tenant_id(tenant):
            counts[tenant, WRONG_TENANT] += 1
    return counts


def counted(payloads: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Points by the census's labels for tenant and scope."""
    return Counter(
        (
            tenant_label(text(payload.get("tenant_id"))),
            scope if (scope := text(payload.get("scope"))) in SCOPES else metrics.OTHER_SCOPES,
        )
        for payload in payloads
    )


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(batch=st.lists(of_some_tenant(), min_size=80, max_size=80))
def test_both_count_what_plain_python_counts(filled: Memory, qdrant_url: str, batch: list[dict[str, Any]]) -> None:
    filled.clear()
    filled.put(batch)
    stored = read(filled)
    assert len(stored) == len(batch)
    census = CensusJob()
    with context_for(qdrant_url, filled.name) as context:
        audit = AuditJob().run(context)
        assert census.run(context).outcome == "success"
    skipped = {one["reason"] for one in audit.details["not_checked"]}
    assert {(row.tenant, row.reason): row.count for row in audit.rows} == {
        key: count for key, count in audited(stored).items() if key[1] not in skipped
    }
    shown: Counter[tuple[str, ...]] = Counter()
    for sample in census.store.current.samples():
        if sample.metric is metrics.POINTS:
            shown[sample.labels[1:]] += int(sample.value)
    assert shown == counted(stored)
