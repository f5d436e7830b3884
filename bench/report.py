"""The tables: Markdown for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench.measurement import Measurement, Row, Verdict, judge

Results = list[tuple[Measurement, list[Row]]]


def markdown(machine: Mapping[str, str], limits: Mapping[str, float], results: Results, full: bool) -> str:
    """Machine, bars (worst first), then a table per measurement."""
    parts = ["# How fast", ", ".join(f"{name} {value}" for name, value in machine.items())]
    if not full:
        parts.append("**Tiny size: the figures mean nothing, only that everything works.**")
    if limits:
        parts.append("## The machine's own limits (p50)\n\n" + _table(["what", "ms"], _limit_rows(limits)))
    if full:
        parts.append("## Bars, worst first\n\n" + _table(["what", "measured", "bar", "room"], _bar_rows(results)))
    for measurement, rows in results:
        parts.append(f"## {measurement.title}\n\n" + _figures(rows))
    parts.append(
        "*others*: CPUs that processes outside of the bench used meanwhile. *room*: below 1 the bar is missed."
    )
    return "\n\n".join(parts) + "\n"


def as_json(machine: Mapping[str, str], limits: Mapping[str, float], results: Results, full: bool) -> dict[str, Any]:
    return {
        "machine": dict(machine),
        "limits": dict(limits),
        "full": full,
        "measurements": {
            measurement.name: {
                "title": measurement.title,
                "rows": [_row_json(row) for row in rows],
                "bars": [_verdict_json(verdict) for verdict in judge(measurement.bars, rows)] if full else [],
            }
            for measurement, rows in results
        },
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "subject": row.subject,
        "figures": dict(row.figures),
        "failed": row.failed or None,
        "note": row.note or None,
        "others": row.others,
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    bar = verdict.bar
    return {
        "subject": bar.subject,
        "figure": bar.figure,
        "beside": bar.beside or None,
        "factor": bar.most if bar.beside else None,
        "measured": verdict.value,
        "limit": verdict.limit,
        "room": verdict.room,
        "met": verdict.met,
    }


def _limit_rows(limits: Mapping[str, float]) -> list[list[str]]:
    return [[name.removesuffix(" ms"), _number(value)] for name, value in limits.items()]


def _bar_rows(results: Results) -> list[list[str]]:
    judged = [(measurement, verdict) for measurement, rows in results for verdict in judge(measurement.bars, rows)]
    judged.sort(key=lambda pair: 0.0 if pair[1].room is None else pair[1].room)
    return [_bar_row(measurement, verdict) for measurement, verdict in judged]


def _bar_row(measurement: Measurement, verdict: Verdict) -> list[str]:
    bar = verdict.bar
    limit = "–" if verdict.limit is None else _number(verdict.limit)
    if bar.beside:
        words = f"≤ {bar.most:g} × {bar.beside} = {limit}"
    else:
        words = f"≤ {limit}" if bar.most is not None else f"≥ {limit}"
    room = "not measured" if verdict.room is None else f"{verdict.room:.2f}" + ("" if verdict.met else " **missed**")
    measured = "–" if verdict.value is None else _number(verdict.value)
    return [f"{measurement.name}: {bar.subject}, {bar.figure}", measured, words, room]


def _figures(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    body = []
    for row in rows:
        if row.failed:
            cells = [f"not measured: {_cell(row.failed)}", *[""] * (len(names) - 1)]
        else:
            cells = [_number(row.figures[name]) if name in row.figures else "–" for name in names]
        others = "" if row.others is None else f"{row.others:.2f}"
        body.append([row.subject, *cells, others, _cell(row.note)])
    return _table(["subject", *(names or ["figures"]), "others", ""], body)


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:300]


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _table(head: list[str], body: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
