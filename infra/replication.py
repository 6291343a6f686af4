"""Whether the copies and shards of the declared collections fit the number of pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from comemory.declaration import CollectionSettings


def replication_problems(collections: Sequence[CollectionSettings], replicas: int, at: str) -> Iterator[str]:
    """One sentence per key that does not fit; `at` is the name of the list, such as `comemory:collections`."""
    for number, one in enumerate(collections):
        key = f"{at}[{number}]"
        factor = one.replication_factor
        if factor is None and replicas > 1:
            yield (
                f"{key}.replication_factor: is not given, so each point of {one.name} would be on one of the "
                f"{replicas} replicas alone and be gone with it; set 2 or more, or 1 if that is what you want"
            )
            continue
        copies = factor or 1
        if copies > replicas:
            yield (
                f"{key}.replication_factor: {copies} copies of {one.name} need {copies} replicas, and the cluster "
                f"has {replicas}; lower it, or raise comemory:cluster.replicas"
            )
        elif (one.write_consistency_factor or 1) > copies:
            yield (
                f"{key}.write_consistency_factor: {one.write_consistency_factor} copies of {one.name} would have "
                f"to acknowledge a write, but replication_factor makes {copies}; no write could succeed"
            )
        elif one.shard_number is not None and one.shard_number * copies < replicas:
            yield (
                f"{key}.shard_number: {one.shard_number} shards in {copies} copies leave "
                f"{replicas - one.shard_number * copies} of the {replicas} replicas without any part of "
                f"{one.name}; set at least {-(-replicas // copies)} (it is fixed once the collection exists)"
            )
