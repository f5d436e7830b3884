"""The tables: Markdown for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.measurement import Row, Verdict, judge
from bench.results import Result


def markdown(results: list[Result]) -> str:
    """Machine and limits, bars (worst first), then a table per measurement."""
    parts = []
    if results and results[-1].full:
        parts.append("## Bars, worst first\n\n" + _table(["what", "measured", "bar", "room"], _bar_rows(results)))
    else:
        parts.append("**Tiny size: the figures mean nothing, only that everything works.**")
    parts += [f"## {one.measurement.title}\n\n{_figures(one.rows)}\n\n{_moment(one)}" for one in results]
    if results:
        parts.append(_machine(results))
    parts.append(
        "*room*: how many times better than the bar; below 1 it is missed. *others*: CPUs that processes outside of "
        "the bench used meanwhile: the more, the less a figure means. *pace*: how fast the machine was just before and "
        "after, in rounds of a fixed piece of work per millisecond: figures of different paces cannot be compared."
    )
    return "\n\n".join(parts) + "\n"


def as_json(results: list[Result]) -> dict[str, Any]:
    return {
        result.measurement.name: {
            "title": result.measurement.title,
            "machine": dict(result.machine),
            "limits": dict(result.limits),
            "version": result.version,
            "full": result.full,
            "rows": [_row_json(row) for row in result.rows],
            "bars": [_verdict_json(verdict) for verdict in judge(result.measurement.bars, result.rows)],
        }
        for result in results
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "subject": row.subject,
        "figures": dict(row.figures),
        "failed": row.failed or None,
        "note": row.note or None,
        "others": row.others,
        "pace": row.pace,
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    bar = verdict.bar
    return {
        "subject": bar.subject,
        "figure": bar.figure,
        "beside": bar.beside or None,
        "factor": (bar.least if bar.most is None else bar.most) if bar.beside else None,
        "measured": verdict.value,
        "limit": verdict.limit,
        "room": verdict.room,
        "met": verdict.met,
    }


def _bar_rows(results: list[Result]) -> list[list[str]]:
    judged = [(one, verdict) for one in results for verdict in judge(one.measurement.bars, one.rows)]
    judged.sort(key=lambda pair: 0.0 if pair[1].room is None else pair[1].room)
    return [_bar_row(result.measurement.name, verdict) for result, verdict in judged]


def _bar_row(name: str, verdict: Verdict) -> list[str]:
    bar = verdict.bar
    limit = "–" if verdict.limit is None else _number(verdict.limit)
    sign, number = ("≥", bar.least) if bar.most is None else ("≤", bar.most)
    words = f"{sign} {number:g} × {bar.beside} = {limit}" if bar.beside else f"{sign} {limit}"
    room = "not measured" if verdict.room is None else f"{verdict.room:.2f}" + ("" if verdict.met else " **missed**")
    measured = "–" if verdict.value is None else _number(verdict.value)
    return [f"{name}: {bar.subject}, {bar.figure}", measured, words, room]


def _figures(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    body = []
    for row in rows:
        cells = [_number(row.figures[name]) if name in row.figures else "–" for name in names]
        about = ["" if value is None else f"{value:.2f}" for value in (row.others, row.pace)]
        body.append([row.subject, *cells, *about, _cell(f"not measured: {row.failed}" if row.failed else row.note)])
    return _table(["subject", *names, "others", "pace", ""], body)


def _moment(result: Result) -> str:
    return f"Measured {result.machine.get('date', '')}" + (f" at {result.version}." if result.version else ".")


def _machine(results: list[Result]) -> str:
    """As it was at the last measurement."""
    last = max(results, key=lambda one: one.machine.get("date", ""))
    named = ", ".join(f"{name} {value}" for name, value in last.machine.items() if name != "date")
    rows = [[name.removesuffix(" ms"), _number(value)] for name, value in last.limits.items()]
    return f"## The machine itself\n\n{named}.\n\n" + _table(["p50 of 300", "ms"], rows)


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:300]


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _table(head: list[str], body: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
