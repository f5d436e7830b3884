"""A run's result in words: "30 of 500 pages failed", and the list."""

from __future__ import annotations

import json
from collections.abc import Iterator

from scheduler.core.model import Json

SUMMARIES = ("summary", "message")
"""Texts of a result that say it all in one line."""
MOST_LINES = 20
_LONGEST = 200


def headline(result: Json) -> str:
    """One line; "" if the result says nothing. `{"summary": "…"}` says it itself; `{"failed": 30, "total": 500, "what":
    "pages"}` is "30 of 500 pages failed"."""
    if isinstance(result, dict):
        for key in SUMMARIES:
            if isinstance(result.get(key), str) and result[key].strip():
                return _line(result[key])
        return _counts(result)
    return "" if result is None or isinstance(result, list) else _line(_text(result))


def details(result: Json) -> list[str]:
    """What the headline does not say, a line each: numbers and texts by their keys, lists with one line per item, of
    all together at most MOST_LINES, and how many more there are."""
    lines = list(_lines(result))
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} more"]


def _counts(result: dict[str, Json]) -> str:
    failed, total, what = result.get("failed"), result.get("total"), result.get("what")
    if not _whole(failed) or not _whole(total):
        return ""
    noun = f" {_line(what)}" if isinstance(what, str) and what.strip() else ""
    return f"{failed} of {total}{noun} failed" if failed else f"all {total}{noun} succeeded"


def _whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _lines(result: Json) -> Iterator[str]:
    if isinstance(result, list):
        yield from (f"- {_line(_text(item))}" for item in result)
    if not isinstance(result, dict):
        return
    said = {*SUMMARIES, *(("failed", "total", "what") if _counts(result) else ())}
    lists = {}
    for key, value in result.items():
        if isinstance(value, list):
            lists[key] = value
        elif key not in said and value not in (None, "", {}):
            yield f"{_line(key)}: {_line(_text(value))}"
    for key, items in lists.items():
        if items:
            yield f"{_line(key)} ({len(items)}):"
            yield from (f"- {_line(_text(item))}" for item in items)


def _text(value: Json) -> str:
    if isinstance(value, dict) and value and all(isinstance(one, str | int | float) for one in value.values()):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(text: str) -> str:
    plain = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
