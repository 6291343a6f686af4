"""Pictures of the dashboards: each panel's queries, answered by a real Prometheus, drawn with matplotlib.

`make pictures` sets the stage, plays a few minutes on it, and writes one picture for each dashboard to
`docs/pictures/`. They show what an operator sees in Grafana: titles, units and data, not Grafana's own look.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from tools.dashboard_stage import ROOT, Stage, boards, filled_in, stage
from tools.prometheus import ensure

FOLDER: Final = ROOT / "docs" / "pictures"
COLUMNS, CELL, LOW = 24, 0.72, 0.46
COLOURS: Final = {"green": "#3a9d5d", "orange": "#e08a1e", "red": "#d0383e", "blue": "#3274b8"}
LINES: Final = ("#3274b8", "#e08a1e", "#3a9d5d", "#8f5bb0", "#d0383e", "#4fb3bf", "#b0803a", "#7a7a7a")
BACK, PANEL, INK, FAINT = "#f3f4f6", "#ffffff", "#24292e", "#8a929a"
MOST_LINES, MOST_ROWS = 8, 8
PALETTE = 64
"""Colours of a picture: its size on disk is a third of what it would be."""


def draw(board: dict[str, Any], scene: Stage, file: Path) -> None:
    """One picture of a dashboard."""
    shown = board["panels"]
    tall = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in shown)
    figure = plt.figure(figsize=(COLUMNS * CELL, tall * LOW + 0.6), dpi=72, facecolor=BACK)
    figure.text(
        0.008, 1 - 0.3 / figure.get_figheight(), board["title"], size=17, weight="bold", color=INK, va="center"
    )
    for panel in shown:
        _place(figure, panel, scene, tall)
    figure.savefig(file, facecolor=BACK)
    plt.close(figure)
    with Image.open(file) as drawn:
        few = drawn.convert("RGB").quantize(PALETTE)
    few.save(file, optimize=True)


def _place(figure: Figure, panel: dict[str, Any], scene: Stage, tall: int) -> None:
    at, high = panel["gridPos"], tall * LOW + 0.6
    left, width = at["x"] / COLUMNS, at["w"] / COLUMNS
    bottom, height = (tall - at["y"] - at["h"]) * LOW / high, at["h"] * LOW / high
    if panel["type"] == "row":
        title = panel["title"].replace("$tenant", "t_a")
        figure.text(left + 0.008, bottom + height / 2, title, size=13, weight="bold", color=INK, va="center")
        return
    gap_x, gap_y = 0.003, 0.05 / high
    frame = figure.add_axes((left + gap_x, bottom + gap_y, width - 2 * gap_x, height - 2 * gap_y), facecolor=PANEL)
    frame.set_xticks([])
    frame.set_yticks([])
    for spine in frame.spines.values():
        spine.set_color("#dcdfe3")
    unit = _UNIT_NAMES.get(panel["fieldConfig"]["defaults"]["unit"], "")
    top = 1 - 0.17 / (at["h"] * LOW)
    frame.text(0.012 * COLUMNS / at["w"] / 2, top, panel["title"], size=10, weight="bold", color=INK, va="center",
               transform=frame.transAxes)  # fmt: skip
    frame.text(1 - 0.012 * COLUMNS / at["w"] / 2, top, unit, size=9, color=FAINT, va="center", ha="right",
               transform=frame.transAxes)  # fmt: skip
    {"stat": _number, "timeseries": _lines, "bargauge": _bars, "table": _table}[panel["type"]](frame, panel, scene)


def _number(frame: Axes, panel: dict[str, Any], scene: Stage) -> None:
    found = scene.query(filled_in(panel["targets"][0]["expr"])) or []
    if not found:
        _nothing(frame)
        return
    value = float(found[0]["value"][1])
    defaults = panel["fieldConfig"]["defaults"]
    words = {k: v for m in defaults.get("mappings", []) for k, v in m["options"].items()}
    text = words.get(f"{value:g}", {}).get("text") or _written(value, defaults["unit"])
    frame.text(
        0.5, 0.4, text, size=24, color=_colour(panel, value), ha="center", va="center", transform=frame.transAxes
    )


def _lines(frame: Axes, panel: dict[str, Any], scene: Stage) -> None:
    found = _series(panel, scene)
    if not found:
        _nothing(frame)
        return
    inner = frame.inset_axes((0.09, 0.24, 0.89, 0.6))
    unit = panel["fieldConfig"]["defaults"]["unit"]
    end = max(moment for _, moments, _ in found for moment in moments)
    stacked = (panel["fieldConfig"]["defaults"]["custom"].get("stacking") or {}).get("mode") == "normal"
    if stacked:
        _stack(inner, found, end)
    else:
        for n, (name, moments, values) in enumerate(found):
            colour = LINES[n % len(LINES)]
            inner.plot([m - end for m in moments], values, color=colour, lw=1.6, label=name)
            inner.fill_between([m - end for m in moments], values, color=colour, alpha=0.07)
    inner.set_ylim(bottom=0)
    if inner.get_ylim()[1] < 1e-9:
        inner.set_ylim(0, 1)
    inner.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
    inner.yaxis.set_major_formatter(lambda value, _: _written(value, unit))
    inner.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5))
    inner.xaxis.set_major_formatter(lambda value, _: "now" if value == 0 else f"{value:.0f} s")
    inner.tick_params(labelsize=8, colors=FAINT, length=0)
    inner.grid(axis="y", color="#e7e9ec", lw=0.8)
    for side in ("top", "right", "left"):
        inner.spines[side].set_visible(False)
    inner.spines["bottom"].set_color("#dcdfe3")
    frame.legend(*inner.get_legend_handles_labels(), loc="lower left", ncols=4, fontsize=7.5,
                 frameon=False, labelcolor=INK, handlelength=1.2, columnspacing=1.0, borderaxespad=0.2)  # fmt: skip


def _stack(inner: Axes, found: Sequence[tuple[str, list[float], list[float]]], end: float) -> None:
    moments = sorted({moment for _, those, _ in found for moment in those})
    rows = []
    for _, those, values in found:
        known = dict(zip(those, values, strict=True))
        rows.append([known.get(moment, 0.0) for moment in moments])
    colours = [LINES[n % len(LINES)] for n in range(len(rows))]
    inner.stackplot(
        [m - end for m in moments], rows, labels=[name for name, *_ in found], colors=colours, alpha=0.75
    )


def _bars(frame: Axes, panel: dict[str, Any], scene: Stage) -> None:
    found = scene.query(filled_in(panel["targets"][0]["expr"])) or []
    if not found:
        _nothing(frame)
        return
    values = {_legend(panel["targets"][0], one["metric"]): float(one["value"][1]) for one in found}
    order = sorted(values, key=lambda name: (len(name), name), reverse=True)
    inner = frame.inset_axes((0.26, 0.1, 0.6, 0.7))
    places = range(len(order))
    colours = [_colour(panel, values[name]) for name in order]
    drawn = inner.barh(places, [values[name] for name in order], height=0.5, color=colours)
    inner.set_yticks(places, order)
    unit = panel["fieldConfig"]["defaults"]["unit"]
    inner.bar_label(drawn, [_written(values[name], unit) for name in order], size=10, color=INK, padding=5)
    inner.set_xlim(0, max([*values.values(), 1]) * 1.05)
    inner.set_xticks([])
    inner.tick_params(labelsize=9, colors=INK, length=0)
    for spine in inner.spines.values():
        spine.set_visible(False)


def _table(frame: Axes, panel: dict[str, Any], scene: Stage) -> None:
    units = {o["matcher"]["options"]: p["value"] for o in panel["fieldConfig"]["overrides"]
             for p in o["properties"] if p["id"] == "unit"}  # fmt: skip
    renamed = panel["transformations"][1]["options"]["renameByName"]
    columns = [renamed[f"Value #{target['refId']}"] for target in panel["targets"]]
    labels: list[str] = []
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for column, target in zip(columns, panel["targets"], strict=True):
        for one in scene.query(filled_in(target["expr"])) or []:
            labels = labels or sorted(one["metric"])
            key = tuple(one["metric"].get(label, "") for label in labels)
            unit = units.get(column, panel["fieldConfig"]["defaults"]["unit"])
            cells.setdefault(key, {})[column] = _written(float(one["value"][1]), unit)
    if not cells:
        _nothing(frame)
        return
    rows = [[*key, *(row.get(column, "") for column in columns)] for key, row in sorted(cells.items())][:MOST_ROWS]
    step = min(0.14, 0.78 / (len(rows) + 1))
    width = 0.97 / len(rows[0])
    for line, row in enumerate([[*labels, *columns], *rows]):
        for place, text in enumerate(row):
            frame.text(
                0.015 + place * width,
                0.78 - line * step,
                text,
                size=9,
                va="center",
                transform=frame.transAxes,
                color=FAINT if line == 0 else INK,
                weight="bold" if line == 0 else "normal",
            )


def _series(panel: dict[str, Any], scene: Stage) -> list[tuple[str, list[float], list[float]]]:
    found = []
    for target in panel["targets"]:
        for one in scene.query_range(filled_in(target["expr"])):
            numbers = [(float(m), float(v)) for m, v in one["values"] if math.isfinite(float(v))]
            if numbers:
                found.append((_legend(target, one["metric"]), [m for m, _ in numbers], [v for _, v in numbers]))
    return sorted(found)[:MOST_LINES]


def _legend(target: dict[str, Any], labels: dict[str, str]) -> str:
    text: str = target.get("legendFormat") or "__auto"
    if text == "__auto":
        return ", ".join(labels.values()) or "value"
    for name in set(_NAMES.findall(text)):
        text = text.replace(f"{{{{{name}}}}}", labels.get(name, ""))
    return text.replace("/collections/{collection_name}", "…").strip() or "value"


def _nothing(frame: Axes) -> None:
    frame.text(0.5, 0.42, "no data", size=11, color=FAINT, ha="center", va="center", transform=frame.transAxes)


def _colour(panel: dict[str, Any], value: float) -> str:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    passed = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return COLOURS[passed[-1]]


def _written(value: float, unit: str) -> str:
    if unit == "s" and abs(value) >= 120:
        for name, length in (("d", 86400), ("h", 3600), ("min", 60)):
            if abs(value) >= length * 2:
                return f"{value / length:.3g} {name}"
    if unit == "s" and 0 < abs(value) < 1:
        return f"{value * 1000:.3g} ms"
    if unit == "bytes":
        return f"{value / 2**20:.4g} MiB"
    if unit == "percentunit":
        return f"{value * 100:.3g}%"
    suffix = {"s": " s", "cps": "/s", "reqps": "/s"}.get(unit, "")
    return f"{value / 1000:.3g}k{suffix}" if abs(value) >= 10_000 else f"{value:.4g}{suffix}"


_NAMES: Final = re.compile(r"\{\{(\w+)\}\}")
_UNIT_NAMES: Final = {
    "s": "time", "bytes": "bytes", "cps": "per second", "reqps": "requests/s", "percentunit": "share",
    "short": "", "none": "",
}  # fmt: skip


def play(scene: Stage) -> None:
    """A minute of an ordinary day: memory grows, some of it expires, copies and odd payloads come in."""
    scene.put(300, 0)
    scene.put(90, 1000, ttl_days=3)
    scene.start_daemon()
    scene.start_prometheus()
    for turn in range(12):
        scene.put(40, 2000 + 40 * turn, ttl_days=20)
        if turn in (3, 4, 7, 8):
            scene.expire(30, 3000 + 30 * turn)
        if turn in (5, 6):
            scene.put(20, 4000 + 20 * turn, fingerprint="b" * 64, scope="memory", tenant_id="t_b")
        if turn == 8:
            scene.put(30, 5000, visibility="everyone")
        if turn == 9:
            scene.client.delete_payload_index("cm_text_4_v1", "team_id", wait=True)
        for _ in range(4):
            scene.client.query_points("cm_text_4_v1", query=[1.0, 0.0, 0.0, 0.0], using="dense", limit=5)
        time.sleep(4)


def main() -> int:
    """Write all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="comemory-pictures-") as folder, stage(Path(folder), ensure()) as scene:
        play(scene)
        for uid, board in boards().items():
            file = FOLDER / f"{uid.removeprefix('comemory-')}.png"
            draw(board, scene, file)
            print(f"wrote {file.relative_to(ROOT)} ({file.stat().st_size // 1024} KiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
