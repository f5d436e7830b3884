"""Readiness: whether this node can do its work, and what `status` must say about it."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.core.execution import Clock
from scheduler.engine.drain import Drain
from scheduler.engine.in_force import InForce
from scheduler.engine.invariants import Invariants
from scheduler.engine.loop import Loop
from scheduler.engine.reload import Reloader
from scheduler.web.backend import Check

STALE = 30.0
"""Seconds without a turned loop after which a node is not ready."""
ASKING = ("keeper", "planner", "worker", "beats")
"""The loops whose ticks fail when the database does."""


class Readiness:
    def __init__(
        self,
        loops: Mapping[str, Loop],
        clock: Clock,
        in_force: InForce,
        invariants: Invariants,
        reloader: Reloader,
        drain: Drain,
    ) -> None:
        self._loops = loops
        self._clock = clock
        self._in_force = in_force
        self._invariants = invariants
        self._reloader = reloader
        self._drain = drain

    def checks(self) -> Mapping[str, Check]:
        """By name: why that part is not ready, None if it is."""
        return {"loops": self._turning, "database": self._answering, "configuration": self._newest}

    def remarks(self) -> list[str]:
        """Sentences for `status`; none when all is well."""
        remarks = [f"{name}: {detail}" for name, detail in self._invariants.broken.items()]
        if self._reloader.rejected is not None:
            remarks.append(f"the last reload was refused: {self._reloader.rejected}")
        if self._in_force.behind is not None:
            remarks.append(self._in_force.behind)
        if self._drain.begun:
            remarks.append("this node is leaving: it plans and claims nothing")
        return remarks

    def _turning(self) -> str | None:
        now = self._clock.monotonic()
        stale = [name for name, loop in self._loops.items() if now - loop.turned_at > STALE]
        return f"no turn for {STALE:g} s: {', '.join(stale)}" if stale else None

    def _answering(self) -> str | None:
        """A database may answer those that read, and not those that write."""
        ailing = next((self._loops[name].ailing for name in ASKING if self._loops[name].ailing is not None), None)
        return f"the database does not answer: {ailing}" if ailing is not None else None

    def _newest(self) -> str | None:
        return self._in_force.behind
