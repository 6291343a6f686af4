"""The alias over and back: only when all is right, what comes late, and that nothing deleted comes back."""

from __future__ import annotations

import pytest
from qdrant_client import QdrantClient

from comemory import Principal, can_read, read_filter
from comemory.rollover import MARKER
from ops.errors import OpsError
from ops.jobs.base import Context
from ops.rollover.finish import finish
from ops.rollover.pair import open_pair
from ops.rollover.run import clean
from ops.rollover.state import LATE, State
from ops.rollover.switch import back, find_alias, is_switched, look_back, prepare
from ops.session import Session
from ops.settings import Settings
from tests.conftest import SERVER_KEY
from tests.rollover.sides import Sides, payload, reasons
from tests.support.memory import memory


def test_a_check_that_is_not_clean_leaves_the_alias(sides: Sides) -> None:
    sides.put(sides.old, 1, payload())
    sides.removals = 0
    sides.run()
    sides.delete(sides.old, 1)
    with sides.work() as work:
        report = prepare(work, Settings())
        assert not clean(report, work)
    assert "1 of the copies have no point" in report.problems[0].message
    assert [line["right"] for line in report.details[sides.new]["counts"]] == [False]
    assert set(sides.points(sides.new)) == {1} and sides.target() == sides.old


def test_what_reached_the_old_one_until_the_switch_is_brought_over(sides: Sides) -> None:
    for number in range(6):
        sides.put(sides.old, number, payload(visibility="public"))

    def late() -> None:
        sides.put(sides.old, 10, payload())
        sides.set(sides.old, 0, visibility="private")
        sides.delete(sides.old, 1)

    before, done = sides.switch(between=late)
    assert before.details[sides.new]["clean"]
    assert sides.target() == sides.new
    assert reasons(done) == {"copied": 1, "payload updated": 1, "removed, the old one is gone": 1}
    assert sides.points(sides.new) == sides.points(sides.old)


def test_what_was_deleted_from_the_new_one_after_the_switch_never_comes_back(sides: Sides) -> None:
    for number in range(4):
        sides.put(sides.old, number, payload())
    sides.switch(between=lambda: sides.put(sides.old, 4, payload()))
    sides.delete(sides.new, 0, 4)
    sides.set(sides.old, 0, tags=["changed"])
    sides.put(sides.old, 5, payload())
    done = sides.after()
    assert reasons(done) == {"copied": 1, "left out: deleted from the new one": 2}
    assert set(sides.points(sides.new)) == {1, 2, 3, 5}
    assert reasons(sides.run()) == {"left out: deleted from the new one": 2}
    assert sides.check().details[sides.new]["clean"]


def test_without_the_list_of_the_switch_nothing_is_brought_over(sides: Sides) -> None:
    sides.put(sides.old, 1, payload())
    sides.run()
    sides.point(sides.new)
    for path in sides.folder.iterdir():
        path.unlink()
    report = sides.run()
    assert (report.outcome, report.handled) == ("failed", 0)
    assert "Name the --state that the switch was made with" in report.problems[0].message


def test_the_way_back_says_what_only_the_new_one_has(sides: Sides) -> None:
    for number in range(4):
        sides.put(sides.old, number, payload())
    sides.switch()
    sides.put(sides.new, 10, payload())
    sides.set(sides.new, 0, visibility="private")
    sides.set(sides.new, 1, seen=1)
    sides.delete(sides.new, 2)
    with sides.work(reading=True) as work:
        report = look_back(work, Settings())
    assert reasons(report) == {
        "kept: written to the new one": 1, "kept: has other readers than the old one": 1,
        "kept: changed in the new one": 1, "left out: deleted from the new one": 1,
    }  # fmt: skip


def test_the_alias_is_found_or_the_sentence_says_what_to_do(sides: Sides) -> None:
    with Session(sides.url, api_key=SERVER_KEY, retry_for=30) as session:
        assert find_alias(session, sides.old, sides.new, None) == sides.alias
        assert find_alias(session, sides.new, sides.old, sides.alias) == sides.alias
        with pytest.raises(OpsError, match=r"There is no alias 'nobody' .* a rollover makes none.* `pulumi up`"):
            find_alias(session, sides.old, sides.new, "nobody")
        with pytest.raises(OpsError, match="neither other nor another; it is left alone"):
            find_alias(session, "other", "another", sides.alias)
        with pytest.raises(OpsError, match=r"'other' has none\. Name it with --alias"):
            find_alias(session, "other", "another", None)


def test_finish_takes_the_markers_and_nothing_else(sides: Sides) -> None:
    for number in range(5):
        sides.put(sides.old, number, payload())
    sides.put(sides.new, 9, {**payload(), MARKER: {"of": "cm_text_4_v1"}})
    sides.switch()
    before = sides.points(sides.new)
    with Session(sides.url, api_key=SERVER_KEY, retry_for=30) as session:
        pair = open_pair(session, sides.old, sides.new, vectors=False)
        foretold = finish(Context(session, Settings(), dry_run=True), pair, batch=2)
        assert len(sides.markers()) == 6
        done = finish(Context(session, Settings()), pair, batch=2)
    assert (foretold.found, foretold.handled, done.found, done.handled) == (5, 0, 5, 5)
    assert sides.markers() == {9: {"of": "cm_text_4_v1"}}
    assert sides.points(sides.new) == before
    sides.delete(sides.old, 0)
    assert sides.run().handled == 0 and sides.points(sides.new) == before


