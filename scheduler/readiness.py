"""Readiness: whether this node can do its work."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.core.execution import Clock
from scheduler.engine.health import ESSENTIAL, Health
from scheduler.engine.in_force import InForce
from scheduler.engine.loop import Loop
from scheduler.web.backend import Check

STALE = 30.0
"""Seconds without a turned loop after which a node is not ready. `status` says so earlier: whoever asks it is not sent
elsewhere by the answer."""


class Readiness:
    def __init__(self, loops: Mapping[str, Loop], clock: Clock, in_force: InForce, health: Health) -> None:
        self._loops = loops
        self._clock = clock
        self._in_force = in_force
        self._health = health

    def checks(self) -> Mapping[str, Check]:
        """By name: why that part is not ready, None if it is."""
        return {"loops": self._turning, "database": self._answering, "configuration": self._newest}

    def remarks(self) -> list[str]:
        """What is wrong with this node, one sentence each; none when all is well."""
        return [remark.what for remark in self._health.remarks()]

    def _turning(self) -> str | None:
        now = self._clock.monotonic()
        stale = [name for name in ESSENTIAL if now - self._loops[name].turned_at > STALE]
        return f"no turn for {STALE:g} s: {', '.join(stale)}" if stale else None

    def _answering(self) -> str | None:
        """The keeper asks the database at every turn; the others may find that it answers and takes nothing."""
        ailing = self._loops["keeper"].ailing or next(iter(self._health.unavailable()), None)
        return f"the database does not answer: {ailing}" if ailing is not None else None

    def _newest(self) -> str | None:
        return self._in_force.behind
