"""The metrics as Prometheus scrapes them: the last snapshot, the jobs' results, and the daemon itself.

Nothing here asks Qdrant. `Exposition` is a collector for `prometheus-client`, and `render` writes the same text
as that library does, byte for byte, but some twenty times faster, and keeps it while the numbers do not change.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from comemory.audit import countable_reasons
from ops import metrics
from ops.folding import Folding, Largest
from ops.metrics import METRICS, Metric
from ops.report import Row
from ops.results import DeletedKey, Found, JobState, Results
from ops.snapshot import LabelValues, Sample, Snapshot, SnapshotStore, fold, scope_label, tenant_label

Texts = tuple[bytes, bytes]
"""The same series in Prometheus' own format and in OpenMetrics."""


class Exposition(Collector):
    """All series of one daemon.

    Args:
        store: Where the census puts its snapshots.
        results: What the jobs did.
        max_tenants: Tenants with series of their own; see `census.max_tenants` in the settings.
        intervals: By job, how many seconds there are between two runs at most.
        lease_held: Whether this daemon is the one that works.
    """

    def __init__(
        self,
        store: SnapshotStore,
        results: Results,
        *,
        max_tenants: int,
        intervals: Mapping[str, float] = MappingProxyType({}),
        lease_held: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._results = results
        self._folding = Folding(max_tenants)
        self._lease_held = lease_held
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Hashable, Texts]] = {}
        self._ahead: tuple[Snapshot, Texts] | None = None
        self._constant = [
            Sample(metrics.BUILD_INFO, (_own_version(), platform.python_version()), 1.0),
            *(Sample(metrics.JOB_INTERVAL, (job,), seconds) for job, seconds in sorted(intervals.items())),
        ]
        store.before_publishing(self._write_ahead)

    def collect(self) -> Iterator[Family]:
        """The series as `prometheus-client` models them."""
        with self._lock:
            samples = [s for _, _, make in self._parts() for s in make()]
        for metric, rows in _grouped(samples):
            family = Family(metric.family, metric.help, metric.type, metric.unit)
            for labels, value in rows:
                family.add_sample(metric.name, dict(zip(metric.labels, labels, strict=True)), value)
            yield family

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The text and its content type: OpenMetrics when the `accept` header asks for it, else Prometheus' own."""
        _, content_type = choose_encoder(accept)
        openmetrics = content_type.startswith("application/openmetrics-text")
        written: list[bytes] = []
        with self._lock:
            for part, key, make in self._parts():
                if self._ahead is not None and self._ahead[0] is key:
                    self._kept[part], self._ahead = self._ahead, None
                kept = self._kept.get(part)
                if kept is None or kept[0] != key:
                    kept = self._kept[part] = (key, _texts(make()))
                written.append(kept[1][openmetrics])
        return b"".join(written) + (b"# EOF\n" if openmetrics else b""), content_type

    def _write_ahead(self, snapshot: Snapshot) -> None:
        """Write the text of a snapshot before it is shown, so that no scrape waits for it."""
        texts = _texts(_census(snapshot, self._folding.largest(snapshot)))
        with self._lock:
            self._ahead = (snapshot, texts)

    # --- the parts, each with what it depends on -------------------------------------------------------------

    def _parts(self) -> Iterator[tuple[str, Hashable, Callable[[], list[Sample]]]]:
        snapshot, jobs, deleted = self._store.current, self._results.jobs(), self._results.deleted()
        largest = self._folding.largest(snapshot)
        found = {name: state.found for name, state in jobs.items() if state.found is not None}
        yield "census", snapshot, lambda: _census(snapshot, largest)
        key = (largest.tenants, tuple(found.items()), tuple(deleted.items()))
        yield "found", key, lambda: self._found(largest, found, deleted)
        live = _jobs(jobs)
        daemon = [*self._constant, Sample(metrics.LEASE_HELD, (), float(self._lease_held()))]
        yield "live", (*live, *daemon), lambda: [*live, *daemon]

    def _found(self, largest: Largest, found: dict[str, Found], deleted: dict[DeletedKey, int]) -> list[Sample]:
        invalid = _invalid(found.get("audit"), found.get("audit-deep"))
        copies = found["dedup"].rows if "dedup" in found else ()
        met = [tenant for *_, tenant, _ in sorted(deleted)] + [row.tenant for row in (*invalid, *copies)]
        named = self._folding.named(largest, met)
        samples = [
            Sample(metrics.INVALID_POINTS, (r.collection, tenant_label(r.tenant), r.reason), r.count)
            for r in invalid
        ]
        samples += [
            Sample(metrics.DUPLICATE_POINTS, (r.collection, tenant_label(r.tenant), scope_label(r.scope)), r.count)
            for r in copies
        ]
        return [*self._folding.deleted(deleted, named), *fold(samples, named)]


