"""`/metrics` in the Prometheus text format, under the names that a server of this version uses."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from embedded.routes.base import Route
from embedded.storage import Store

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_KIB = 1024


def _resident() -> int:
    """Bytes of this process in memory; where the system has no /proc, the most there ever were."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class _State(Collector):
    """Reads the collections when it is scraped."""

    def __init__(self, store: Store, version: str) -> None:
        self._store = store
        self._version = version

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily("app_info", "information about qdrant server", labels=["name", "version"])
        info.add_metric(["qdrant-embedded", self._version], 1)
        yield info
        yield GaugeMetricFamily("cluster_enabled", "is cluster support enabled", 0)
        collections = list(self._store.collections.values())
        yield GaugeMetricFamily("collections_total", "number of collections", len(collections))
        points = GaugeMetricFamily(
            "collection_points", "approximate amount of points per collection", labels=["id"]
        )
        vectors = GaugeMetricFamily(
            "collection_vectors", "amount of vectors grouped by vector name", labels=["collection", "vector"]
        )
        total = 0
        for collection in collections:
            held, by_vector = collection.counts()
            points.add_metric([collection.name], held)
            for name, amount in by_vector.items():
                vectors.add_metric([collection.name, name], amount)
                total += amount
        yield points
        yield vectors
        yield GaugeMetricFamily("collections_vector_total", "total number of vectors in all collections", total)
        yield GaugeMetricFamily(
            "memory_resident_bytes", "total bytes in physically resident data pages", _resident()
        )
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield GaugeMetricFamily("process_minor_page_faults_total", "minor page faults", usage.ru_minflt)
        yield GaugeMetricFamily("process_major_page_faults_total", "major page faults", usage.ru_majflt)


class Metrics:
    """Counts answers and renders everything."""

    def __init__(self, version: str) -> None:
        self.started = datetime.now(UTC)
        self._version = version
        self._registry = CollectorRegistry()
        labels = ["method", "endpoint", "status"]
        self._responses = Counter("rest_responses", "total number of responses", labels, registry=self._registry)
        self._durations = Histogram(
            "rest_responses_duration_seconds", "response duration histogram", labels, registry=self._registry,
            buckets=_BUCKETS,
        )  # fmt: skip

    def observe(self, route: Route, status: int, seconds: float) -> None:
        """Count one answer."""
        labels = (route.method, route.path.replace("{name}", "{collection_name}"), str(status))
        self._responses.labels(*labels).inc()
        self._durations.labels(*labels).observe(seconds)

    def render(self, store: Store) -> str:
        """All metrics as text."""
        state = CollectorRegistry()
        state.register(_State(store, self._version))
        text: bytes = generate_latest(state) + generate_latest(self._registry)
        return text.decode()
