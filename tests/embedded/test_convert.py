"""Models become the engine's objects by name, whole or not at all."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any

import pytest
import qdrant_edge as engine
from qdrant_client.http import models

from embedded.convert import build, engine_name, to_engine, to_json
from embedded.errors import Unsupported

# What only a JSON union needs, and what the endpoint keeps for its reports.
WITHOUT_ARGUMENT = {
    "OptimizersConfigDiff": {"memmap_threshold", "flush_interval_sec", "max_optimization_threads"},
}
MODELS = [
    models.KeywordIndexParams, models.IntegerIndexParams, models.FloatIndexParams, models.BoolIndexParams,
    models.GeoIndexParams, models.DatetimeIndexParams, models.UuidIndexParams, models.TextIndexParams,
    models.HnswConfigDiff, models.OptimizersConfigDiff, models.VectorParams, models.SearchParams, models.OrderBy,
    models.FieldCondition, models.ValuesCount, models.Range, models.DatetimeRange, models.GeoRadius,
    models.GeoBoundingBox, models.MinShould, models.Nested, models.Slice, models.ScalarQuantizationConfig,
    models.ProductQuantizationConfig, models.BinaryQuantizationConfig, models.TurboQuantQuantizationConfig,
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_of_a_model_is_an_argument_of_the_engines_class(model: Any):
    arguments = set(inspect.signature(getattr(engine, engine_name(model))).parameters)
    assert set(model.model_fields) - arguments - {"type"} == WITHOUT_ARGUMENT.get(model.__name__, set())


def enumerations() -> list[Any]:
    names = ["Distance", "Datatype", "MultiVectorComparator", "ScalarType", "CompressionRatio", "Direction",
             "Sample", "BinaryQuantizationEncoding", "BinaryQuantizationQueryEncoding", "TurboQuantBitSize",
             "UpdateMode", "PayloadSchemaType", "TokenizerType", "Language", "SnowballLanguage",
             "Memory"]  # fmt: skip
    return [member for name in names for member in getattr(models, name)]


@pytest.mark.parametrize("member", enumerations(), ids=str)
def test_every_member_of_an_enumeration_has_its_counterpart(member: Any):
    converted = to_engine(member)
    assert type(converted).__name__ == engine_name(type(member))
    assert to_json(converted).replace("_", "") == member.value.lower().replace("_", "")


def test_what_the_engine_has_no_class_or_argument_for_is_refused_by_name():
    with pytest.raises(Unsupported, match="Image"):
        to_engine(models.Image(image="x", model="m"))
    with pytest.raises(Unsupported, match="`flush_interval_sec` of OptimizersConfigDiff"):
        build("EdgeOptimizersConfig", models.OptimizersConfigDiff(flush_interval_sec=5))


def test_a_filter_keeps_every_clause():
    condition = models.Filter(
        must=[models.FieldCondition(key="a", match=models.MatchValue(value=True))],
        should=models.IsNullCondition(is_null=models.PayloadField(key="b")),
        must_not=[models.HasIdCondition(has_id=[1, "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"])],
        min_should=models.MinShould(conditions=[models.HasVectorCondition(has_vector="v")], min_count=1),
    )
    converted = to_engine(condition)
    assert converted.must[0].match.value is True
    assert converted.should[0].key == "b"
    assert len(converted.must_not[0].point_ids) == 2
    assert converted.min_should.min_count == 1


def test_a_time_keeps_its_zone():
    limits = models.DatetimeRange(gte=datetime(2026, 1, 1, tzinfo=UTC), lt="2026-01-02T00:00:00+02:00")
    converted = to_engine(limits)
    assert (converted.gte, converted.lt) == ("2026-01-01 00:00:00 UTC", "2026-01-01 22:00:00 UTC")
