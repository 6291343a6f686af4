"""Pictures of the dashboards: each panel's queries, answered by a real Prometheus, drawn with matplotlib.

`make pictures` sets the stage, plays a minute or two on it, and writes one picture for each dashboard to
`docs/pictures/`. They show what an operator sees in Grafana: titles, units and data, not Grafana's own look. Rows
of panels of which the laptop endpoint has no data, such as those about replicas, are left out. No stage has a day:
what is compared with a day ago is compared with some seconds ago, and the panel says so.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from tools.dashboard_stage import A_DAY_AGO, COLLECTION, DAY, ROOT, Series, Stage, boards, filled_in, stage
from tools.prometheus import ensure

FOLDER: Final = ROOT / "docs" / "pictures"
COLUMNS, CELL, LOW, HEAD, DPI = 24, 0.5, 0.33, 0.5, 100
COLOURS: Final = {"green": "#2e8b57", "orange": "#d97706", "red": "#c92a2a", "blue": "#2563a8"}
LINES: Final = ("#2563a8", "#e08a1e", "#2e8b57", "#8250b4", "#c92a2a", "#2aa3b3", "#8a5a2b", "#6b7280")
BACK, PANEL, INK, FAINT, EDGE = "#f3f4f6", "#ffffff", "#1f2328", "#6e7781", "#d8dce1"
MOST_LINES, MOST_ROWS, FEW = 8, 12, 3
LAST = 60.0
"""Seconds that a picture shows."""

PALETTE = 240
"""Colours of a picture: its size on disk is half of what it would be."""

OTHER: Final = "cm_code_4_v1"
TENANTS: Final = {"t_helion": 5, "t_nutra": 3, "t_lexum": 2, "t_orbit": 1}
SCOPES: Final = {"docs": 5, "messages": 4, "memory": 3, "artifacts": 1, "signals": 2}
"""How many of a turn's points each gets."""

Line = tuple[str, list[float], list[float]]
Panel = dict[str, Any]


class Board:
    """One dashboard with the data of its panels as of one moment, and its rows that have some."""

    def __init__(self, board: dict[str, Any], scene: Stage, moment: float) -> None:
        self._scene, self._moment, self._uid = scene, moment, board["uid"]
        self.title = board["title"]
        self.rows = [(title, self._moved_up(panels)) for title, panels in self._rows(board["panels"])]
        self.rows = [(title, panels) for title, panels in self.rows if panels]

    def now(self, target: dict[str, Any]) -> list[Series]:
        """The series of a query at the moment."""
        return self._scene.query(self._filled_in(target), self._moment) or []

    def lines(self, panel: Panel) -> list[Line]:
        """A panel's largest series by name, times being seconds before the moment; a gap holds a NaN."""
        found = []
        for target in panel["targets"]:
            for one in self._scene.query_range(self._filled_in(target), self._moment - LAST, self._moment):
                numbers = [(float(m) - self._moment, float(v)) for m, v in one["values"] if math.isfinite(float(v))]
                if numbers:
                    found.append((legend(target, one["metric"]), *_with_gaps(numbers)))
        return sorted(sorted(found, key=_peak, reverse=True)[:MOST_LINES])

    def has_data(self, panel: Panel) -> bool:
        """Whether any of a panel's queries returns something."""
        if panel["type"] == "timeseries":
            return bool(self.lines(panel))
        return any(self.now(target) for target in panel["targets"])

    def _filled_in(self, target: dict[str, Any]) -> str:
        tenant = next(iter(TENANTS)) if self._uid.endswith("tenant") else ".*"
        return filled_in(target["expr"], self._uid, tenant)

    def _moved_up(self, panels: Sequence[Panel]) -> list[Panel]:
        """The panels without the lines of them that have no data, so that those below take their place."""
        kept: list[Panel] = []
        gone = 0
        for top in sorted({panel["gridPos"]["y"] for panel in panels}):
            line = [panel for panel in panels if panel["gridPos"]["y"] == top]
            if any(map(self.has_data, line)):
                kept += [{**one, "gridPos": {**one["gridPos"], "y": top - gone}} for one in line]
            else:
                gone += max(panel["gridPos"]["h"] for panel in line)
        return kept

    @staticmethod
    def _rows(panels: Sequence[Panel]) -> list[tuple[str, list[Panel]]]:
        rows: list[tuple[str, list[Panel]]] = []
        for panel in panels:
            if panel["type"] == "row":
                rows.append((panel["title"].replace("$tenant", next(iter(TENANTS))), []))
            else:
                rows[-1][1].append(panel)
        return rows


