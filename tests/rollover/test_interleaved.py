"""Any interleaving of applications' writes, passes and kills ends in the state that the rule says.

Applications write between any two requests of a pass, and a pass may be ended before or after any of its requests.
What has to be in the end is worked out from what the applications did, and from nothing that the passes say.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from comemory.rollover import MARKER
from ops.session import Session
from ops.transport import Json
from tests.rollover.sides import Sides, payload

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
IDS = (1, 2, "8a5f1c1e-0000-4000-8000-000000000001")
READERS = ("tenant_id", "team_id", "owner_kind", "owner_id", "visibility", "indexed", "acl")

SHAPES = st.fixed_dictionaries(
    {
        "visibility": st.sampled_from(["private", "confidential", "public"]),
        "team_id": st.sampled_from(["team_a", None]),
        "acl": st.sampled_from([None, {"read_team_ids": ["team_b"]}, "broken"]),
        "tags": st.sampled_from([None, ["legal_hold"], [1, None, {}], 7]),
    }
)
SIDE = st.sampled_from(["old", "new"])
WRITES = st.one_of(
    st.tuples(st.just("put"), SIDE, st.sampled_from(IDS), SHAPES),
    st.tuples(st.just("note"), SIDE, st.sampled_from(IDS), st.none()),
    st.tuples(st.just("readers"), SIDE, st.sampled_from(IDS), SHAPES),
    st.tuples(st.just("delete"), SIDE, st.sampled_from(IDS), st.none()),
)
PASS = st.tuples(
    st.just("pass"),
    st.dictionaries(st.integers(1, 7), st.lists(WRITES, min_size=1, max_size=2), max_size=4),
    st.none() | st.tuples(st.integers(0, 9), st.booleans()),
)
# A pass counts, reads either side, and writes with its fourth request where all is one page.
SHAPE = {"visibility": "private", "team_id": "team_a", "acl": None, "tags": None}
BEGUN: list[Any] = [*(("put", "old", one, SHAPE) for one in IDS), ("pass", {}, None)]
"""How most stories begin: every id is there, and copied."""
NOTED: list[Any] = [("note", "old", one, None) for one in IDS]


class Killed(Exception):
    """Raised instead of or after a request, as a kill would end the process."""


@dataclass
class World:
    """The two collections, and what applications have done to the new one."""

    sides: Sides
    count: int = 0
    own: dict[Any, dict[str, Any]] = field(default_factory=dict)
    """Points that an application wrote whole to the new collection, as they have to stay."""
    touched: dict[Any, tuple[dict[str, Any], bool]] = field(default_factory=dict)
    """Copies that an application changed: as they are since, and whether their readers were what it changed."""

    def write(self, kind: str, side: str, point_id: Any, shape: dict[str, Any] | None) -> None:
        sides, name = self.sides, getattr(self.sides, side)
        self.count += 1  # no two writes are alike
        now = {"note": self.count, "updated_at": (BEGIN + timedelta(seconds=self.count)).isoformat()}
        there = self.raw(name, point_id)
        if kind == "put":
            made = payload(**now, **(shape or {}))
            sides.put(name, point_id, made, number=self.count)
            if side == "new":
                self.own[point_id] = made
                self.touched.pop(point_id, None)
        elif kind == "delete":
            sides.delete(name, point_id)
            if side == "new":
                self.own.pop(point_id, None)
                self.touched.pop(point_id, None)
        elif there is not None:
            more = {**(shape or {}), "owner_id": f"agt_n{self.count}"} if kind == "readers" else {}
            sides.set(name, point_id, **now, **more)
            if side == "new":
                after = plain(self.raw(name, point_id) or {})
                if point_id in self.own:
                    self.own[point_id] = after
                else:
                    before = self.touched.get(point_id)
                    self.touched[point_id] = after, kind == "readers" or (before is not None and before[1])

    def raw(self, name: str, point_id: Any) -> dict[str, Any] | None:
        found = self.sides.client.retrieve(name, [point_id], with_payload=True)
        return found[0].payload if found else None

    def demand(self) -> None:
        """That the new collection is what the rule says, after passes that found nothing more to do."""
        old, new = self.sides.points(self.sides.old), self.sides.points(self.sides.new)
        assert new.keys() == old.keys() | self.own.keys() | self.touched.keys()
        vectors = {name: self.sides.vectors(name) for name in (self.sides.old, self.sides.new)}
        for point_id, found in new.items():
            if point_id in self.own:
                assert plain(found) == plain(self.own[point_id])
            elif point_id in self.touched:
                stays, about_readers = self.touched[point_id]
                others = {key: value for key, value in stays.items() if key not in READERS}
                assert {key: value for key, value in plain(found).items() if key not in READERS} == others
                if about_readers:
                    assert readers(found) == readers(stays)
                elif point_id in old:
                    assert readers(found) == readers(old[point_id])
            else:
                assert plain(found) == plain(old[point_id])
                assert vectors[self.sides.new][point_id] == vectors[self.sides.old][point_id]


def plain(made: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in made.items() if value is not None and key != MARKER}


def readers(made: dict[str, Any]) -> dict[str, Any]:
    return {key: made[key] for key in READERS if made.get(key) is not None}


def interrupted(world: World, writes: dict[int, list[Any]], kill: tuple[int, bool] | None) -> type[Session]:
    """A session in which applications write before its n-th request about points, and that a kill may end there."""

    lock = threading.Lock()

    class Interrupted(Session):
        number = 0

        def send(self, method: str, path: str, content: bytes | None, collection: str) -> Json:
            if "/points" not in path:
                return super().send(method, path, content, collection)
            with lock:  # both sides are read in threads of their own
                here, Interrupted.number = Interrupted.number, Interrupted.number + 1
                for write in writes.get(here, ()):
                    world.write(*write)
                if kill is not None and kill[0] == here and not kill[1]:
                    raise Killed
                answer = super().send(method, path, content, collection)
                if kill is not None and kill[0] == here:
                    raise Killed
                return answer

    return Interrupted


@settings(
    max_examples=30, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    st.sampled_from([BEGUN, BEGUN, []]),
    st.lists(st.one_of(WRITES, WRITES, PASS), min_size=2, max_size=10),
    st.sampled_from([1, 2, 500]),
)
@example(BEGUN, [("note", "new", 1, None), ("readers", "old", 1, SHAPE)], 500)
@example(BEGUN, [*NOTED, ("pass", {n: [("note", "new", IDS[n - 2], None)] for n in (2, 3, 4)}, None)], 500)
@example(BEGUN, [*NOTED, ("pass", {3: [("readers", "new", 1, SHAPE), ("delete", "new", 2, None)]}, None)], 500)
@example(BEGUN, [("delete", "old", 1, None), ("pass", {3: [("note", "new", 1, None)]}, (3, True))], 500)
@example([], [("put", "old", 1, SHAPE), ("pass", {3: [("put", "new", 1, SHAPE)]}, None)], 500)
def test_any_interleaving_ends_as_the_rule_says(
    sides: Sides, tmp_path: Path, begun: list[Any], story: list[Any], batch: int
) -> None:
    sides.clear()
    for path in sides.folder.iterdir() if sides.folder.exists() else ():
        path.unlink()
    sides.batch = batch
    world = World(sides)
    for event in [*begun, *story]:
        if event[0] != "pass":
            world.write(*event)
            continue
        with suppress(Killed):
            sides.run(passes=1, session=interrupted(world, event[1], event[2]))
    done = sides.run()
    assert done.details[sides.new]["caught_up"], done
    world.demand()
    checked = sides.check()
    assert checked.details[sides.new].get("clean"), checked
