"""Qdrant: the server's own metrics, per instance (which on Kubernetes is a pod)."""

from __future__ import annotations

from typing import Final

from dashboards import foreign
from dashboards.expressions import CLUSTER, Source, aggregate, ratio, total
from dashboards.foreign import Foreign
from dashboards.panels import (
    NONE_IS_GOOD,
    NONE_MAY_BE,
    PLAIN,
    Board,
    Panel,
    Query,
    Row,
    Steps,
    lines,
    number,
    rising,
    rows,
)
from dashboards.settings import DashboardSettings
from dashboards.thresholds import Thresholds
from dashboards.variables import of_qdrant, theirs

UID = "comemory-qdrant"
INSTANCE: Final = (CLUSTER, "pod", "instance")
"""What tells one server from another: on Kubernetes an instance is an address, which says little, of a pod."""

OF: Final = "{{cluster}} {{pod}} {{instance}}"


def board(settings: DashboardSettings, limits: Thresholds) -> Board:
    """The dashboard."""
    source = theirs(settings)
    return Board(
        UID,
        "Co-Memory / Qdrant",
        "The server itself, per instance: requests, latency, memory, optimisation, replicas, snapshots.",
        list(of_qdrant(settings)),
        [
            Row("Instances", _instances(source)),
            Row("Requests", _requests(source, limits)),
            Row("Memory and files", _memory(source)),
            Row("Collections and optimisation", _collections(source)),
            Row("Replicas and consensus", _replicas(source)),
            Row("Snapshots", _snapshots(source)),
        ],
        since="now-6h",
    )


def _instances(source: Source) -> list[Panel]:
    return [
        number(
            "Instances down",
            "Instances that Prometheus knows and cannot scrape: they are down, or refuse the scrape. Look at "
            "their pods.",
            "none", f"count({source.of(foreign.UP)}) - {total(source.of(foreign.UP))}", NONE_MAY_BE,
        ),
        number(
            "Recovery mode",
            "Instances in recovery mode: their collections are not loaded, because loading would exceed memory.",
            "none", f"{total(source.of(foreign.RECOVERY_MODE))} or vector(0)", NONE_IS_GOOD,
        ),
        number(
            "Collections",
            "Collections that an instance has, ours and others.",
            "none", aggregate("max", source.of(foreign.COLLECTIONS)), PLAIN,
        ),
        number(
            "Vectors",
            "Vectors on all instances; each replica counts.",
            "short", total(source.of(foreign.VECTORS_TOTAL)), PLAIN,
        ),
        number(
            "Shards with a dead replica",
            "Shards with a replica that is not active. When it stays, look at the pod that holds it: one more loss "
            "and the shard is gone.",
            "none", aggregate("max", source.of(foreign.DEAD_REPLICAS)), NONE_IS_GOOD,
        ),
        number(
            "Errors",
            "The part of answers by REST that are errors of the server (5xx). Read the log of the instance.",
            "percentunit",
            _errors(source),
            rising(0.001, 0.01),
        ),
        rows(
            "Versions",
            "What runs where. Different versions side by side are right only during an upgrade.",
            "none", [Query(aggregate("max", source.of(foreign.APP_INFO), *INSTANCE, "name", "version"), "running")],
            height=5,
        ),
    ]  # fmt: skip


def _errors(source: Source) -> str:
    failed = total(source.rate(foreign.REST_RESPONSES, 'status=~"5.."'))
    return ratio(f"({failed} or vector(0))", total(source.rate(foreign.REST_RESPONSES)))


def _requests(source: Source, limits: Thresholds) -> list[Panel]:
    slow = rising(limits.slow_request / 2, limits.slow_request)
    return [
        lines(
            "REST requests by endpoint",
            "Answers per second. Searches are `query`, writes `points` and `batch`; the daemon asks `facet` and "
            "`count`.",
            "reqps", [Query(total(source.rate(foreign.REST_RESPONSES), "endpoint"), "{{endpoint}}")],
        ),
        lines(
            "REST answers that are errors",
            "Answers per second with status 4xx or 5xx. 4xx: a client asks wrongly, or without an index in strict "
            "mode; 5xx: look at the log.",
            "reqps",
            [Query(total(source.rate(foreign.REST_RESPONSES, 'status=~"4..|5.."'), "endpoint", "status"),
                   "{{status}} {{endpoint}}")],
            rising(0.1, 1),
        ),
        _latency(
            source, foreign.REST_SECONDS, "REST latency", "Of answers with status 200, over all endpoints.", slow
        ),
        lines(
            "REST 99th percentile by instance",
            "One instance slower than the others has more to do, or less memory to do it with.",
            "s", [Query(source.quantile(0.99, foreign.REST_SECONDS, by=INSTANCE), OF)], slow,
        ),
        lines(
            "gRPC requests by endpoint",
            "Answers per second. Clients that prefer gRPC show here.",
            "reqps", [Query(total(source.rate(foreign.GRPC_RESPONSES), "endpoint"), "{{endpoint}}")],
        ),
        _latency(source, foreign.GRPC_SECONDS, "gRPC latency", "Over all endpoints.", slow),
    ]  # fmt: skip


def _latency(source: Source, metric: Foreign, title: str, of: str, steps: Steps) -> Panel:
    quantiles = [Query(source.quantile(part, metric), f"p{part * 100:g}") for part in (0.5, 0.95, 0.99)]
    return lines(
        title,
        f"{of} When it rises with memory or page faults, vectors no longer fit into memory.",
        "s", quantiles, steps,
    )  # fmt: skip