def draw(board: Board, file: Path) -> None:
    """One picture of a dashboard."""
    tall = sum(1 + _height(panels) for _, panels in board.rows)
    high = tall * LOW + HEAD
    figure = plt.figure(figsize=(COLUMNS * CELL, high), dpi=DPI, facecolor=BACK)
    figure.text(0.01, 1 - HEAD / 2 / high, board.title, size=15, weight="bold", color=INK, va="center")
    under = 0
    for title, panels in board.rows:
        middle = 1 - (HEAD + (under + 0.5) * LOW) / high
        figure.text(0.01, middle, title, size=11, weight="bold", color=INK, va="center")
        top = under + 1 - min(panel["gridPos"]["y"] for panel in panels)
        for panel in panels:
            _place(figure, panel, board, top, high)
        under += 1 + _height(panels)
    figure.savefig(file, facecolor=BACK)
    plt.close(figure)
    with Image.open(file) as drawn:
        few = drawn.convert("RGB").quantize(PALETTE, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


def _height(panels: Sequence[Panel]) -> int:
    ends = [panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels]
    return int(max(ends) - min(panel["gridPos"]["y"] for panel in panels))


def _place(figure: Figure, panel: Panel, board: Board, top: int, high: float) -> None:
    """A panel's frame, title and unit, and in it what its type draws. Lengths are in inches."""
    at = panel["gridPos"]
    wide, tall = at["w"] * CELL, at["h"] * LOW
    gap = 0.03
    left, down = at["x"] * CELL + gap, high - HEAD - (top + at["y"]) * LOW - tall + gap
    whole = COLUMNS * CELL
    box = (left / whole, down / high, (wide - 2 * gap) / whole, (tall - 2 * gap) / high)
    frame = figure.add_axes(box, facecolor=PANEL)
    frame.set_xticks([])
    frame.set_yticks([])
    for spine in frame.spines.values():
        spine.set_color(EDGE)
    line, edge = 1 - 0.15 / tall, 0.08 / wide
    unit = _UNIT_NAMES.get(panel["fieldConfig"]["defaults"]["unit"], "")
    frame.text(edge, line, panel["title"], size=8.5, weight="bold", color=INK, va="center",
               transform=frame.transAxes)  # fmt: skip
    if any(A_DAY_AGO in target["expr"] for target in panel["targets"]):
        frame.text(1 - edge, 0.12 / tall, f"here compared with {DAY.replace('s', ' s')} ago", size=7, color=FAINT,
                   va="center", ha="right", transform=frame.transAxes)  # fmt: skip
    if panel["type"] != "table":
        frame.text(1 - edge, line, unit, size=8, color=FAINT, va="center", ha="right", transform=frame.transAxes)
    if not board.has_data(panel):
        frame.text(0.5, 0.45, "no data", size=9, color=FAINT, ha="center", va="center", transform=frame.transAxes)
        return
    {"stat": _number, "timeseries": _graph, "bargauge": _bars, "table": _table}[panel["type"]](frame, panel, board)


def _number(frame: Axes, panel: Panel, board: Board) -> None:
    value = float(board.now(panel["targets"][0])[0]["value"][1])
    defaults = panel["fieldConfig"]["defaults"]
    words = {k: v for m in defaults.get("mappings", []) for k, v in m["options"].items()}
    text = words.get(f"{value:g}", {}).get("text") or written(value, defaults["unit"])
    frame.text(
        0.5, 0.4, text, size=21, color=_colour(panel, value), ha="center", va="center", transform=frame.transAxes
    )


def _graph(frame: Axes, panel: Panel, board: Board) -> None:
    found = board.lines(panel)
    wide, tall = panel["gridPos"]["w"] * CELL, panel["gridPos"]["h"] * LOW
    columns = max(1, min(4, int(wide / (0.5 + 0.068 * max(len(name) for name, *_ in found)))))
    legend_tall = 0.17 * math.ceil(len(found) / columns)
    room = (0.52 / wide, (0.32 + legend_tall) / tall, 1 - 0.68 / wide, 1 - (0.65 + legend_tall) / tall)
    inner = frame.inset_axes(room)
    unit = panel["fieldConfig"]["defaults"]["unit"]
    scale, name = _scale(
        max((abs(v) for _, _, values in found for v in values if math.isfinite(v)), default=0.0), unit
    )
    drawn = [(label, moments, [v / scale for v in values]) for label, moments, values in found]
    if (panel["fieldConfig"]["defaults"]["custom"].get("stacking") or {}).get("mode") == "normal":
        _stack(inner, drawn)
    else:
        for (label, moments, values), colour in zip(drawn, LINES, strict=False):
            inner.plot(moments, values, color=colour, lw=1.5, label=label, solid_capstyle="round")
            if len(drawn) <= FEW:
                inner.fill_between(moments, values, color=colour, alpha=0.1, lw=0)
    numbers = [v for _, _, values in drawn for v in values if math.isfinite(v)]
    if min(numbers) >= 0:
        inner.set_ylim(0, None if max(numbers) > 0 else 1)
    inner.set_xlim(-LAST, 0)
    inner.set_axisbelow(True)
    inner.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    inner.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}{name}")
    inner.xaxis.set_major_locator(mpl.ticker.MaxNLocator(max(2, int(wide / 1.1)), steps=[1, 2, 3, 6, 10]))
    inner.xaxis.set_major_formatter(lambda value, _: "now" if value == 0 else f"{value:.0f} s")
    inner.tick_params(labelsize=7.5, colors=FAINT, length=0)
    inner.tick_params(axis="x", pad=5)
    inner.grid(axis="y", color="#e7e9ec", lw=0.8)
    for side in ("top", "right", "left"):
        inner.spines[side].set_visible(False)
    inner.spines["bottom"].set_color(EDGE)
    frame.legend(*inner.get_legend_handles_labels(), loc="lower left", ncols=columns, fontsize=7.5, frameon=False,
                 labelcolor=INK, handlelength=1.0, columnspacing=1.0, labelspacing=0.25, handletextpad=0.5,
                 borderaxespad=0.3)  # fmt: skip


