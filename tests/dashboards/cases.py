"""What makes each alert fire, and what must not: series as promtool's unit tests write them, a sample each minute.

`1x60` is 1 sixty times more, `0+5x60` rises by 5 a minute, `_x20` is nothing for twenty minutes. The longest times
are shortened, since each minute is evaluated; the rules are otherwise those of `generated/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dashboards.thresholds import DEFAULTS, HOUR, MINUTE

HERE = "CLUSTER"
"""Stands for the cluster that a case gets."""

LONG = 300
OURS = 'cluster="CLUSTER", job="comemory", instance="i"'
STANDBY = 'cluster="CLUSTER", job="comemory", instance="standby"'
GONE = 'cluster="CLUSTER", job="comemory", instance="gone"'
QDRANT = 'cluster="CLUSTER", job="qdrant", instance="q:6333"'
DAY = 24 * 60
LIMITS = replace(
    DEFAULTS,
    failing={"census": 10 * MINUTE, "ttl": 20 * MINUTE, "dedup": 30 * MINUTE, "audit": 40 * MINUTE,
             "audit-deep": 50 * MINUTE},
    jobs_remembered=6 * HOUR,
    daemon_remembered=HOUR,
    backlog_window=HOUR,
    backlog_persistent=DEFAULTS.persistent,
    duplicate_window=HOUR,
)  # fmt: skip

WORKS = ("comemory_build_info", "comemory_lease_held", "comemory_qdrant_up")
"""At 1: a daemon that works and sees its Qdrant."""


Fires = tuple[str, str, dict[str, str], str]
"""An alert, its severity, its other labels, and its summary."""


@dataclass(frozen=True)
class Case:
    """Series, a moment in minutes, and every alert that fires then. `alone` cases look at all clusters at once."""

    about: str
    series: Mapping[str, str]
    at: int
    fires: list[Fires] = field(default_factory=list)
    works: bool = True
    alone: bool = False

    def placed(self, cluster: str) -> Case:
        """The case in a cluster of its own, with a daemon that works unless the case is about that."""
        works = {ours(metric): f"1x{LONG}" for metric in WORKS} if self.works else {}
        series = {key.replace(HERE, cluster): values for key, values in {**works, **self.series}.items()}
        fires = [
            (name, severity, {key: value.replace(HERE, cluster) for key, value in labels.items()},
             summary.replace(HERE, cluster))
            for name, severity, labels, summary in self.fires
        ]  # fmt: skip
        return replace(self, series=series, fires=fires)


PLACE = {"cluster": "CLUSTER", "job": "comemory"}


def alert(name: str, severity: str, summary: str, **labels: str) -> Fires:
    return name, severity, {**PLACE, **labels}, summary


def ours(metric: str, **labels: str) -> str:
    more = "".join(f', {key}="{value}"' for key, value in labels.items())
    return f"{metric}{{{OURS}{more}}}"


def theirs(metric: str, **labels: str) -> str:
    more = "".join(f', {key}="{value}"' for key, value in labels.items())
    return f"{metric}{{{QDRANT}{more}}}"


NO_DAEMON = "No ops daemon of CLUSTER comemory is seen by Prometheus."
OLD = "Points of cm should have been deleted 7h 0m 0s ago."


def stale(job: str, ago: str) -> Fires:
    return alert("ComemoryJobStale", "warning", f"The job {job} last succeeded {ago} ago.", job_name=job)


def _interval(minutes: int, job: str = "ttl", when: str = "") -> dict[str, str]:
    return {ours("comemory_job_interval_seconds", job_name=job): f"{when}{60 * minutes}x{LONG}"}


LAST = "comemory_job_last_success_timestamp_seconds"


def _stale(minutes: int, limit: int, ago: str) -> list[Case]:
    """A job with an interval, in minutes, and the limit that follows of it; `ago` is ten minutes more."""
    last = _interval(minutes) | {ours(LAST, job_name="ttl"): f"0x{LONG}"}
    former = {f'{LAST}{{{GONE}, job_name="ttl"}}': f"{60 * (limit - 1)}x{limit} _x{LONG}"}
    return [
        Case(f"a job of every {minutes} minutes succeeded long ago", last, limit + 10, [stale("ttl", ago)]),
        Case(f"a job of every {minutes} minutes succeeded a while ago", last, limit - 1),
        Case(f"a job of every {minutes} minutes succeeded in the daemon before", last | former, limit + 10),
    ]


def _never(minutes: int, limit: int, said: str) -> list[Case]:
    summary = f"The job ttl has not succeeded since it was first seen, and should every {said}."
    fires = [alert("ComemoryJobNeverSucceeded", "warning", summary, job_name="ttl")]
    waits = {
        f'comemory_job_interval_seconds{{{STANDBY}, job_name="ttl"}}': f"{60 * minutes}x{LONG}",
        f"comemory_lease_held{{{STANDBY}}}": f"0x{LONG}",
    }
    others = {f'{LAST}{{{GONE}, job_name="ttl"}}': f"60x5 _x{LONG}"}
    return [
        Case(f"a job of every {minutes} minutes never succeeded", _interval(minutes), limit + 25, fires),
        Case(f"a job of every {minutes} minutes is awaited", _interval(minutes), limit - 1),
        Case(f"a job of every {minutes} minutes is new", _interval(minutes, when="_x60 "), limit + 25),
        Case(f"a job of every {minutes} minutes does not run where no lease is held", waits, limit + 25),
        Case(f"a job of every {minutes} minutes succeeded in a daemon that is gone", _interval(minutes) | others,
             limit - 1),
    ]  # fmt: skip


SEEN_AT_TIMES = " ".join(["1 stale _x4"] * 40)
"""Of a daemon that a supervisor starts every six minutes, and that is ended after one scrape."""

DOWN = ("ComemoryQdrantDown", "critical", {"cluster": "CLUSTER", "job": "comemory"},
        "Qdrant does not answer the daemon of CLUSTER.")  # fmt: skip


def _outage() -> list[Case]:
    """All jobs fail from the 30th minute on. With an outage from then to the 130th, and longer."""
    failing = _interval(1, "census") | {
        ours(LAST, job_name="census"): "0+60x30 1800x300",
        ours("comemory_job_runs_total", job_name="census", outcome="failed"): "0x30 1+1x300",
        ours("comemory_job_runs_total", job_name="census", outcome="success"): "0+1x30 30x300",
    }
    away = {ours("comemory_qdrant_up"): "1x30 0x100 1x200"}
    blip = {ours("comemory_qdrant_up"): "1x108 0x1 1x200"}
    fails = alert("ComemoryJobFailing", "warning", "The job census only fails: 10 times in 10m.", job_name="census")
    return [
        Case("jobs fail because Qdrant is away", failing | away, 120, [DOWN]),
        Case("jobs that failed because Qdrant was away make up for it", failing | away, 150),
        Case("jobs go on failing when Qdrant is back for long", failing | away, 170,
             [fails, stale("census", "2h 20m 0s")]),
        Case("jobs fail, and Qdrant was away for a moment", failing | blip, 112,
             [fails, stale("census", "1h 22m 0s")]),
        Case("a daemon is ended again and again, and one of its jobs never gets to its end", {
            ours(LAST, job_name="census"): "0x20",
            ours("comemory_job_interval_seconds", job_name="census"): SEEN_AT_TIMES.replace("1", "60"),
            ours("comemory_build_info"): SEEN_AT_TIMES, ours("comemory_lease_held"): SEEN_AT_TIMES,
            ours("comemory_qdrant_up"): SEEN_AT_TIMES,
        }, 60, [stale("census", "1h 0m 0s")], works=False),
        Case("a daemon is ended again and again, and none of its jobs ever got to its end", {
            ours("comemory_job_interval_seconds", job_name="census"): SEEN_AT_TIMES.replace("1", "60"),
            ours("comemory_build_info"): SEEN_AT_TIMES, ours("comemory_lease_held"): SEEN_AT_TIMES,
            ours("comemory_qdrant_up"): SEEN_AT_TIMES,
        }, 60, [alert("ComemoryJobNeverSucceeded", "warning",
                      "The job census has not succeeded since it was first seen, and should every 12m 0s.",
                      job_name="census")], works=False),
        Case("the jobs of a daemon that is gone", {
            ours(LAST, job_name="census"): "0x20",
            ours("comemory_job_interval_seconds", job_name="census"): "60x50",
            ours("comemory_build_info"): "1x50 _x300", ours("comemory_lease_held"): "1x50 _x300",
        }, 80, [alert("ComemoryDaemonAbsent", "critical", NO_DAEMON)], works=False),
    ]  # fmt: skip


def _of_job(job: str, minutes: int) -> list[Case]:
    times = "3" if minutes == 30 else "4"  # 4 where the window begins on a step; Prometheus extrapolates
    return _failing(job, minutes, times, f"{minutes}m")


def _failing(job: str, minutes: int, times: str, window: str) -> list[Case]:
    every = max(1, minutes // 3)
    steps = " ".join(f"{n}x{every - 1}" for n in range(8))
    failed = {ours("comemory_job_runs_total", job_name=job, outcome="failed"): steps}
    none = {ours("comemory_job_runs_total", job_name=job, outcome="success"): f"0x{8 * every}"}
    some = {ours("comemory_job_runs_total", job_name=job, outcome="partial"): steps}
    summary = f"The job {job} only fails: {times} times in {window}."
    fires = [alert("ComemoryJobFailing", "warning", summary, job_name=job)]
    return [
        Case(f"{job} only fails", failed | none, 6 * every, fires),
        Case(f"{job} fails now and then", failed | some, 6 * every),
        Case(f"{job} failed once, in a daemon that is gone",  # extrapolated to a little more than 1
             {next(iter(failed)): f"0x3 1x3 _x{LONG}"} | none, 13),
        Case(f"{job} failed once", {next(iter(failed)): f"0x{every} 1x{9 * every}"} | none, 3 * every),
    ]  # fmt: skip


def _expiring(what: str, metric: str, days: tuple[int, int], texts: tuple[str, str]) -> list[Case]:
    warning, critical = days
    name, label = f"Comemory{what}Expiring", what.lower()
    now = 60

    def ends(left: float) -> dict[str, str]:
        return {ours(metric, **{label: "qdrant"}): f"{now * 60 + left * DAY * 60:.0f}x{now}"}

    said = [f"The {label} qdrant ends in {text}." for text in texts]
    return [
        Case(f"a {label} ends soon", ends(warning - 1), now,
             [alert(name, "warning", said[0], **{label: "qdrant"})]),
        Case(f"a {label} ends very soon", ends(critical - 0.5), now,
             [alert(name, "critical", said[1], **{label: "qdrant"})]),
        Case(f"a {label} ends some day", ends(warning + 1), now),
    ]  # fmt: skip


CASES: list[Case] = [
    Case("all is well", {}, 60),
    # --- the daemon
    Case("no daemon was ever seen", {}, 30, [
        ("ComemoryDaemonAbsent", "critical", {}, "No ops daemon of   is seen by Prometheus.")
    ], works=False, alone=True),
    Case("the daemon went away", {ours("comemory_build_info"): "1x10 _x60"}, 30,
         [alert("ComemoryDaemonAbsent", "critical", NO_DAEMON)], works=False),
    Case("the daemon of one of two clusters went away", {
        ours("comemory_build_info"): "1x10 _x60",
        'comemory_build_info{cluster="b", job="comemory", instance="i"}': "1x70",
    }, 30, [alert("ComemoryDaemonAbsent", "critical", NO_DAEMON)], works=False),
    Case("one of two daemons went away",
         {f"comemory_build_info{{{STANDBY}}}": "1x10 _x60"}, 60),
    Case("the daemon was restarted", {ours("comemory_build_info"): "1x10 _x6 1x40"}, 18, works=False),
    Case("nobody holds the lease", {ours("comemory_build_info"): "1x60", ours("comemory_lease_held"): "0x60"}, 10,
         [alert("ComemoryNoActiveDaemon", "critical",
                "Daemons of CLUSTER comemory run, but none holds the lease.")],
         works=False),
    Case("one of two holds the lease", {f"comemory_lease_held{{{STANDBY}}}": "0x60"}, 30),
    Case("two work without a lease, and see 80 invalid payloads each", {
        f"comemory_lease_held{{{STANDBY}}}": "1x60",
        ours("comemory_invalid_points", collection="cm", tenant_id="t_a", reason="scope.unknown"): "80x60",
        f'comemory_invalid_points{{{STANDBY}, collection="cm", tenant_id="t_a", reason="scope.unknown"}}': "80x60",
    }, 40),
    Case("a collector fails",
         {ours("comemory_collector_success", collector="storage", collection="cm"): "1x10 0x60"}, 40,
         [alert("ComemoryCollectorFailing", "warning", "The collector storage cannot count cm.",
                collector="storage", collection="cm")]),
    Case("a collector failed for a while",
         {ours("comemory_collector_success", collector="storage", collection="cm"): "1x10 0x10 1x60"}, 40),
    Case("collectors fail because Qdrant is away", {
        ours("comemory_collector_success", collector="storage", collection="cm"): "0x60",
        ours("comemory_qdrant_up"): "0x60",
    }, 40, [alert("ComemoryQdrantDown", "critical", "Qdrant does not answer the daemon of CLUSTER.")]),
    # --- the jobs
    *(case for job, limit in LIMITS.failing.items() for case in _of_job(job, int(limit / MINUTE))),
    *_stale(1, 12, "22m 0s"), *_stale(20, 60, "1h 10m 0s"), *_stale(90, 240, "4h 10m 0s"),
    *_never(1, 12, "12m 0s"), *_never(20, 60, "1h 0m 0s"), *_never(90, 240, "4h 0m 0s"),
    *_outage(),
    # --- the memory
    Case("expired points wait long", {
        ours("comemory_expired_oldest_age_seconds", collection="cm"): "25200x60",
        ours("comemory_expired_oldest_age_seconds", collection="other"): "3600x60",
    }, 20, [alert("ComemoryRetentionBacklogOld", "warning", OLD, collection="cm")]),
    Case("the numbers of a daemon that lost the lease are old", {
        f'comemory_expired_oldest_age_seconds{{{STANDBY}, collection="cm"}}': "99999x60",
        f"comemory_lease_held{{{STANDBY}}}": "0x60",
    }, 40),
    Case("ever more expired points wait",
         {ours("comemory_expired_points", collection="cm", tenant_id="t_a", scope="docs"): "8000+200x240"}, 110,
         [alert("ComemoryRetentionBacklogGrowing", "warning",
                "30k expired points of cm wait, and they become more.", collection="cm")]),
    Case("a large backlog that is worked off",
         {ours("comemory_expired_points", collection="cm", tenant_id="t_a", scope="docs"): "90000-100x240"}, 150),
    Case("a small backlog that grows",
         {ours("comemory_expired_points", collection="cm", tenant_id="t_a", scope="docs"): "0+40x240"}, 150),
    Case("the first backlog of a collection", {
        ours("comemory_expired_points", collection="cm", tenant_id="t_a", scope="docs"): "_x60 20000x120",
        ours("comemory_expired_oldest_age_seconds", collection="cm"): "0x180",
    }, 110, [alert("ComemoryRetentionBacklogGrowing", "warning",
                   "20k expired points of cm wait, and they become more.", collection="cm")]),
    Case("copies rise",
         {ours("comemory_duplicate_points", collection="cm", tenant_id="t_a", scope="memory"):
          "100x60 5000x60"}, 100,
         [alert("ComemoryDuplicatesRising", "warning",
                "The last dedup found 5k copies in cm, far more than before.", collection="cm")]),
    Case("the first copies of a collection", {
        ours("comemory_duplicate_points", collection="cm", tenant_id="t_a", scope="memory"): "_x60 5000x60",
        ours("comemory_collection_points", collection="cm"): "9000x120",
        ours("comemory_job_last_success_timestamp_seconds", job_name="dedup"): "0+60x120",
    }, 100, [alert("ComemoryDuplicatesRising", "warning",
                   "The last dedup found 5k copies in cm, far more than before.", collection="cm")]),
    Case("copies of which nobody knows how many there were", {
        ours("comemory_duplicate_points", collection="cm", tenant_id="t_a", scope="memory"): "_x60 5000x60",
        ours("comemory_collection_points", collection="cm"): "9000x120",
        ours("comemory_job_last_success_timestamp_seconds", job_name="dedup"): "_x60 3600+60x60",
    }, 100),
    Case("as many copies as ever",
         {ours("comemory_duplicate_points", collection="cm", tenant_id="t_a", scope="memory"):
          "5000x120"}, 100),
    Case("more copies, but few",
         {ours("comemory_duplicate_points", collection="cm", tenant_id="t_a", scope="memory"):
          "10x60 900x60"}, 100),
    Case("payloads break the schema", {
        ours("comemory_invalid_points", collection="cm", tenant_id="t_a", reason="scope.unknown"): "80x60",
        ours("comemory_invalid_points", collection="cm", tenant_id="t_b", reason="scope.unknown"): "70x60",
        ours("comemory_invalid_points", collection="cm", tenant_id="t_b", reason="scope.missing"): "90x60",
    }, 20, [alert("ComemoryInvalidPayloads", "warning", "150 points of cm break the schema: scope.unknown.",
                  collection="cm", reason="scope.unknown")]),
    Case("an index is missing", {
        ours("comemory_schema_drift", collection="cm", kind="index_missing"): "0x10 2x60",
        ours("comemory_schema_drift", collection="cm", kind="in_place"): "0x70",
    }, 60, [alert("ComemorySchemaDrift", "warning", "cm is not as declared: index_missing (2).",
                  collection="cm", kind="index_missing")]),
    Case("an index is being built",
         {ours("comemory_schema_drift", collection="cm", kind="index_missing"): "0x10 2x20 0x60"}, 60),
    Case("tenants are folded", {ours("comemory_tenants_folded"): "0x10 12x60"}, 60,
         [alert("ComemoryTenantsFolded", "warning", "12 tenants have no series of their own.")]),
    Case("no tenant is folded", {ours("comemory_tenants_folded"): "0x60"}, 50),
    # --- Qdrant
    Case("Qdrant is away", {ours("comemory_qdrant_up"): "1x10 0x60"}, 20,
         [alert("ComemoryQdrantDown", "critical", "Qdrant does not answer the daemon of CLUSTER.")]),
    Case("Qdrant was away for a minute", {ours("comemory_qdrant_up"): "1x10 0x1 1x60"}, 14),
    Case("one pod of Qdrant is away", {
        theirs("up"): "1x10 0x60",
        'up{cluster="CLUSTER", job="qdrant", instance="other:6333"}': "1x70",
    }, 30, [alert("ComemoryQdrantTargetDown", "warning", "Prometheus cannot scrape Qdrant at q:6333.",
                  job="qdrant", instance="q:6333")]),
    Case("something else is away", {'up{cluster="CLUSTER", job="node", instance="n"}': "0x60"}, 30),
    Case("a replica is dead", {theirs("collection_dead_replicas"): "0x10 3x60"}, 40,
         [alert("ComemoryQdrantReplicaDead", "critical",
                "3 shards of Qdrant in CLUSTER have a replica that is not active.", job="qdrant")]),
    Case("a replica came back", {theirs("collection_dead_replicas"): "0x10 3x8 0x60"}, 40),
    Case("a collection is red", {
        ours("comemory_collection_status", collection="cm", status="red"): "0x10 1x60",
        ours("comemory_collection_status", collection="cm", status="green"): "1x10 0x60",
    }, 30, [alert("ComemoryCollectionRed", "critical", "The collection cm is red.", collection="cm")]),
    Case("a collection is grey", {
        ours("comemory_collection_status", collection="cm", status="grey"): "0x10 1x60",
    }, 60, [alert("ComemoryCollectionGrey", "warning", "The collection cm is grey.", collection="cm")]),
    Case("a collection is yellow for long",
         {ours("comemory_collection_status", collection="cm", status="yellow"): "1x60"}, 60),
    Case("a collection was red and grey for a moment", {
        ours("comemory_collection_status", collection="cm", status="red"): "0x10 1x3 0x60",
        ours("comemory_collection_status", collection="cm", status="grey"): "0x13 1x9 0x60",
    }, 40),
    Case("Qdrant's container is nearly full", {
        'container_memory_working_set_bytes{cluster="CLUSTER", namespace="m", pod="q-0", '
        'container="qdrant"}': "95x60",
        'kube_pod_container_resource_limits{cluster="CLUSTER", namespace="m", pod="q-0", container="qdrant", '
        'resource="memory"}': "100x60",
        'kube_pod_container_resource_limits{cluster="CLUSTER", namespace="m", pod="q-0", container="qdrant", '
        'resource="cpu"}': "2x60",
        'up{cluster="CLUSTER", job="qdrant", instance="1.2.3.4:6333", namespace="m", pod="q-0"}': "1x60",
        'up{cluster="CLUSTER", job="qdrant", instance="1.2.3.5:6333", namespace="m", pod="q-1"}': "1x60",
        'container_memory_working_set_bytes{cluster="CLUSTER", namespace="theirs", pod="q-0", '
        'container="qdrant"}': "99x60",
        'kube_pod_container_resource_limits{cluster="CLUSTER", namespace="theirs", pod="q-0", container="qdrant", '
        'resource="memory"}': "100x60",
        'container_memory_working_set_bytes{cluster="CLUSTER", namespace="m", pod="q-1", '
        'container="qdrant"}': "80x60",
        'kube_pod_container_resource_limits{cluster="CLUSTER", namespace="m", pod="q-1", container="qdrant", '
        'resource="memory"}': "100x60",
        'container_memory_working_set_bytes{cluster="CLUSTER", namespace="m", pod="x-0", container="x"}': "99x60",
        'kube_pod_container_resource_limits{cluster="CLUSTER", namespace="m", pod="x-0", container="x", '
        'resource="memory"}': "100x60",
    }, 30, [("ComemoryQdrantMemoryNearLimit", "warning", {"cluster": "CLUSTER", "namespace": "m", "pod": "q-0"},
             "Qdrant q-0 uses 95% of its memory.")]),
    Case("a Qdrant whose limit nothing exports is nearly full", {
        theirs("memory_resident_bytes"): "950x60",
        'memory_resident_bytes{cluster="CLUSTER", job="qdrant", instance="other:6333"}': "850x60",
        'memory_resident_bytes{cluster="CLUSTER", job="somebody", instance="s"}': "5000x60",
        # the kubelet tells of this one
        'memory_resident_bytes{cluster="CLUSTER", job="qdrant", instance="p", namespace="m", pod="p"}': "950x60",
        'up{cluster="CLUSTER", job="qdrant", instance="p", namespace="m", pod="p"}': "1x60",
        'container_memory_working_set_bytes{cluster="CLUSTER", namespace="m", pod="p", '
        'container="qdrant"}': "80x60",
        'kube_pod_container_resource_limits{cluster="CLUSTER", namespace="m", pod="p", container="qdrant", '
        'resource="memory"}': "100x60",
    }, 30, [("ComemoryQdrantMemoryNearLimit", "warning",
             {"cluster": "CLUSTER", "job": "qdrant", "instance": "q:6333"},
             "Qdrant q:6333 uses 95% of its memory.")]),
    # --- what ends
    *_expiring("Certificate", "comemory_certificate_expiry_timestamp_seconds", (14, 3),
               ("13d 0h 0m 0s", "2d 12h 0m 0s")),
    *_expiring("Token", "comemory_token_expiry_timestamp_seconds", (7, 1), ("6d 0h 0m 0s", "12h 0m 0s")),
]  # fmt: skip
