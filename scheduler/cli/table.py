"""Tables that fit: columns give way from the right kind, never by wrapping into the next line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.cli.text import clip, pad, plain, width

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """`least`: how narrow it may become before others are left out; None: never narrower than its content. `spare`:
    left out when the table does not fit, the highest number first; 0: never."""

    title: str
    least: int | None = None
    spare: int = 0


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], total: int | None) -> list[str]:
    """Header and rows as lines of at most `total` columns (None: as wide as the content)."""
    cells = [[plain(cell) for cell in row] for row in rows]
    shown = list(range(len(columns)))
    widths = [
        max([width(columns[index].title), *(width(row[index]) for row in cells)]) for index in range(len(columns))
    ]
    if total is not None:
        shown, widths = _fit(columns, widths, shown, total)
    lines = [_line([columns[index].title for index in shown], [widths[index] for index in shown])]
    lines += [_line([row[index] for index in shown], [widths[index] for index in shown]) for row in cells]
    return lines


def _fit(columns: Sequence[Column], widths: list[int], shown: list[int], total: int) -> tuple[list[int], list[int]]:
    widths = list(widths)
    while _sum(widths, shown) > total:
        soft = [i for i in shown if columns[i].least is not None]
        above = [i for i in soft if widths[i] > (columns[i].least or 0)]
        spare = [i for i in shown if columns[i].spare]
        if above:
            widths[max(above, key=lambda i: widths[i] - (columns[i].least or 0))] -= 1
        elif spare:
            shown = [i for i in shown if i != max(spare, key=lambda i: columns[i].spare)]
        elif any(widths[i] > 1 for i in soft):
            widths[max(soft, key=lambda i: widths[i])] -= 1
        else:
            break
    return shown, widths


def _sum(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[index] for index in shown) + GAP * (len(shown) - 1)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    gap = " " * GAP
    return gap.join(pad(clip(cell, size), size) for cell, size in zip(cells, widths, strict=True)).rstrip()