def _stack(inner: Axes, found: Sequence[Line]) -> None:
    moments = sorted({moment for _, those, _ in found for moment in those})
    rows = []
    for _, those, values in found:
        known = {m: v for m, v in zip(those, values, strict=True) if math.isfinite(v)}
        rows.append([known.get(moment, 0.0) for moment in moments])
    inner.stackplot(moments, rows, labels=[name for name, *_ in found], colors=LINES[: len(rows)], alpha=0.8, lw=0)


def _bars(frame: Axes, panel: Panel, board: Board) -> None:
    target = panel["targets"][0]
    values = {legend(target, one["metric"]): float(one["value"][1]) for one in board.now(target)}
    order = sorted(values, key=lambda name: (len(name), name), reverse=True)
    inner = frame.inset_axes((0.24, 0.1, 0.6, 0.72))
    places = range(len(order))
    drawn = inner.barh(
        places, [values[name] for name in order], height=0.5, color=[_colour(panel, values[name]) for name in order]
    )
    inner.set_yticks(places, order)
    unit = panel["fieldConfig"]["defaults"]["unit"]
    inner.bar_label(drawn, [written(values[name], unit) for name in order], size=8.5, color=INK, padding=4)
    inner.set_xlim(0, max([*values.values(), 1]) * 1.05)
    inner.set_xticks([])
    inner.tick_params(labelsize=8, colors=INK, length=0)
    for spine in inner.spines.values():
        spine.set_visible(False)


