"""A query of the REST interface as one of the engine's: ids become vectors, strategies become scorers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import qdrant_edge as engine
from pydantic import BaseModel
from qdrant_client.http import models

from embedded import strict
from embedded.convert import to_engine
from embedded.errors import NotFound, Unsupported, WrongInput
from embedded.formula import formula
from embedded.parse import point_id
from embedded.points import sparse_vector
from embedded.storage import Collection, Store

_DEFAULT_LIMIT = 10
_DEFAULT_RRF_K = 2
_LISTS = frozenset({"query", "nearest", "target", "example"})
_SIDES = frozenset({"positive", "negative"})


def _floats(value: Any) -> Any:
    if isinstance(value, list):
        if value and all(isinstance(v, int | float) and not isinstance(v, bool) for v in value):
            return [float(v) for v in value]
        if value and all(isinstance(v, list) for v in value):
            return [_floats(v) for v in value]
    return value


_CONDITION_FIELDS = frozenset(
    {
        "key",
        "is_empty",
        "is_null",
        "has_id",
        "has_vector",
        "nested",
        "slice",
        "must",
        "should",
        "must_not",
        "min_should",
    }
)


def _expression_floats(node: Any) -> Any:
    if isinstance(node, int) and not isinstance(node, bool):
        return float(node)
    if isinstance(node, list):
        return [_expression_floats(item) for item in node]
    if isinstance(node, dict) and not _CONDITION_FIELDS & node.keys():
        return {name: _expression_floats(item) for name, item in node.items()}
    return node


def widen(node: Any, recommend: bool = False) -> Any:
    """Whole numbers in query vectors as floats, as JSON does not tell `1` from `1.0` and the models do."""
    if isinstance(node, list):
        return [widen(item) for item in node]
    if not isinstance(node, dict):
        return node
    wide = {}
    for name, value in node.items():
        new = value
        if name in _LISTS:
            new = _floats(value)
        elif name in _SIDES:
            new = [_floats(v) for v in value] if recommend and isinstance(value, list) else _floats(value)
        if name == "formula":
            new = _expression_floats(value)
        elif name != "filter":
            new = widen(new, name == "recommend")
        wide[name] = new
    return wide


class Builder:
    """Builds one request; remembers the points it was asked to start from, which are not to be found again."""

    def __init__(
        self, store: Store, collection: Collection, request: models.QueryRequest | models.Prefetch
    ) -> None:
        self._collection = collection
        self._using = request.using or ""
        self._source = collection
        self._source_vector = self._using
        if request.lookup_from is not None:
            self._source = store.get(request.lookup_from.collection)
            self._source_vector = request.lookup_from.vector or self._using
        self.mentioned: set[int | str] = set()

    def vector(self, value: Any) -> Any:
        """A vector, or that of the point whose id is given."""
        if isinstance(value, models.SparseVector):
            return sparse_vector(value.indices, value.values)
        if isinstance(value, list):
            return value
        if isinstance(value, BaseModel):
            raise Unsupported(f"inference: a query vector made by model `{getattr(value, 'model', '')}`")
        key = point_id(value)
        found = self._source.read(lambda shard: shard.retrieve([key], False, True))
        if not found:
            raise NotFound(f"No point with id {key} found")
        vectors: Any = found[0].vector
        if isinstance(vectors, dict):
            if self._source_vector not in vectors:
                raise WrongInput(
                    f"Vector with name {self._source_vector or 'default'} not found for point with id {key}"
                )
            vectors = vectors[self._source_vector]
        if self._source is self._collection:
            self.mentioned.add(key)
        return vectors

    def build(self, query: Any) -> Any:  # noqa: PLR0911 (a table of the kinds of query)
        """The engine's query; `None` where there is none (a scroll)."""
        if query is None:
            return None
        if isinstance(query, models.NearestQuery):
            if query.mmr is None:
                return self.nearest(query.nearest)
            return self._mmr(query)
        if isinstance(query, models.RecommendQuery):
            return self._recommend(query.recommend)
        if isinstance(query, models.DiscoverQuery):
            pairs = self._pairs(query.discover.context)
            return engine.Query.Discover(
                engine.DiscoverQuery(self.vector(query.discover.target), pairs), self._using
            )
        if isinstance(query, models.ContextQuery):
            return engine.Query.Context(engine.ContextQuery(self._pairs(query.context)), self._using)
        if isinstance(query, models.OrderByQuery):
            return order_by(query.order_by)
        if isinstance(query, models.FusionQuery):
            return engine.Fusion.Rrf(_DEFAULT_RRF_K) if query.fusion == models.Fusion.RRF else engine.Fusion.Dbsf()
        if isinstance(query, models.RrfQuery):
            return engine.Fusion.Rrf(_DEFAULT_RRF_K if query.rrf.k is None else query.rrf.k, query.rrf.weights)
        if isinstance(query, models.FormulaQuery):
            return engine.Formula(formula(query.formula), query.defaults)
        if isinstance(query, models.SampleQuery):
            return to_engine(query.sample)
        if isinstance(query, models.RelevanceFeedbackQuery):
            return self._feedback(query.relevance_feedback)
        return self.nearest(query)

    def nearest(self, value: Any) -> Any:
        """Nearest neighbours of a vector or of a point."""
        return engine.Query.Nearest(self.vector(value), self._using)

    def _mmr(self, query: models.NearestQuery) -> Any:
        mmr = query.mmr or models.Mmr()
        diversity = 0.5 if mmr.diversity is None else mmr.diversity
        limit = _DEFAULT_LIMIT if mmr.candidates_limit is None else mmr.candidates_limit
        return engine.Mmr(self.vector(query.nearest), 1.0 - diversity, limit, self._using)

    def _recommend(self, query: models.RecommendInput) -> Any:
        positives = [self.vector(item) for item in query.positive or []]
        negatives = [self.vector(item) for item in query.negative or []]
        if query.strategy in (None, models.RecommendStrategy.AVERAGE_VECTOR):
            if not positives:
                raise WrongInput("At least one positive vector ID required with this strategy")
            if any(not isinstance(v, list) for v in positives + negatives):
                raise Unsupported("recommend by average of sparse vectors")
            mean = np.mean(np.asarray(positives, dtype=np.float32), axis=0)
            if negatives:
                mean = mean + mean - np.mean(np.asarray(negatives, dtype=np.float32), axis=0)
            return engine.Query.Nearest(mean.tolist(), self._using)
        if not positives and not negatives:
            raise WrongInput("At least one positive or negative vector ID required")
        examples = engine.RecommendQuery(positives, negatives)
        if query.strategy == models.RecommendStrategy.BEST_SCORE:
            return engine.Query.RecommendBestScore(examples, self._using)
        return engine.Query.RecommendSumScores(examples, self._using)

    def _pairs(self, context: Any) -> list[engine.ContextPair]:
        pairs = context if isinstance(context, list) else [context]
        return [engine.ContextPair(self.vector(p.positive), self.vector(p.negative)) for p in pairs]

    def _feedback(self, query: models.RelevanceFeedbackInput) -> Any:
        items = [engine.FeedbackItem(self.vector(f.example), f.score) for f in query.feedback]
        strategy = to_engine(query.strategy.naive)
        return engine.Query.FeedbackNaive(
            engine.FeedbackNaiveQuery(self.vector(query.target), items, strategy), self._using
        )


