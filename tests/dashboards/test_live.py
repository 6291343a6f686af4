"""A real Prometheus scrapes the real daemon and the laptop endpoint: queries have data, the right alerts fire."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import rules
from dashboards.thresholds import duration
from tests.support.prometheus import programs
from tools.dashboard_stage import BEFORE, COLLECTION, WINDOW, Stage, boards, filled_in, stage

NO_DATA: list[dict[str, str]] = yaml.safe_load((Path(__file__).resolve().parent / "no_data.yaml").read_text())
PATIENCE = 120.0
"""Seconds for what takes a few on a machine with nothing else to do."""

ORDINARY = {
    "ComemoryInvalidPayloads", "ComemorySchemaDrift", "ComemoryRetentionBacklogOld",
    "ComemoryRetentionBacklogGrowing", "ComemoryDuplicatesRising",
}  # fmt: skip
OUTAGE = {"ComemoryQdrantDown", "ComemoryQdrantTargetDown"}
SOMETIMES = {"ComemoryJobFailing", "ComemoryJobStale"}
"""Right to fire while Qdrant is away, but whether they do depends on how long a step took."""


def wait_for(scene: Stage, expression: str) -> None:
    scene.until(lambda: scene.query(expression), PATIENCE, f"never: {expression}")


def wait_until_fired(scene: Stage, names: set[str]) -> None:
    def missing() -> set[str]:
        return names - scene.fired()

    scene.until(lambda: not missing(), PATIENCE, f"of {sorted(names)} some never fired")


def queries() -> list[tuple[str, str]]:
    return [
        (f"{uid} / {panel['title']} / {target['expr']}", filled_in(target["expr"], uid))
        for uid, board in boards().items()
        for panel in board["panels"]
        if panel["type"] != "row"
        for target in panel["targets"]
    ]


def check_every_query(scene: Stage) -> None:
    excused: dict[str, int] = {}
    wrong: list[str] = []
    for where, expression in queries():
        entry = next((one for one in NO_DATA if re.search(one["where"], where)), None)
        data: list[Any] = scene.query_range(expression)
        if entry is not None:
            excused[entry["where"]] = excused.get(entry["where"], 0) + 1
        if bool(data) == (entry is not None):
            wrong.append(f"{'has data all the same' if data else 'no data'}: {where}")
    assert not wrong, "\n".join(wrong)
    assert set(excused) == {one["where"] for one in NO_DATA}


@pytest.mark.embedded_only("starts and stops an endpoint of its own")
def test_a_day_in_two_minutes(tmp_path: Path) -> None:
    found = programs()
    with stage(tmp_path, found) as scene:
        scene.put(120, 0)
        scene.put(60, 1000, ttl_days=5)
        scene.start_daemon()
        scene.start_prometheus()
        for recorded in (rules.TENANT_POINTS, rules.EXPIRED, rules.DUPLICATES):
            wait_for(scene, f"{recorded.name} offset {duration(BEFORE)}")  # what a rise is compared with is there
        assert scene.fired() == set(), "all is well"

        scene.expire(120, 2000)
        scene.put(150, 3000, fingerprint="b" * 64, scope="memory", tenant_id="t_a", source_id="doc_x")
        scene.put(30, 4000, visibility="everyone")
        scene.client.delete_payload_index(COLLECTION, "team_id", wait=True)
        scene.ask_for_what_is_not_there()
        wait_until_fired(scene, ORDINARY)
        wait_for(scene, 'count(comemory_deleted_points_total{job_name=~"ttl|dedup"} > 0) > 1')
        wait_for(scene, f'rate(rest_responses_total{{status=~"4.."}}[{WINDOW}])')
        assert scene.fired() == ORDINARY
        check_every_query(scene)

        scene.stop("qdrant")
        wait_until_fired(scene, OUTAGE)
        wait_for(scene, 'comemory_job_runs_total{job_name="audit", outcome="failed"} > 0')
        lasting = {"ComemoryInvalidPayloads", "ComemorySchemaDrift"}
        assert scene.firing() >= lasting | OUTAGE, "that nobody can look mends nothing"

        scene.stop("daemon")
        wait_until_fired(scene, {"ComemoryDaemonAbsent"})
        assert scene.fired() - SOMETIMES == ORDINARY | OUTAGE | {"ComemoryDaemonAbsent"}
