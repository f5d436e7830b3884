"""Draws monitoring/grafana/schedulerd.json as an SVG from a live Prometheus, for people without Grafana at hand.

    python tools/draw_dashboard.py http://127.0.0.1:9090 dashboard.svg --minutes 60

What is drawn is what the queries answer now; nothing is made up. Layout, titles and units are the dashboard's."""

from __future__ import annotations

import argparse
import json
import math
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

DASHBOARD = Path(__file__).parents[1] / "monitoring" / "grafana" / "schedulerd.json"
COLUMN, LINE, GAP = 50, 30, 6
INK, FAINT, PAPER, PANEL = "#24292f", "#8b949e", "#f4f5f5", "#ffffff"
COLORS = ("#56a64b", "#3274d9", "#e0b400", "#e02f44", "#8f3bb8", "#ff780a", "#1fc0c0", "#806000", "#a352cc", "#5794f2")
STATES = {"green": "#56a64b", "red": "#e02f44", "orange": "#ff780a", "blue": "#3274d9"}

Query = Callable[[str, dict[str, str]], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prometheus")
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()

    def query(path: str, parameters: dict[str, str]) -> Any:
        address = f"{options.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310
            return json.load(answer)["data"]["result"]

    options.file.write_text(draw(json.loads(DASHBOARD.read_text()), query, time.time(), options.minutes * 60))


def draw(dashboard: Any, query: Query, now: float, span: float) -> str:
    """The whole picture. `span`: seconds that graphs look back."""
    parts = []
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        x, y = place["x"] * COLUMN, place["y"] * LINE
        width, height = place["w"] * COLUMN - GAP, place["h"] * LINE - GAP
        inside = "".join(_panel(panel, query, now, span, width, height))
        parts.append(f'<g transform="translate({x + GAP},{y + GAP})">{inside}</g>')
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
    width, height = 24 * COLUMN + GAP, bottom * LINE + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11" fill="{INK}"><rect width="{width}" height="{height}" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


def _panel(panel: Any, query: Query, now: float, span: float, width: float, height: float) -> Iterator[str]:
    if panel["type"] == "row":
        yield f'<text y="16" font-size="14" font-weight="bold">{escape(panel["title"])}</text>'
        return
    yield f'<rect width="{width}" height="{height}" rx="3" fill="{PANEL}" stroke="#dce1e6"/>'
    yield f'<text x="8" y="16" font-weight="bold">{escape(panel["title"])}</text>'
    unit = panel["fieldConfig"]["defaults"]["unit"]
    if panel["type"] == "stat":
        yield from _stat(panel, query(*_instant(panel, now)), unit, width, height)
    elif panel["type"] == "table":
        yield from _table(panel, query(*_instant(panel, now)), unit, width, height)
    else:
        step = max(1.0, span / 300)
        series = []
        for target in panel["targets"]:
            asked = {"query": _concrete(target["expr"], step), "start": f"{now - span}", "end": f"{now}"}
            for one in query("query_range", {**asked, "step": f"{step}"}):
                points = [(float(at), float(value)) for at, value in one["values"] if math.isfinite(float(value))]
                series.append((_legend(target["legendFormat"], one["metric"]), points))
        stacked = "stacking" in panel["fieldConfig"]["defaults"]["custom"]
        yield from _graph(series, unit, now, span, width, height, stacked)


def _instant(panel: Any, now: float) -> tuple[str, dict[str, str]]:
    return "query", {"query": _concrete(panel["targets"][0]["expr"], 1), "time": f"{now}"}


def _concrete(expression: str, step: float) -> str:
    return expression.replace("$job", ".+").replace("$__rate_interval", f"{max(15, round(4 * step))}s")


def _legend(pattern: str, metric: dict[str, str]) -> str:
    for name, value in metric.items():
        pattern = pattern.replace(f"{{{{{name}}}}}", value)
    return pattern


def _shown(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "-"
    if unit == "s":
        for size, word in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
            if abs(value) >= size:
                return f"{value / size:.3g} {word}"
        return f"{value * 1000:.2g} ms" if value else "0 s"
    return f"{value:.3g}" + {"ops": "/s", "reqps": "/s"}.get(unit, "")


def _stat(panel: Any, result: Any, unit: str, width: float, height: float) -> Iterator[str]:
    value = float(result[0]["value"][1]) if result else math.nan
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    color = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
    yield f'<rect x="1" y="24" width="{width - 2}" height="{height - 25}" fill="{STATES[color]}"/>'
    text = _shown(value, unit)
    yield f'<text x="{width / 2}" y="{height / 2 + 22}" font-size="26" fill="white" text-anchor="middle">{text}</text>'


def _table(panel: Any, result: Any, unit: str, width: float, height: float) -> Iterator[str]:
    layout = panel["transformations"][0]["options"]
    hidden, names = layout["excludeByName"], layout["renameByName"]
    labels = sorted({label for one in result for label in one["metric"] if label not in hidden})
    columns = labels if "Value" in hidden else [*labels, "Value"]
    if not result:
        yield f'<text x="{width / 2}" y="{height / 2}" fill="{FAINT}" text-anchor="middle">nothing</text>'
        return
    each = (width - 16) / len(columns)
    for index, column in enumerate(columns):
        yield f'<text x="{8 + index * each}" y="36" fill="{FAINT}">{escape(names.get(column, column))}</text>'
    for row, one in enumerate(result[: int((height - 48) // 18)]):
        for index, column in enumerate(columns):
            text = _shown(float(one["value"][1]), unit) if column == "Value" else one["metric"].get(column, "")
            yield f'<text x="{8 + index * each}" y="{54 + row * 18}">{escape(text)}</text>'


def _graph(
    series: list[tuple[str, list[tuple[float, float]]]],
    unit: str,
    now: float,
    span: float,
    width: float,
    height: float,
    stacked: bool,
) -> Iterator[str]:
    left, top, right, bottom = 52.0, 28.0, width - 10, height - 46
    below: dict[float, float] = {}
    lines = []
    for name, points in series:
        if stacked:
            points = [(at, value + below.get(at, 0.0)) for at, value in points]
            below.update(points)
        lines.append((name, points))
    most = max((value for _, points in lines for _, value in points), default=0.0) or 1.0
    for part in range(5):
        y = bottom - (bottom - top) * part / 4
        yield f'<path d="M{left} {y}H{right}" stroke="#e5e8eb"/>'
        value = _shown(most * part / 4, unit)
        yield f'<text x="{left - 5}" y="{y + 4}" fill="{FAINT}" text-anchor="end">{value}</text>'
        x = left + (right - left) * part / 4
        at = time.strftime("%H:%M", time.gmtime(now - span + span * part / 4))
        yield f'<text x="{x}" y="{bottom + 14}" fill="{FAINT}" text-anchor="middle">{at}</text>'
    for index, (_, points) in enumerate(lines):
        color = COLORS[index % len(COLORS)]
        places = [(1 - (now - at) / span, max(0, value) / most) for at, value in points]
        path = "L".join(
            f"{left + (right - left) * across:.1f} {bottom - (bottom - top) * up:.1f}" for across, up in places
        )
        if path:
            yield f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.3"/>'
    x, y = 10.0, height - 18
    for index, (name, _) in enumerate(lines):
        needed = 16 + 6.2 * len(name)
        if x + needed > width:
            x, y = 10.0, y + 12
        if y > height - 4:
            break
        yield f'<rect x="{x}" y="{y - 8}" width="8" height="8" fill="{COLORS[index % len(COLORS)]}"/>'
        yield f'<text x="{x + 11}" y="{y}" font-size="10">{escape(name)}</text>'
        x += needed + 8


if __name__ == "__main__":
    main()
