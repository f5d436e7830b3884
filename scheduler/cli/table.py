"""Tables that fit: columns give way from the right kind, never by wrapping into the next line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from scheduler.cli.text import broken, clip, pad, plain, width
from scheduler.core.value_object import value_object

GAP = 2
CAP = 60
"""Columns to which cells are padded where nothing limits the width: a longer cell moves only what follows it."""


@value_object
class Column:
    """`least`: how narrow it may become before others are left out; None: never narrower than its content. `spare`:
    left out when the table does not fit, the highest number first; 0: never. `wrap`: what does not fit goes on in a
    further line instead of being cut."""

    title: str
    least: int | None = None
    spare: int = 0
    wrap: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], total: int | None) -> list[str]:
    """Header and rows as lines of at most `total` columns; a row with a wrapped cell is several of them, joined by line
    ends. None: nothing is cut or wrapped."""
    # As a whole, because there may be thousands of rows.
    cells = [row if "".join(row).isprintable() else [plain(cell) for cell in row] for row in rows]
    shown = list(range(len(columns)))
    titles = [column.title for column in columns]
    widths = [_widest(column) for column in zip(titles, *cells, strict=True)]
    if total is None:
        sizes = [min(size, CAP) for size in widths]
        return [_padded(row, sizes) for row in (titles, *cells)]
    shown, widths = _fit(columns, widths, shown, total)
    chosen = [columns[index] for index in shown]
    sizes = [widths[index] for index in shown]
    lines = [_line([column.title for column in chosen], sizes)]
    return lines + [_wrapped(chosen, [row[index] for index in shown], sizes) for row in cells]


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


def _wrapped(columns: Sequence[Column], cells: Sequence[str], sizes: Sequence[int]) -> str:
    parts = [
        broken(cell, size) if column.wrap and width(cell) > size else [cell]
        for column, cell, size in zip(columns, cells, sizes, strict=True)
    ]
    return "\n".join(_line(line, sizes) for line in zip_longest(*parts, fillvalue=""))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    gap = " " * GAP
    return gap.join(pad(clip(cell, size), size) for cell, size in zip(cells, widths, strict=True)).rstrip()


def _widest(cells: Sequence[str]) -> int:
    return max(map(len if "".join(cells).isascii() else width, cells))


def _padded(cells: Sequence[str], sizes: Sequence[int]) -> str:
    padding = str.ljust if "".join(cells).isascii() else pad
    return (" " * GAP).join(map(padding, cells, sizes)).rstrip()
