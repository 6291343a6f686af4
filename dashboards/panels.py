"""Panels as values, and how they become Grafana's: every one has a title, a description, a unit and thresholds.

A description says what the numbers are and what to do about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeVar

from grafana_foundation_sdk.builders import bargauge, stat, table, timeseries
from grafana_foundation_sdk.builders import common as shared
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import prometheus as prom
from grafana_foundation_sdk.models import common as shape
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as query_model

from dashboards.variables import DATASOURCE, Variable

TAG: Final = "comemory"
GREEN, YELLOW, RED, BLUE = "green", "orange", "red", "blue"

Steps = Sequence[tuple[float | None, str]]
"""From which value on which colour; the first value is None."""

PLAIN: Final[Steps] = ((None, BLUE),)
"""Of a number that is neither good nor bad."""

NONE_IS_GOOD: Final[Steps] = ((None, GREEN), (1, YELLOW))
NONE_MAY_BE: Final[Steps] = ((None, GREEN), (1, RED))
ONE_IS_GOOD: Final[Steps] = ((None, RED), (1, GREEN))
ONE_ONLY: Final[Steps] = ((None, RED), (1, GREEN), (2, YELLOW))

SMALL, HALF, WHOLE_ROW = 4, 12, 24


def rising(warning: float, critical: float | None = None) -> Steps:
    """Green, then orange, then red."""
    steps: list[tuple[float | None, str]] = [(None, GREEN), (warning, YELLOW)]
    return steps if critical is None else [*steps, (critical, RED)]


def falling(warning: float, critical: float) -> Steps:
    """Red below `critical`, orange below `warning`, else green."""
    return [(None, RED), (critical, YELLOW), (warning, GREEN)]


@dataclass(frozen=True, slots=True)
class Query:
    """One query; `legend` names each series by its labels, or the column in a table."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Args:
        kind: How it looks. All but `lines` show the value of now.
        title, description, unit: What the reader sees; the unit is one of Grafana's.
        queries: What it asks.
        steps: From which value on it has which colour.
        width, height: In Grafana's grid of 24 columns.
        words: Words for values, such as 1: up.
        stacked: Whether lines stand on each other.
        links: By title, where a click leads.
        units: By column of a table, units other than `unit`.
        colours: By column of a table, its steps.
        decimals: Digits after the point; by default as many as it takes.
    """

    kind: Literal["number", "lines", "bars", "table"]
    title: str
    description: str
    unit: str
    queries: Sequence[Query]
    steps: Steps = PLAIN
    width: int = SMALL
    height: int = 4
    words: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    stacked: bool = False
    links: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    units: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    colours: Mapping[str, Steps] = field(default_factory=lambda: MappingProxyType({}))
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A heading and the panels under it."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    description: str
    variables: Sequence[Variable]
    rows: Sequence[Row]
    since: str = "now-24h"


def number(title: str, description: str, unit: str, expression: str, steps: Steps = PLAIN, **more: object) -> Panel:
    """One large number."""
    return Panel("number", title, description, unit, [Query(expression)], steps, **more)  # type: ignore[arg-type]


def lines(
    title: str, description: str, unit: str, queries: Sequence[Query], steps: Steps = PLAIN, **more: object
) -> Panel:
    """Lines over time."""
    return Panel("lines", title, description, unit, queries, steps, **{"width": HALF, "height": 8, **more})  # type: ignore[arg-type]


def bars(
    title: str, description: str, unit: str, queries: Sequence[Query], steps: Steps = PLAIN, **more: object
) -> Panel:
    """A bar for each series, as it is now."""
    return Panel("bars", title, description, unit, queries, steps, **{"width": HALF, "height": 8, **more})  # type: ignore[arg-type]


def rows(title: str, description: str, unit: str, queries: Sequence[Query], **more: object) -> Panel:
    """A table with a row for each set of labels, and a column for each query."""
    return Panel("table", title, description, unit, queries, **{"width": WHOLE_ROW, "height": 8, **more})  # type: ignore[arg-type]


def dashboard(board: Board) -> model.Dashboard:
    """The dashboard in Grafana's own model, with panels numbered in their order."""
    made = (
        build.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags([TAG])
        .readonly()
        .refresh("1m")
        .time(board.since, "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .variables(list(board.variables))
        .link(
            build.DashboardLink("Co-Memory")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(False)
            .include_vars(True)
            .keep_time(True)
        )
    )
    for row in board.rows:
        made.with_row(build.Row(row.title))
        for panel in row.panels:
            made.with_panel(_MAKERS[panel.kind](panel))
    built = made.build()
    for place, one in enumerate(built.panels or [], start=1):
        one.id_val = place
    return built


_B = TypeVar("_B", stat.Panel, timeseries.Panel, bargauge.Panel, table.Panel)


def _number(panel: Panel) -> stat.Panel:
    made = _common(stat.Panel(), panel)
    made.color_mode(shape.BigValueColorMode.VALUE).graph_mode(shape.BigValueGraphMode.NONE)
    made.reduce_options(_last())
    return made


def _lines(panel: Panel) -> timeseries.Panel:
    made = _common(timeseries.Panel(), panel)
    made.min(0).line_width(1).fill_opacity(25 if panel.stacked else 8).show_points(shape.VisibilityMode.NEVER)
    made.color_scheme(build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    made.legend(
        shared.VizLegendOptions()
        .display_mode(shape.LegendDisplayMode.LIST)
        .placement(shape.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    made.tooltip(shared.VizTooltipOptions().mode(shape.TooltipDisplayMode.MULTI).sort(shape.SortOrder.DESCENDING))
    if panel.stacked:
        made.stacking(shared.StackingConfig().mode(shape.StackingMode.NORMAL))
    if len(panel.steps) > 1:
        made.thresholds_style(shared.GraphThresholdsStyleConfig().mode(shape.GraphThresholdsStyleMode.DASHED))
    return made


def _bars(panel: Panel) -> bargauge.Panel:
    made = _common(bargauge.Panel(), panel)
    made.min(0).orientation(shape.VizOrientation.HORIZONTAL).display_mode(shape.BarGaugeDisplayMode.BASIC)
    made.reduce_options(_last())
    return made


def _table(panel: Panel) -> table.Panel:
    made = _common(table.Panel(), panel)
    made.show_header(True).filterable(True)
    columns = {f"Value #{_ref(n)}": query.legend for n, query in enumerate(panel.queries)}
    columns |= {"Value": panel.queries[0].legend} if len(panel.queries) == 1 else {}
    made.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    made.with_transformation(
        model.DataTransformerConfig(
            id_val="organize",
            options={"excludeByName": {"Time": True}, "renameByName": columns, "indexByName": {}},
        )
    )
    for column in [*panel.units, *(c for c in panel.colours if c not in panel.units)]:
        properties = []
        if column in panel.units:
            properties.append(model.DynamicConfigValue(id_val="unit", value=panel.units[column]))
        if column in panel.colours:
            steps = [{"value": value, "color": colour} for value, colour in panel.colours[column]]
            properties.append(
                model.DynamicConfigValue(id_val="thresholds", value={"mode": "absolute", "steps": steps})
            )
            properties.append(model.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}))
        made.override_by_name(column, properties)
    return made


_MAKERS: Final = {"number": _number, "lines": _lines, "bars": _bars, "table": _table}


def _common(made: _B, panel: Panel) -> _B:
    made.title(panel.title).description(panel.description).unit(panel.unit).datasource(DATASOURCE)
    made.span(panel.width).height(panel.height)
    made.thresholds(
        build.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=colour) for value, colour in panel.steps])
    )
    if panel.decimals is not None:
        made.decimals(panel.decimals)
    if panel.words:
        results = {
            value: model.ValueMappingResult(text=text, color=colour)
            for value, (text, colour) in panel.words.items()
        }
        made.mappings([model.ValueMap(options=results)])
    if panel.links:
        made.data_links([build.DashboardLink(title).url(url) for title, url in panel.links.items()])
    made.targets([_target(query, n, panel) for n, query in enumerate(panel.queries)])
    return made


def _target(query: Query, place: int, panel: Panel) -> prom.Dataquery:
    made = prom.Dataquery().expr(query.expression).ref_id(_ref(place)).datasource(DATASOURCE)
    if panel.kind == "table":
        return made.instant().format(query_model.PromQueryFormat.TABLE)
    made.legend_format(query.legend or "__auto")
    return made.range() if panel.kind == "lines" else made.instant()


def _ref(place: int) -> str:
    return chr(ord("A") + place)


def _last() -> shared.ReduceDataOptions:
    return shared.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
