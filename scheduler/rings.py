"""Who watches the watcher: the canary, the pings to dead man's switches outside, and what is known of both.

The first ring, the service manager's watchdog, is in service.py; the third, Prometheus, watches from outside. See
docs/heartbeats.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime

from scheduler.config.secrets import read_secret
from scheduler.core.canary import CanaryFacts
from scheduler.core.execution import Clock
from scheduler.core.notices import Bus
from scheduler.core.ping import DAEMON, Send, Standing
from scheduler.core.remark import Remark
from scheduler.engine.canary import Canary
from scheduler.engine.daemon_ping import DaemonPing
from scheduler.engine.drain import Drain
from scheduler.engine.in_force import InForce
from scheduler.engine.lookout import Lookout
from scheduler.engine.loop import Loop
from scheduler.engine.outages import Outages
from scheduler.engine.pinger import Pinger
from scheduler.engine.targets import Targets
from scheduler.engine.worker import Worker
from scheduler.settings import Settings
from scheduler.store.store import SqlStore

_HIDES_CANARY = {"database", "disk", "loops", "supervisor", "configuration", "clock"}
"""What a remark may be about that says already why the canary does not come through."""


class Rings:
    """Of one daemon; `loops` are to be hosted like all others."""

    def __init__(
        self,
        store: SqlStore,
        in_force: InForce,
        bus: Bus,
        clock: Clock,
        node: Callable[[], str],
        settings: Settings,
        worker: Worker,
        drain: Drain,
        ill: Callable[[], list[str]],
        send: Send,
        poke: Callable[[str], None],
        outages: Outages,
        lookout: Lookout,
    ) -> None:
        """`ill`: why the node is not ready, one sentence each."""
        self._ill = ill
        self._clock = clock
        self._targets = Targets()
        full, leaving = (lambda: len(worker.live()) >= settings.slots), (lambda: drain.begun)
        self._canary = Canary(store, store, clock, full, leaving)
        self._pinger = Pinger(
            store,
            store,
            in_force,
            clock,
            node,
            send,
            lambda secret: read_secret("heartbeat.ping_url", secret, os.environ),
            lambda: poke("pings"),
            self._targets,
        )
        bus.subscribe(self._pinger.hear, "run.started", "run.settled")
        self.loops = {
            "canary": lookout.loop("canary", self._canary, clock.now),
            "pings": lookout.loop("pings", self._pinger, clock.now),
        }
        self._own = bool(settings.ping_url)
        if self._own:
            # Neither the database nor what waits for it may keep this one from telling that it does not answer.
            daemon_ping = DaemonPing(settings.ping_url, self._reasons, leaving, send, clock, self._targets)
            self.loops["daemon_ping"] = Loop("daemon_ping", daemon_ping.tick, clock.now, outages=outages)

    def remarks(self, said: set[str]) -> list[Remark]:
        """What is wrong, but for what follows from what was `said`."""
        now = self._clock.now()
        silent = self._canary.remarks(now) if said.isdisjoint(_HIDES_CANARY) else []
        return [*silent, *self._targets.remarks(now)]

    def canary(self) -> CanaryFacts:
        return self._canary.facts(self._clock.now())

    def pings(self) -> Mapping[str, Standing]:
        """Of each target, whether it was pinged yet or not."""
        return self._targets.standings(self._pinger.jobs | ({DAEMON} if self._own else set()))

    def _reasons(self) -> list[str]:
        now: datetime = self._clock.now()
        return [*self._ill(), *(remark.what for remark in self._canary.remarks(now))]