def _table(frame: Axes, panel: Panel, board: Board) -> None:
    """The labels to the left; numbers are right-aligned under their titles."""
    tall, wide = panel["gridPos"]["h"] * LOW, panel["gridPos"]["w"] * CELL
    labels, columns, rows = _cells(panel, board)
    # Each column gets as much of the width as its longest text asks for.
    shares = [2 + max(map(len, column)) for column in zip([*labels, *columns], *rows, strict=True)]
    step = min(0.27, (tall - 0.45) / (len(rows) + 1))
    for line, row in enumerate([[*labels, *columns], *rows]):
        height = 1 - (0.45 + line * step) / tall
        if line:
            edge = height + step / 2 / tall
            frame.plot(
                (0.08 / wide, 1 - 0.08 / wide), (edge, edge), color="#e7e9ec", lw=0.8, transform=frame.transAxes
            )
        for place, text in enumerate(row):
            left = place < len(labels)
            end = (sum(shares[:place]) if left else sum(shares[: place + 1])) / sum(shares)
            frame.text(
                0.1 / wide + end * (1 - 0.2 / wide), height, text, size=8, va="center",
                ha="left" if left else "right", color=INK if line else FAINT,
                weight="normal" if line else "bold", transform=frame.transAxes,
            )  # fmt: skip


def _cells(panel: Panel, board: Board) -> tuple[list[str], list[str], list[list[str]]]:
    units = {o["matcher"]["options"]: p["value"] for o in panel["fieldConfig"]["overrides"]
             for p in o["properties"] if p["id"] == "unit"}  # fmt: skip
    renamed = panel["transformations"][1]["options"]["renameByName"]
    columns = [renamed[f"Value #{target['refId']}"] for target in panel["targets"]]
    labels: list[str] = []
    cells: dict[tuple[str, ...], dict[str, float]] = {}
    for column, target in zip(columns, panel["targets"], strict=True):
        for one in board.now(target):
            labels = labels or sorted(one["metric"])
            key = tuple(one["metric"].get(label, "") for label in labels)
            cells.setdefault(key, {})[column] = float(one["value"][1])
    unit = panel["fieldConfig"]["defaults"]["unit"]
    order = sorted(cells.items())
    if panel["title"].startswith("Largest"):
        order.sort(key=lambda cell: -cell[1].get(columns[0], 0.0))
    rows = [
        [*key, *(written(row[c], units.get(c, unit)) if c in row else "" for c in columns)] for key, row in order
    ]
    return labels, columns, rows[:MOST_ROWS]


def legend(target: dict[str, Any], labels: dict[str, str]) -> str:
    """A series' name, as the panel asks for it."""
    text: str = target.get("legendFormat") or "__auto"
    if text == "__auto":
        return ", ".join(labels.values()) or "value"
    for name in set(_NAMES.findall(text)):
        text = text.replace(f"{{{{{name}}}}}", labels.get(name, ""))
    return " ".join(text.replace("/collections/{collection_name}", "…").split()) or "value"


def _peak(line: Line) -> float:
    return max(value for value in line[2] if math.isfinite(value))


def _with_gaps(numbers: Sequence[tuple[float, float]], step: float = 1.0) -> tuple[list[float], list[float]]:
    moments, values = [numbers[0][0]], [numbers[0][1]]
    for moment, value in numbers[1:]:
        if moment - moments[-1] > 1.5 * step:
            moments.append(moments[-1] + step)
            values.append(math.nan)
        moments.append(moment)
        values.append(value)
    return moments, values


def _colour(panel: Panel, value: float) -> str:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    passed = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return COLOURS[passed[-1]]


def _scale(largest: float, unit: str) -> tuple[float, str]:
    """What the values of a unit are divided by for people, and the suffix that they get then."""
    if unit in _STEPS and largest > 0:
        return next((step for step in _STEPS[unit] if largest >= step[0]), _STEPS[unit][-1])
    return {"s": (1.0, " s"), "cps": (1.0, "/s"), "reqps": (1.0, "/s"), "percentunit": (0.01, "%")}.get(
        unit, (1.0, "")
    )


