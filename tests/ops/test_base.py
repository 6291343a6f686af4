"""Which collections a run is about: those that the settings look after, by name or by alias."""

from collections.abc import Iterator

import pytest
from qdrant_client import QdrantClient, models

from ops.budget import Budget
from ops.errors import CollectionGone, Unreachable
from ops.jobs.base import Context, Selection, collection_errors, collections_of, looked_after, reporting
from ops.report import JobReport
from ops.settings import Settings
from tests.support.memory import Memory, context_for, memory


@pytest.fixture(scope="module")
def two(qdrant: QdrantClient) -> Iterator[tuple[Memory, Memory]]:
    """Two collections; the alias `now_<name of the second>` names the second."""
    with memory(qdrant, indexes=()) as first, memory(qdrant, indexes=()) as second:
        create = models.CreateAlias(collection_name=second.name, alias_name=f"now_{second.name}")
        qdrant.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])
        yield first, second


def chosen(context: Context, selected: str | None = None) -> tuple[list[str], list[str]]:
    """The collections that a run goes through, and the problems it tells."""
    context.selection = Selection(collection=selected)
    report = JobReport(job="ttl", dry_run=True, started=context.now())
    return list(collections_of(context, report)), [problem.message for problem in report.problems]


def test_an_alias_that_is_included_is_followed(qdrant_url: str, two: tuple[Memory, Memory]) -> None:
    _, second = two
    alias = f"now_{second.name}"
    with context_for(qdrant_url, alias) as context:
        assert looked_after(context.session, context.settings.collections) == [second.name]
        assert chosen(context) == ([second.name], [])
        assert chosen(context, alias) == ([second.name], [])
        assert chosen(context, second.name) == ([second.name], [])


def test_an_alias_that_is_excluded_protects_what_it_names(qdrant_url: str, two: tuple[Memory, Memory]) -> None:
    first, second = two
    alias = f"now_{second.name}"
    with context_for(qdrant_url, first.name, second.name, collections={"exclude": [alias]}) as context:
        assert chosen(context) == ([first.name], [])
        names, problems = chosen(context, alias)
        assert names == []
        assert problems == [
            f"Collection '{second.name}' is not one the settings look after; nothing was done to it."
        ]


def test_a_name_that_is_not_there_is_told(qdrant_url: str, two: tuple[Memory, Memory]) -> None:
    with context_for(qdrant_url, two[0].name, "absent") as context:
        assert chosen(context) == ([two[0].name], [])
        assert chosen(context, "absent")[1] == ["Collection 'absent' is not on the server; nothing was done to it."]


def test_a_server_that_has_all_that_is_included_is_not_asked_for_aliases(
    qdrant_url: str, two: tuple[Memory, Memory]
) -> None:
    with context_for(qdrant_url, two[0].name) as context:
        looked_after(context.session, context.settings.collections)
        assert context.session.traffic.requests == 1
        context.settings = Settings(collections={"include": [f"now_{two[1].name}"]})
        looked_after(context.session, context.settings.collections)
        assert context.session.traffic.requests == 3


def test_a_run_knows_what_it_missed(qdrant_url: str, two: tuple[Memory, Memory]) -> None:
    first, second = (one.name for one in two)
    with context_for(qdrant_url, first, second) as context:
        with reporting("audit", context) as report:
            for name in collections_of(context, report):
                with collection_errors(name, report):
                    raise CollectionGone(name) if name == first else Unreachable("away")
        assert report.missed == {second}, "what is gone is not missed"
        context.budget = Budget(max_seconds=0)
        with reporting("audit", context) as report:
            assert list(collections_of(context, report)) == []
        assert report.missed == {first, second}
        with reporting("audit", context) as report:
            raise Unreachable("away")
        assert report.missed == {""}
