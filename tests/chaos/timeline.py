"""The database's clock, by which instants fall due, against real time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tests.chaos.log import Step


@dataclass(frozen=True)
class Stretch:
    """From `start` (real) on the database's clock is the real one plus `offset`."""

    start: float
    offset: float


class Timeline:
    """An instant falls due when the database's clock first shows it or more."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._stretches = [Stretch(float("-inf"), 0.0)]
        for step in sorted(steps, key=lambda one: one.begin):
            self._stretches.append(Stretch(step.end, step.offset))

    def due(self, instant: float) -> float:
        """In real time, the first time."""
        return self._due(instant, 0)

    def showings(self, instant: float, within: float) -> list[float]:
        """When it falls due in real time: once, and again where the clock was set back within so many seconds, so that
        it need not have been planned before."""
        found = [self.due(instant)]
        for number, (before, here) in enumerate(pairwise(self._stretches)):
            if here.offset < before.offset and found[-1] <= here.start <= found[-1] + within:
                found.append(self._due(instant, number + 1))
        return found

    def _due(self, instant: float, first: int) -> float:
        """When the clock shows it from that stretch on."""
        for number, here in list(enumerate(self._stretches))[first:]:
            end = self._stretches[number + 1].start if number + 1 < len(self._stretches) else float("inf")
            if instant <= here.start + here.offset:
                return here.start
            if instant < end + here.offset:
                return instant - here.offset
        raise AssertionError("the last stretch never ends")

    def leapt(self, instant: float) -> bool:
        """Whether the clock was set over this instant, so that it never showed it before it showed later ones."""
        return any(instant <= here.start + here.offset and self.due(instant) == here.start for here in self._stretches)

    def shown(self, real: float) -> float:
        """What the database's clock showed then."""
        here = [one for one in self._stretches if one.start <= real][-1]
        return real + here.offset

    def furthest(self, real: float) -> float:
        """The latest instant that it had shown until then."""
        latest = self.shown(real)
        for before, after in pairwise(self._stretches):
            if after.start <= real:
                latest = max(latest, after.start + before.offset)
        return latest