def _census(snapshot: Snapshot, largest: Largest) -> list[Sample]:
    folded = fold(snapshot.samples(), largest.tenants)
    if snapshot.taken is not None:
        folded.append(Sample(metrics.SNAPSHOT_TIME, (), snapshot.taken.timestamp()))
        folded.append(Sample(metrics.TENANTS_FOLDED, (), largest.folded))
    for (collector, collection), run in snapshot.runs.items():
        labels = (collector, collection)
        folded.append(Sample(metrics.COLLECTOR_SUCCESS, labels, float(run.success)))
        folded.append(Sample(metrics.COLLECTOR_DURATION, labels, run.seconds))
        if run.last_success is not None:
            folded.append(Sample(metrics.COLLECTOR_LAST_SUCCESS, labels, run.last_success.timestamp()))
        if collector == "server":
            folded.append(Sample(metrics.QDRANT_UP, (), float(run.success)))
    return folded


def _jobs(jobs: dict[str, JobState]) -> list[Sample]:
    samples: list[Sample] = []
    for name, state in jobs.items():
        report, success = state.last_report, state.last_success
        numbers: list[tuple[Metric, float | None]] = [
            (metrics.JOB_RUNNING, state.running),
            (metrics.JOB_HANDLED, state.handled),
            (metrics.JOB_SKIPPED, state.skipped),
            (metrics.JOB_BATCHES, state.batches),
            (metrics.JOB_REQUESTS, state.requests),
            (metrics.JOB_RETRIES, state.retries),
            (metrics.JOB_LAST_SUCCESS, None if success is None else success.timestamp()),
            (metrics.JOB_LAST_DURATION, state.last_duration),
            (metrics.JOB_PROBLEMS, None if report is None else len(report.problems)),
        ]
        samples += [Sample(metric, (name,), float(value)) for metric, value in numbers if value is not None]
        samples += [
            Sample(metrics.JOB_RUNS, (name, outcome), float(count)) for outcome, count in state.outcomes.items()
        ]
    return samples


def _invalid(counted: Found | None, read: Found | None) -> list[Row]:
    """What the audit counted, which is newer, and what only the deep audit can tell."""
    rows = [] if counted is None else list(counted.rows)
    if read is not None:
        countable = frozenset() if counted is None else countable_reasons()
        left = frozenset() if counted is None else counted.unchecked
        rows += [r for r in read.rows if r.reason not in countable or (r.collection, r.reason) in left]
    return rows


def _own_version() -> str:
    try:
        return version("comemory")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


# --- text ----------------------------------------------------------------------------------------------------


def _grouped(samples: Iterable[Sample]) -> Iterator[tuple[Metric, list[tuple[LabelValues, float]]]]:
    """The samples by metric, in the order of the declaration; a metric without samples is left out."""
    rows: dict[str, list[tuple[LabelValues, float]]] = {}
    for sample in samples:
        rows.setdefault(sample.metric.family, []).append((sample.labels, sample.value))
    for metric in METRICS:
        if metric.family in rows:
            yield metric, rows[metric.family]


def _texts(samples: Iterable[Sample]) -> Texts:
    """The samples in Prometheus' own format and in OpenMetrics; only the heads of the families differ."""
    plain: list[str] = []
    openmetrics: list[str] = []
    for metric, rows in _grouped(samples):
        lines = _lines(metric, rows)
        kind = "gauge" if metric.type == "info" else metric.type
        plain.append(f"# HELP {metric.name} {_escaped(metric.help, quote=False)}\n# TYPE {metric.name} {kind}\n")
        plain.append(lines)
        unit = f"# UNIT {metric.family} {metric.unit}\n" if metric.unit else ""
        head = f"# HELP {metric.family} {_escaped(metric.help)}\n# TYPE {metric.family} {metric.type}\n"
        openmetrics += [head, unit, lines]
    return "".join(plain).encode(), "".join(openmetrics).encode()


def _lines(metric: Metric, rows: list[tuple[LabelValues, float]]) -> str:
    order = sorted(range(len(metric.labels)), key=metric.labels.__getitem__)
    starts = [(f'{metric.labels[place]}="', place) for place in order]
    escaped: dict[str, str] = {}
    lines: list[str] = []
    for labels, value in rows:
        for label in labels:
            if label not in escaped:
                escaped[label] = f'{_escaped(label)}"'
        inner = ",".join([start + escaped[labels[place]] for start, place in starts])
        lines.append(
            f"{metric.name}{{{inner}}} {_number(value)}\n" if inner else f"{metric.name} {_number(value)}\n"
        )
    return "".join(lines)


def _escaped(text: str, *, quote: bool = True) -> str:
    if "\\" in text or "\n" in text or '"' in text:
        text = text.replace("\\", r"\\").replace("\n", r"\n")
        return text.replace('"', r"\"") if quote else text
    return text


def _number(value: float) -> str:
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]
