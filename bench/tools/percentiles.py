"""Percentiles by nearest rank."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` (0…1) of the values do not exceed. ValueError for none."""
    if not values:
        raise ValueError("no values were measured")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def spread(values: Sequence[float], unit: str, scale: float = 1.0) -> dict[str, float]:
    """`p50`, `p99` and `last` of these seconds, times `scale`."""
    return {
        f"p50 {unit}": percentile(values, 0.5) * scale,
        f"p99 {unit}": percentile(values, 0.99) * scale,
        f"last {unit}": max(values) * scale,
    }