def test_everybody_reads_the_same_on_both_sides(sides: Sides) -> None:
    people = [
        Principal.agent("t_a", "agt_a"), Principal.agent("t_a", "agt_b", team_ids=["team_b"]),
        Principal.user("t_a", "user_a"), Principal.agent("t_b", "agt_a", role_ids=["role_a"]),
    ]  # fmt: skip
    for number in range(36):
        acl = {"read_team_ids": ["team_b"]} if number % 5 == 0 else {"read_role_ids": ["role_a"]}
        sides.put(
            sides.old, number,
            payload(
                tenant_id=("t_b", "t_a")[number % 2], visibility=("public", "private", "confidential")[number % 3],
                owner_id=("agt_a", "agt_b")[number % 4 // 2], team_id=(None, "team_b")[number % 7 % 2],
                acl=acl if number % 11 else "broken",
            ),
        )  # fmt: skip
    sides.run()
    for number in range(0, 36, 4):
        sides.set(sides.old, number, visibility="private", owner_id="agt_b")
    sides.set(sides.new, 8, seen=1)
    sides.switch()
    served = 0
    with Session(sides.url, api_key=SERVER_KEY, retry_for=30) as session:
        for who in people:
            old, new = (
                {point["id"] for page in session.scroll(name, read_filter(who)) for point in page}
                for name in (sides.old, sides.new)
            )
            assert old == new == {i for i, one in sides.points(sides.new).items() if can_read(one, who)}
            served += len(new)
    assert served > 20


def test_a_late_copy_that_a_kill_kept_from_the_list_does_not_come_back_either(sides: Sides) -> None:
    sides.put(sides.old, 1, payload())
    sides.switch()
    sides.put(sides.old, 2, payload())
    sides.put(sides.old, 3, payload())
    sides.put(sides.new, 3, payload(tags=["own"]))
    sides.after()
    (sides.folder / LATE).unlink()  # as if it had been killed between the copy and its entry
    sides.after()
    sides.delete(sides.new, 2, 3)
    assert reasons(sides.after()) == {"left out: deleted from the new one": 2}
    assert set(sides.points(sides.new)) == {1}


def test_what_only_the_new_one_has_wins_when_it_is_switched_again(sides: Sides) -> None:
    for number in range(3):
        sides.put(sides.old, number, payload())
    sides.switch()
    sides.put(sides.new, 9, payload(tags=["own"]))
    sides.set(sides.new, 0, tags=["touched"])
    with sides.work() as work:
        back(work.pair.session, work.state, sides.alias, sides.old, sides.new)
    assert sides.target() == sides.old
    sides.set(sides.old, 0, tags=["later"])
    sides.set(sides.old, 1, tags=["later"])
    before, after = sides.switch()
    assert before.details[sides.new]["clean"] and after.outcome == "success" and sides.target() == sides.new
    found = sides.points(sides.new)
    assert [found[number].get("tags") for number in (0, 1, 2, 9)] == [["touched"], ["later"], None, ["own"]]


def test_an_alias_that_went_on_to_a_third_collection_is_left_alone(sides: Sides, qdrant: QdrantClient) -> None:
    sides.put(sides.old, 1, payload())
    sides.switch()
    with memory(qdrant) as third:
        sides.point(third.name)
        with pytest.raises(OpsError, match=f"names {third.name} by now: this rollover is over"):
            sides.run()
        with (
            State(sides.folder, sides.url, sides.old, sides.new) as state,
            Session(sides.url, api_key=SERVER_KEY, retry_for=30) as session,
            pytest.raises(OpsError, match=r"neither .* it is left alone"),
        ):
            back(session, state, sides.alias, sides.old, sides.new)
        assert sides.target() == third.name
        sides.point(sides.new)


def test_where_the_alias_is_gone_nothing_deleted_is_copied_again(sides: Sides) -> None:
    with Session(sides.url, api_key=SERVER_KEY, retry_for=30) as session:
        assert is_switched(session, "cm_text_4_v1", "cm_text_4_v2", "no_such_alias")
        assert not is_switched(session, "cm_text_4_v1", "cm_text_4_v2", None)
        assert not is_switched(session, sides.old, sides.new, "no_such_alias")


def test_who_asked_to_stop_is_not_switched(sides: Sides) -> None:
    sides.put(sides.old, 1, payload())
    sides.run()
    for dry_run in (False, True):
        with sides.work(reading=dry_run) as work:
            work.progress = lambda _: sides.stop.set()
            report = prepare(work, Settings())
            assert (report.stopped, report.outcome, clean(report, work)) == ("asked to stop", "partial", False)
        sides.stop.clear()
    assert sides.target() == sides.old


def test_a_collection_that_lacks_an_index_is_not_switched_to(sides: Sides) -> None:
    sides.put(sides.old, 1, payload())
    sides.client.delete_payload_index(sides.new, "tags", wait=True)
    try:
        with sides.work() as work:
            report = prepare(work, Settings())
            assert not clean(report, work)
        assert f"{sides.new} has no index on tags as {sides.old} has" in report.problems[0].message
        assert sides.points(sides.new) == sides.points(sides.old)
    finally:
        sides.client.create_payload_index(sides.new, "tags", "keyword", wait=True)