def written(value: float, unit: str) -> str:
    """A number with its unit, three digits of it where it is not whole.

    >>> written(0.0325, "s"), written(1814400, "s"), written(0.4412, "percentunit"), written(12345, "short")
    ('32.5 ms', '21 d', '44.1%', '12.3k')
    """
    scale, name = _scale(abs(value), unit)
    shown = value / scale
    if unit not in _STEPS and abs(shown) >= 10_000:
        return f"{shown / 1000:.3g}k{name}"
    return f"{shown:.0f}{name}" if abs(shown) >= 100 or shown == int(shown) else f"{shown:.3g}{name}"


_STEPS: Final = {
    "s": ((86400.0, " d"), (3600.0, " h"), (120.0 / 2, " min"), (1.0, " s"), (0.001, " ms")),
    "bytes": ((2.0**30, " GiB"), (2.0**20, " MiB"), (2.0**10, " KiB"), (1.0, " B")),
}
_NAMES: Final = re.compile(r"\{\{(\w+)\}\}")
_UNIT_NAMES: Final = {
    "s": "time", "bytes": "bytes", "cps": "per second", "reqps": "requests/s", "percentunit": "share",
    "short": "", "none": "",
}  # fmt: skip


def _dealt(shares: dict[str, int]) -> list[str]:
    """Each name as often as its share."""
    return [name for name, share in shares.items() for _ in range(share)]


def play(scene: Stage) -> None:
    """A minute of an ordinary day: memory grows, some of it expires, copies and odd payloads come in."""
    tenants, scopes = _dealt(TENANTS), _dealt(SCOPES)  # 11 and 15, so that every pair occurs
    ordinary: dict[str, Any] = {
        "tenant_id": lambda n: tenants[n % len(tenants)],
        "scope": lambda n: scopes[7 * n % len(scopes)],
    }
    ids = _numbers()
    scene.create(OTHER)
    scene.put(330, next(ids), **ordinary)
    scene.put(165, next(ids), OTHER, **ordinary)
    scene.start_daemon()
    scene.start_prometheus()
    for turn in range(14):
        scene.put(44 + 11 * (turn % 3), next(ids), ttl_days=(3, 6, 20, 29)[turn % 4], **ordinary)
        scene.put(11 + 11 * (turn % 2), next(ids), OTHER, ttl_days=20, **ordinary)
        if turn in (3, 8, 9, 13):
            scene.expire(77, next(ids), **ordinary)
        if turn in (5, 6, 13):
            copies = {
                "fingerprint": "b" * 64,
                "source_id": "doc_x",
                "tenant_id": f"t_{'helion' if turn < 7 else 'nutra'}",
            }
            scene.put(30, next(ids), scope="memory", **copies)
            scene.put(12, next(ids), scope="docs", chunk={"chunk_id": "chk_x", "chunk_idx": 1}, **copies)
        if turn == 7:
            scene.put(33, next(ids), visibility="everyone", **ordinary)
        if turn == 9:
            scene.put(22, next(ids), ttl_days="30", **ordinary)
            scene.client.delete_payload_index(OTHER, "team_id", wait=True)
        for _ in range(4):
            scene.client.query_points(COLLECTION, query=[1.0, 0.0, 0.0, 0.0], using="dense", limit=5)
        scene.ask_for_what_is_not_there()
        time.sleep(4)
    both = "sum(comemory_duplicate_points) > 0 and sum(comemory_expired_points) > 0"
    scene.until(lambda: scene.query(both), 60, "no census and dedup in a minute")


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1000


def main() -> int:
    """Write all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="comemory-pictures-") as folder, stage(Path(folder), ensure()) as scene:
        play(scene)
        moment = time.time()
        for uid, board in boards().items():
            file = FOLDER / f"{uid.removeprefix('comemory-')}.png"
            draw(Board(board, scene, moment), file)
            print(f"wrote {file.relative_to(ROOT)} ({file.stat().st_size // 1024} KiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