def _memory(source: Source) -> list[Panel]:
    def each(metric: Foreign) -> str:
        return aggregate("max", source.of(metric), *INSTANCE)

    return [
        lines(
            "Memory",
            "Bytes that the server has allocated and that are resident, per instance; files mapped into memory are "
            "not in it. Compare it with the pod's limit.",
            "bytes",
            [Query(each(foreign.MEMORY_RESIDENT), f"{OF} resident"),
             Query(each(foreign.MEMORY_ALLOCATED), f"{OF} allocated")],
        ),
        lines(
            "Page faults that read the disk",
            "Per second. Many while searching: the vectors do not fit into memory; quantize, or give it more.",
            "cps", [Query(total(source.rate(foreign.MAJOR_FAULTS), *INSTANCE), OF)], rising(100, 1000),
        ),
        lines(
            "Open files",
            "As part of what may be open. At 1 the server can open no segment more; raise the limit.",
            "percentunit",
            [Query(ratio(each(foreign.OPEN_FILES), each(foreign.MAX_FILES)), OF)], rising(0.7, 0.9),
            width=8,
        ),
        lines(
            "Memory maps",
            "As part of what the system allows (vm.max_map_count). At 1 the server fails; many small segments use "
            "many.",
            "percentunit", [Query(ratio(each(foreign.OPEN_MAPS), each(foreign.MAX_MAPS)), OF)],
            rising(0.7, 0.9), width=8,
        ),
        lines("Threads", "Threads of the server. It grows with optimisation and load.", "none",
              [Query(each(foreign.THREADS), OF)], width=8),
    ]  # fmt: skip


def _collections(source: Source) -> list[Panel]:
    return [
        lines(
            "Points by collection",
            "As the server counts them, roughly; each replica counts.",
            "short", [Query(total(source.of(foreign.POINTS), "id"), "{{id}}")], width=8,
        ),
        lines(
            "Optimisations running",
            "Segments being merged or indexed. Always some: writes come faster than they are indexed.",
            "none", [Query(total(source.of(foreign.OPTIMIZATIONS), "id"), "{{id}}")], width=8,
        ),
        lines(
            "Writes waiting",
            "Operations not yet applied. When it grows the server cannot keep up with the writers.",
            "short", [Query(total(source.of(foreign.UPDATE_QUEUE), "id"), "{{id}}")], rising(1000, 10_000), width=8,
        ),
        lines(
            "Points that indexed_only searches skip",
            "Points in segments without an index. When it does not fall, optimisation is behind or stopped.",
            "short", [Query(total(source.of(foreign.UNINDEXED_EXCLUDED), "id", "vector"), "{{id}} {{vector}}")],
        ),
        lines(
            "Vectors by name",
            "Vectors of each name; each replica counts.",
            "short",
            [Query(total(source.of(foreign.VECTORS), "collection", "vector"), "{{collection}} {{vector}}")],
        ),
    ]  # fmt: skip


def _replicas(source: Source) -> list[Panel]:
    return [
        lines(
            "Active replicas",
            "Of the shard with the fewest and with the most. The fewest should be the replication factor.",
            "none",
            [Query(aggregate("min", source.of(foreign.ACTIVE_REPLICAS_MIN)), "fewest"),
             Query(aggregate("max", source.of(foreign.ACTIVE_REPLICAS_MAX)), "most")],
            width=8,
        ),
        lines(
            "Shard transfers",
            "Shards coming and leaving. During a scale-out or a recovery some are right.",
            "none",
            [Query(total(source.of(foreign.TRANSFERS_IN), *INSTANCE), f"{OF} in"),
             Query(total(source.of(foreign.TRANSFERS_OUT), *INSTANCE), f"{OF} out")],
            width=8,
        ),
        lines(
            "Operations of consensus that wait",
            "Not yet applied by an instance. When it stays above 0 the peers do not agree: check their network.",
            "none", [Query(total(source.of(foreign.CLUSTER_PENDING), *INSTANCE), OF)], NONE_IS_GOOD,
            width=8,
        ),
        lines(
            "Peers",
            "How many peers each instance knows. Instances that differ are split from one another.",
            "none", [Query(aggregate("max", source.of(foreign.CLUSTER_PEERS), *INSTANCE), OF)],
        ),
        lines(
            "Elections",
            "Terms of consensus per second. Many elections tell of a slow network or overloaded instances.",
            "cps", [Query(total(source.rate(foreign.CLUSTER_TERM), *INSTANCE), OF)], rising(0.01, 0.1),
        ),
    ]  # fmt: skip


def _snapshots(source: Source) -> list[Panel]:
    return [
        lines(
            "Snapshots under way",
            "Being made and being restored. Both cost disk and memory.",
            "none",
            [Query(total(source.of(foreign.SNAPSHOTS_RUNNING), "id"), "{{id}} made"),
             Query(total(source.of(foreign.RECOVERIES_RUNNING), "id"), "{{id}} restored")],
        ),
        lines(
            "Snapshots made",
            "Per second. None over a day, where a backup is planned, means that the backup does not run.",
            "cps", [Query(total(source.rate(foreign.SNAPSHOTS_CREATED), "id"), "{{id}}")],
        ),
    ]  # fmt: skip
