"""Readiness: whether this node can do its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from scheduler.core.execution import Clock
from scheduler.core.remark import Remark
from scheduler.engine.health import ESSENTIAL, Health
from scheduler.engine.in_force import InForce
from scheduler.engine.loop import Loop
from scheduler.web.backend import Check

STALE = 30.0
"""Seconds without a turned loop after which a node is not ready. `status` says so earlier: whoever asks it is not sent
elsewhere by the answer."""

_EXPLAINS_LOOPS = {"loops", "database", "disk", "supervisor", "configuration"}


class Readiness:
    """`more` adds remarks of those who watch from further away, but for what follows from what has been said (the words
    that those remarks are about). They decide nothing: a node whose canary is silent takes webhooks as well as ever."""

    def __init__(
        self,
        loops: Mapping[str, Loop],
        clock: Clock,
        in_force: InForce,
        health: Health,
        more: Callable[[set[str]], list[Remark]] = lambda said: [],
    ) -> None:
        self._loops = loops
        self._clock = clock
        self._in_force = in_force
        self._health = health
        self._more = more

    def checks(self) -> Mapping[str, Check]:
        """By name: why that part is not ready, None if it is."""
        return {"loops": self._turning, "database": self._answering, "configuration": self._newest}

    def problems(self) -> list[Remark]:
        """What is wrong with this node, each thing once, its consequences not told apart: what `status` shows and
        `schedctl_daemon_problem` counts. A check that fails is among them or follows from one of them."""
        found = self._health.remarks()
        said = {one.about for one in found}
        now = self._clock.now()
        ailing = self._ailing()
        if ailing is not None and said.isdisjoint({"database", "disk"}):
            found.append(Remark("database", ailing, self._since(now), "schedctl db status"))
        elif (stale := self._turning()) is not None and said.isdisjoint(_EXPLAINS_LOOPS):
            found.append(Remark("loops", stale, self._since(now), "schedctl nodes"))
        return [*found, *self._more({one.about for one in found})]

    def reasons(self) -> list[str]:
        """Why this node is not ready, none if it is."""
        return [why for check in self.checks().values() if (why := check()) is not None]

    def remarks(self) -> list[str]:
        """`problems`, one sentence each."""
        return [problem.what for problem in self.problems()]

    def _since(self, now: datetime) -> datetime:
        """When the first of the essential loops stopped turning well."""
        first = min(self._loops[name].turned_at for name in ESSENTIAL)
        return now - timedelta(seconds=self._clock.monotonic() - first)

    def _turning(self) -> str | None:
        now = self._clock.monotonic()
        stale = [name for name in ESSENTIAL if now - self._loops[name].turned_at > STALE]
        return f"no turn for {STALE:g} s: {', '.join(stale)}" if stale else None

    def _answering(self) -> str | None:
        """The keeper asks the database at every turn; the others may find that it answers and takes nothing."""
        ailing = self._ailing()
        return f"the database does not answer: {ailing}" if ailing is not None else None

    def _ailing(self) -> str | None:
        """Why the database does not answer, if that is what loops wait for."""
        keeper = self._loops["keeper"]
        waits = keeper.ailing if keeper.waits_for == "database" else None
        return waits or next(iter(self._health.without_database()), None)

    def _newest(self) -> str | None:
        return self._in_force.behind
