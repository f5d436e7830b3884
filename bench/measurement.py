"""The nouns: a row of figures about a subject, the bars that it has to clear, a measurement that makes rows."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import bench.measurements

if TYPE_CHECKING:
    from bench.session import Session

Figures = Mapping[str, float]
"""By name; the name ends with the unit (`last s`, `p99 ms`, `runs/s`, `RSS MB`)."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one subject. `failed`: why there are no figures; `others`: CPUs that processes outside of
    this measurement used meanwhile; `pace`: how fast the machine was, just before and just after."""

    subject: str
    figures: Figures = field(default_factory=dict)
    failed: str = ""
    note: str = ""
    others: float | None = None
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit for one figure of one subject of ours: a number, or a part of the same figure of another subject."""

    subject: str
    figure: str
    most: float | None = None
    least: float | None = None
    beside: str = ""
    """The other subject; then the number is a factor."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`room`: how many times better than the bar (below 1: missed). None where something was not measured."""

    bar: Bar
    value: float | None
    limit: float | None
    room: float | None

    @property
    def met(self) -> bool | None:
        return None if self.room is None else self.room >= 1


@dataclass(frozen=True, slots=True)
class Measurement:
    """`run` yields a row per subject, ours first. `bars` hold at full size only."""

    name: str
    title: str
    bars: tuple[Bar, ...]
    run: Callable[[Session], Iterator[Row]]


def discover() -> dict[str, Measurement]:
    """Every file of `bench/measurements`, in the order of their `ORDER`."""
    found = []
    for module in pkgutil.iter_modules(bench.measurements.__path__):
        loaded = importlib.import_module(f"bench.measurements.{module.name}")
        found.append((loaded.ORDER, Measurement(module.name, loaded.TITLE, loaded.BARS, loaded.run)))
    return {one.name: one for _, one in sorted(found, key=lambda pair: pair[0])}


def judge(bars: tuple[Bar, ...], rows: list[Row]) -> list[Verdict]:
    """Each bar against the rows of the same measurement."""
    figures = {row.subject: row.figures for row in rows}
    verdicts = []
    for bar in bars:
        value = figures.get(bar.subject, {}).get(bar.figure)
        limit, room = bar.most if bar.most is not None else bar.least, None
        if bar.beside:
            other = figures.get(bar.beside, {}).get(bar.figure)
            limit = None if other is None or limit is None else other * limit
        if value is not None and limit is not None:
            room = limit / max(value, 1e-9) if bar.most is not None else value / limit
        verdicts.append(Verdict(bar, value, limit, room))
    return verdicts
