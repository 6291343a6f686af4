"""Passes between two real collections: what is brought over, and what stays as applications wrote it."""

from __future__ import annotations

from collections.abc import Sequence

from ops.rollover.embedding import Embedder
from ops.rollover.pair import Anew
from tests.rollover.sides import Sides, payload, reasons


def test_everything_is_copied_and_the_pass_after_finds_nothing(sides: Sides) -> None:
    for number in range(7):
        sides.put(sides.old, number, payload(tenant_id=f"t_{number % 2}", note=[number, None, {"a": 1.0}]))
    sides.put(sides.old, "8a5f1c1e-0000-4000-8000-000000000001", payload())
    sides.batch = 3
    foretold = sides.dry_run()
    assert sides.points(sides.new) == {} and not sides.folder.exists()
    done = sides.run()
    assert (done.handled, done.outcome, done.problems) == (8, "success", [])
    assert reasons(foretold) == reasons(done) == {"copied": 8}
    assert [row.tenant for row in foretold.rows] == [row.tenant for row in done.rows]
    assert done.details[sides.new]["passes"] == [8, 0]
    assert sides.points(sides.new) == sides.points(sides.old)
    assert sides.vectors(sides.new) == sides.vectors(sides.old)
    stored = sides.markers()
    assert sides.run().handled == 0
    assert sides.markers() == stored
    checked = sides.check()
    assert checked.details[sides.new]["clean"] and checked.rows == []


def test_what_changed_or_went_in_the_old_one_is_brought_over(sides: Sides) -> None:
    for number in range(4):
        sides.put(sides.old, number, payload(visibility="public", team_id="team_a"))
    sides.run()
    sides.set(sides.old, 0, visibility="private")
    sides.client.delete_payload(sides.old, ["team_id"], [1], wait=True)
    sides.put(sides.old, 2, payload(tags=["new"]), number=99)
    sides.delete(sides.old, 3)
    assert not sides.check().details[sides.new]["clean"]
    done = sides.run()
    assert reasons(done) == {
        "payload updated": 2, "payload and vectors updated": 1, "removed, the old one is gone": 1,
    }  # fmt: skip
    assert sides.points(sides.new) == sides.points(sides.old)
    assert sides.vectors(sides.new) == sides.vectors(sides.old)
    assert sides.check().details[sides.new]["clean"]


def test_what_applications_write_to_the_new_one_wins(sides: Sides) -> None:
    for number in range(6):
        sides.put(sides.old, number, payload(importance=0.1))
    sides.put(sides.new, 0, payload(importance=0.9))
    sides.run()
    sides.put(sides.new, 1, payload(importance=0.8))
    sides.set(sides.new, 2, importance=0.7)
    sides.put(sides.new, 100, payload(importance=0.6))
    copied = sides.client.retrieve(sides.new, [4], with_payload=True)[0].payload or {}
    sides.put(sides.new, 101, copied)
    for number in range(5):
        sides.set(sides.old, number, importance=0.2)
    sides.delete(sides.old, 1, 2, 4)
    done = sides.run()
    assert {number: one["importance"] for number, one in sides.points(sides.new).items()} == {
        0: 0.9, 1: 0.8, 2: 0.7, 3: 0.2, 5: 0.1, 100: 0.6, 101: 0.1,
    }  # fmt: skip
    assert reasons(done) == {
        "payload updated": 1, "removed, the old one is gone": 1, "kept: written to the new one": 3,
        "kept: changed in the new one, gone from the old one": 2,
    }  # fmt: skip
    assert sides.check().details[sides.new]["clean"]


def test_a_copy_that_was_touched_does_not_keep_readers_that_the_old_one_shut_out(sides: Sides) -> None:
    for number in range(3):
        sides.put(sides.old, number, payload(visibility="public", acl={"read_team_ids": ["team_b"]}))
    sides.run()
    sides.set(sides.new, 0, seen=1)
    sides.set(sides.new, 1, seen=1, visibility="confidential")
    for number in range(3):
        sides.client.delete_payload(sides.old, ["acl"], [number], wait=True)
        sides.set(sides.old, number, visibility="private", note="later")
    done = sides.run()
    found = sides.points(sides.new)
    assert (found[0]["visibility"], found[0].get("acl"), found[0]["seen"], "note" in found[0]) == (
        "private",
        None,
        1,
        False,
    )
    assert (found[1]["visibility"], found[1]["acl"]) == ("confidential", {"read_team_ids": ["team_b"]})
    assert found[2] == sides.points(sides.old)[2]
    assert reasons(done) == {
        "readers taken over": 1, "payload updated": 1, "kept: changed in the new one": 1,
        "kept: has other readers than the old one": 1,
    }  # fmt: skip
    assert sides.run().handled == 0


def test_who_reads_follows_where_there_is_no_text_for_new_vectors(sides: Sides) -> None:
    sides.anew, sides.embed = Anew("text", "counting"), lambda _: Embedder(Lengths(), 4)
    for number in range(3):
        sides.put(sides.old, number, payload(visibility="public", text="text"))
    sides.put(sides.old, 3, payload(text=" "))
    first = sides.run()
    assert reasons(first) == {"copied": 3, "left: no text to embed": 1}
    assert first.details[sides.new]["passes"] == [3, 0]
    before = sides.vectors(sides.new)
    sides.set(sides.old, 0, visibility="private", text="")
    sides.set(sides.old, 1, text=["no", "text"])
    done = sides.run()
    found = sides.points(sides.new)
    assert (found[0]["visibility"], found[0]["text"], found[1]["text"]) == ("private", "", ["no", "text"])
    assert sides.vectors(sides.new) == before
    assert reasons(done) == {"payload updated": 2, "left: no text to embed": 3}
    assert "3 of the points" in done.problems[0].message
    assert not sides.check().details[sides.new]["clean"]
    sides.set(sides.old, 0, text="a longer text")
    sides.set(sides.old, 1, text="text")
    sides.delete(sides.old, 3)
    done = sides.run()
    assert reasons(done) == {"payload and vectors updated": 1, "payload updated": 1}
    after = sides.vectors(sides.new)
    assert after[0] != before[0] and after[1] == before[1]
    assert sides.check().details[sides.new]["clean"]


class Lengths:
    """Embeds a text by its length."""

    what = "lengths"

    def __call__(self, texts: Sequence[str]) -> object:
        return [[float(len(text)), 1.0, 0.0, 0.0] for text in texts]

    def close(self) -> None:
        pass
