"""Copies and shards against replicas: each key that does not fit is named, with what to set."""

from __future__ import annotations

import pytest

from comemory.declaration import CollectionSettings
from infra.replication import replication_problems


def problems(replicas: int, **keys: int) -> list[str]:
    one = CollectionSettings(name="cm_text_4_v1", embedding_model="m", dimension=4, **keys)
    return list(replication_problems([one], replicas, "comemory:collections"))


@pytest.mark.parametrize(
    ("replicas", "keys"),
    [
        (1, {}),
        (1, {"replication_factor": 1, "write_consistency_factor": 1, "shard_number": 1}),
        (3, {"replication_factor": 1}),
        (3, {"replication_factor": 2, "write_consistency_factor": 2, "shard_number": 2}),
        (3, {"replication_factor": 3, "shard_number": 1}),
        (6, {"replication_factor": 2, "shard_number": 3}),
    ],
)
def test_what_fits(replicas: int, keys: dict[str, int]) -> None:
    assert problems(replicas, **keys) == []


@pytest.mark.parametrize(
    ("replicas", "keys", "key", "said"),
    [
        (3, {}, "replication_factor", "on one of the 3 replicas alone"),
        (1, {"replication_factor": 2}, "replication_factor", "2 copies of cm_text_4_v1 need 2 replicas"),
        (3, {"replication_factor": 4}, "replication_factor", "the cluster has 3"),
        (
            3, {"replication_factor": 2, "write_consistency_factor": 3}, "write_consistency_factor",
            "no write could succeed",
        ),
        (1, {"write_consistency_factor": 2}, "write_consistency_factor", "replication_factor makes 1"),
        (5, {"replication_factor": 2, "shard_number": 2}, "shard_number", "leave 1 of the 5 replicas"),
        (5, {"replication_factor": 2, "shard_number": 2}, "shard_number", "set at least 3"),
    ],
)  # fmt: skip
def test_what_does_not_fit(replicas: int, keys: dict[str, int], key: str, said: str) -> None:
    (told,) = problems(replicas, **keys)
    assert told.startswith(f"comemory:collections[0].{key}: ")
    assert said in told
