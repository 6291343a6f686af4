"""Formulas of a query as the engine's expressions, by the name of the operation."""

from __future__ import annotations

from typing import Any

import qdrant_edge as engine
from qdrant_client.http import models

from embedded.convert import to_engine

_DECAYS = {"lin_decay": "Lin", "exp_decay": "Exp", "gauss_decay": "Gauss"}
_CONDITIONS = (
    models.FieldCondition, models.IsEmptyCondition, models.IsNullCondition, models.HasIdCondition,
    models.HasVectorCondition, models.SliceCondition, models.NestedCondition, models.Filter,
)  # fmt: skip


def formula(value: Any) -> engine.Expression:
    """The expression of a number, a name, a condition or an operation on expressions."""
    if isinstance(value, int | float):
        return engine.Expression.Constant(float(value))
    if isinstance(value, str):
        return engine.Expression.Variable(value)
    if isinstance(value, _CONDITIONS):
        return engine.Expression.Condition(to_engine(value))
    # Every other model has one field: the operation, whose value is its argument or arguments.
    (name,) = type(value).model_fields
    argument = getattr(value, name)
    if name in _DECAYS:
        target = None if argument.target is None else formula(argument.target)
        kind = getattr(engine.DecayKind, _DECAYS[name])
        return engine.Expression.Decay(kind, formula(argument.x), target, argument.midpoint, argument.scale)
    make = getattr(engine.Expression, "".join(part.capitalize() for part in name.rstrip("_").split("_")))
    expression: engine.Expression
    if name == "geo_distance":
        expression = make(to_engine(argument.origin), argument.to)
    elif name in {"datetime", "datetime_key"}:
        expression = make(argument)
    elif name == "div":
        expression = make(formula(argument.left), formula(argument.right), argument.by_zero_default)
    elif isinstance(argument, list):
        expression = make([formula(item) for item in argument])
    elif isinstance(argument, models.PowParams):
        expression = make(formula(argument.base), formula(argument.exponent))
    else:
        expression = make(formula(argument))
    return expression
