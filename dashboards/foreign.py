"""Metrics that are not ours: Qdrant's own, Prometheus' own, and two of a Kubernetes cluster.

Qdrant's are those of version 1.19, as its source (`src/common/metrics`) declares them. An older server lacks some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Foreign:
    """A metric of another program, by the name to ask Prometheus for (without a prefix that an operator set)."""

    name: str
    type: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


_REST: Final = ("method", "endpoint", "status")
_GRPC: Final = ("endpoint", "status")
_ID: Final = ("id",)

APP_INFO: Final = Foreign("app_info", "gauge", "Name and version of the server.", ("name", "version"))
RECOVERY_MODE: Final = Foreign("app_status_recovery_mode", "gauge", "1 when started in recovery mode.")
COLLECTIONS: Final = Foreign("collections_total", "gauge", "Collections of the server.")
VECTORS_TOTAL: Final = Foreign("collections_vector_total", "gauge", "Vectors in all collections.")
POINTS: Final = Foreign("collection_points", "gauge", "Points per collection, roughly.", _ID)
VECTORS: Final = Foreign("collection_vectors", "gauge", "Vectors per name.", ("collection", "vector"))
UNINDEXED_EXCLUDED: Final = Foreign(
    "collection_indexed_only_excluded_points", "gauge", "Points that indexed_only searches skip.", ("id", "vector")
)
ACTIVE_REPLICAS_MIN: Final = Foreign(
    "collection_active_replicas_min", "gauge", "Active replicas of the shard that has the fewest."
)
ACTIVE_REPLICAS_MAX: Final = Foreign(
    "collection_active_replicas_max", "gauge", "Active replicas of the shard that has the most."
)
DEAD_REPLICAS: Final = Foreign("collection_dead_replicas", "gauge", "Shards with a replica that is not active.")
OPTIMIZATIONS: Final = Foreign("collection_running_optimizations", "gauge", "Optimizations running.", _ID)
UPDATE_QUEUE: Final = Foreign("collection_update_queue_length", "gauge", "Operations waiting to be applied.", _ID)
TRANSFERS_IN: Final = Foreign("collection_shard_transfer_incoming", "gauge", "Shards coming to this peer.", _ID)
TRANSFERS_OUT: Final = Foreign("collection_shard_transfer_outgoing", "gauge", "Shards leaving this peer.", _ID)
SNAPSHOTS_RUNNING: Final = Foreign("snapshot_creation_running", "gauge", "Snapshots being made.", _ID)
RECOVERIES_RUNNING: Final = Foreign("snapshot_recovery_running", "gauge", "Snapshots being restored.", _ID)
SNAPSHOTS_CREATED: Final = Foreign("snapshot_created_total", "counter", "Snapshots made.", _ID)
CLUSTER_ENABLED: Final = Foreign("cluster_enabled", "gauge", "1 in distributed mode.")
CLUSTER_PEERS: Final = Foreign("cluster_peers_total", "gauge", "Peers that this one knows.")
CLUSTER_TERM: Final = Foreign("cluster_term", "counter", "The term of consensus; it rises with each election.")
CLUSTER_COMMIT: Final = Foreign("cluster_commit", "counter", "The last committed operation.", ("peer_id",))
CLUSTER_PENDING: Final = Foreign(
    "cluster_pending_operations_total", "gauge", "Operations of consensus not yet applied."
)
MEMORY_RESIDENT: Final = Foreign("memory_resident_bytes", "gauge", "Bytes of the allocator in memory.")
MEMORY_ALLOCATED: Final = Foreign("memory_allocated_bytes", "gauge", "Bytes allocated by the server.")
THREADS: Final = Foreign("process_threads", "gauge", "Threads.")
OPEN_FILES: Final = Foreign("process_open_fds", "gauge", "Open file descriptors.")
MAX_FILES: Final = Foreign("process_max_fds", "gauge", "File descriptors that may be open.")
OPEN_MAPS: Final = Foreign("process_open_mmaps", "gauge", "Memory maps.")
MAX_MAPS: Final = Foreign("system_max_mmaps", "gauge", "Memory maps that a process may have.")
MINOR_FAULTS: Final = Foreign("process_minor_page_faults_total", "counter", "Page faults served from memory.")
MAJOR_FAULTS: Final = Foreign("process_major_page_faults_total", "counter", "Page faults that read the disk.")
REST_RESPONSES: Final = Foreign("rest_responses_total", "counter", "Answers by REST.", _REST)
REST_SECONDS: Final = Foreign("rest_responses_duration_seconds", "histogram", "Seconds of 200s by REST.", _REST)
GRPC_RESPONSES: Final = Foreign("grpc_responses_total", "counter", "Answers by gRPC.", _GRPC)
GRPC_SECONDS: Final = Foreign("grpc_responses_duration_seconds", "histogram", "Seconds of answers by gRPC.", _GRPC)

QDRANT: Final[tuple[Foreign, ...]] = (
    APP_INFO, RECOVERY_MODE, COLLECTIONS, VECTORS_TOTAL, POINTS, VECTORS, UNINDEXED_EXCLUDED, ACTIVE_REPLICAS_MIN,
    ACTIVE_REPLICAS_MAX, DEAD_REPLICAS, OPTIMIZATIONS, UPDATE_QUEUE, TRANSFERS_IN, TRANSFERS_OUT,
    SNAPSHOTS_RUNNING, RECOVERIES_RUNNING, SNAPSHOTS_CREATED, CLUSTER_ENABLED, CLUSTER_PEERS, CLUSTER_TERM,
    CLUSTER_COMMIT, CLUSTER_PENDING, MEMORY_RESIDENT, MEMORY_ALLOCATED, THREADS, OPEN_FILES, MAX_FILES, OPEN_MAPS,
    MAX_MAPS, MINOR_FAULTS, MAJOR_FAULTS, REST_RESPONSES, REST_SECONDS, GRPC_RESPONSES, GRPC_SECONDS,
)  # fmt: skip
"""Qdrant's own; they alone get the prefix."""

UP: Final = Foreign("up", "gauge", "1 when the last scrape of a target worked.")
ALERTS: Final = Foreign(
    "ALERTS", "gauge", "1 for each alert that is pending or firing.", ("alertname", "alertstate")
)
PROMETHEUS: Final = (UP, ALERTS)
"""What Prometheus itself adds."""

_CONTAINER: Final = ("namespace", "pod", "container")
CONTAINER_MEMORY: Final = Foreign(
    "container_memory_working_set_bytes", "gauge", "Memory of a container, from the kubelet.", _CONTAINER
)
CONTAINER_LIMITS: Final = Foreign(
    "kube_pod_container_resource_limits", "gauge", "Limits of a container, from kube-state-metrics.",
    (*_CONTAINER, "resource"),
)  # fmt: skip
KUBERNETES: Final = (CONTAINER_MEMORY, CONTAINER_LIMITS)
"""What a Kubernetes cluster with kube-prometheus has."""