def order_by(value: Any) -> engine.OrderBy:
    """An order, given as a key or in full."""
    order: engine.OrderBy = to_engine(models.OrderBy(key=value) if isinstance(value, str) else value)
    return order


def _without(condition: models.Filter | None, ids: Iterable[int | str]) -> Any:
    """The filter, and none of the points that the query started from."""
    excluded: set[Any] = set(ids)
    mine = None if condition is None else to_engine(condition)
    if not excluded:
        return mine
    others = engine.Filter(must_not=[engine.HasIdCondition(excluded)])
    return others if mine is None else engine.Filter(must=[mine, others])


def _prefetches(
    store: Store, collection: Collection, value: Any
) -> tuple[list[engine.Prefetch] | None, set[int | str]]:
    if value is None:
        return None, set()
    mentioned: set[int | str] = set()
    built = []
    for item in value if isinstance(value, list) else [value]:
        strict.check_filter(collection, item.filter)
        strict.check_limit(collection, item.limit)
        strict.check_params(collection, item.params)
        builder = Builder(store, collection, item)
        inner, _ = _prefetches(store, collection, item.prefetch)
        scorer = builder.build(item.query)
        built.append(
            engine.Prefetch(
                limit=_DEFAULT_LIMIT if item.limit is None else item.limit,
                query=scorer,
                prefetches=inner,
                params=None if item.params is None else to_engine(item.params),
                filter=_without(item.filter, builder.mentioned),
                score_threshold=item.score_threshold,
            )
        )
        mentioned |= builder.mentioned
    return built, mentioned


def query_request(
    store: Store, collection: Collection, request: models.QueryRequest, limited: bool = True
) -> engine.QueryRequest:
    """The engine's request; strict mode is checked on the way, prefetches included."""
    strict.check_filter(collection, request.filter)
    if limited:
        strict.check_limit(collection, request.limit)
    strict.check_params(collection, request.params)
    builder = Builder(store, collection, request)
    prefetches, _ = _prefetches(store, collection, request.prefetch)
    scorer = builder.build(request.query)
    return engine.QueryRequest(
        limit=_DEFAULT_LIMIT if request.limit is None else request.limit,
        offset=request.offset or 0,
        query=scorer,
        prefetches=prefetches,
        with_vector=to_engine(request.with_vector) if request.with_vector is not None else False,
        with_payload=to_engine(request.with_payload) if request.with_payload is not None else False,
        filter=_without(request.filter, builder.mentioned),
        score_threshold=request.score_threshold,
        params=None if request.params is None else to_engine(request.params),
    )
