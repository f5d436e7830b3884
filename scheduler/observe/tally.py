"""Counters and histograms fed by notices: plain numbers by label values. What is shown is decided elsewhere."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

Labels = tuple[str, ...]


@dataclass(slots=True)
class Histogram:
    """`counts[i]` observations were at most `bounds[i]` and more than the bound before; the last count has the rest."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    sum: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[str, float]]:
        """As Prometheus has buckets: `le` and how many were at most that."""
        total, buckets = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound == float("inf") else f"{bound:g}", float(total)))
        return buckets


class Tally:
    """Counts, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._histograms: dict[str, dict[Labels, Histogram]] = defaultdict(dict)

    def add(self, name: str, labels: Labels = (), amount: float = 1) -> None:
        with self._lock:
            self._counts[name][labels] += amount

    def put(self, name: str, value: float, labels: Labels = ()) -> None:
        """Sets a value that is no count."""
        with self._lock:
            self._counts[name][labels] = value

    def observe(self, name: str, bounds: Sequence[float], value: float, labels: Labels = ()) -> None:
        with self._lock:
            series = self._histograms[name]
            found = series.get(labels)
            if found is None:
                found = series[labels] = Histogram(bounds)
            found.observe(max(0.0, value))

    def count(self, name: str, labels: Labels = ()) -> float:
        with self._lock:
            return self._counts.get(name, {}).get(labels, 0)

    def counts(self, name: str) -> dict[Labels, float]:
        with self._lock:
            return dict(self._counts.get(name, {}))

    def histogram(
        self, name: str, bounds: Sequence[float], labels: Labels = ()
    ) -> tuple[list[tuple[str, float]], float]:
        """Buckets and sum; empty ones for what was never observed."""
        with self._lock:
            found = self._histograms.get(name, {}).get(labels) or Histogram(bounds)
            return found.cumulative(), found.sum

    def totals(self, name: str) -> dict[Labels, tuple[int, float]]:
        """How many observations there were, and their sum, by labels."""
        with self._lock:
            return {labels: (sum(one.counts), one.sum) for labels, one in self._histograms.get(name, {}).items()}
