"""Who watches the watcher: the canary, the pings to dead man's switches outside, and what is known of both.

The first ring, the service manager's watchdog, is in service.py; the third, Prometheus, watches from outside. See
docs/heartbeats.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from scheduler.config.secrets import read_secret
from scheduler.core.canary import CanaryFacts
from scheduler.core.execution import Clock
from scheduler.core.notices import Bus
from scheduler.core.ping import DAEMON, Send, Standing
from scheduler.core.remark import Remark
from scheduler.engine.canary import Canary
from scheduler.engine.daemon_ping import DaemonPing
from scheduler.engine.in_force import InForce
from scheduler.engine.loop import Loop
from scheduler.engine.outages import Outages
from scheduler.engine.pinger import Pinger
from scheduler.engine.targets import Targets
from scheduler.store.store import SqlStore

_HIDES_CANARY = {"database", "disk", "loops", "supervisor", "configuration", "clock"}
"""What a remark may be about that says already why the canary does not come through."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the rings need of the daemon. `url`: where its own ping goes; empty: nowhere. `full`: all slots of this node
    are taken. `leaving`: it starts nothing more. `ill`: why it is not ready, one sentence each."""

    store: SqlStore
    in_force: InForce
    bus: Bus
    clock: Clock
    node: Callable[[], str]
    send: Send
    url: str
    full: Callable[[], bool]
    leaving: Callable[[], bool]
    ill: Callable[[], list[str]]
    poke: Callable[[str], None]


class Rings:
    """Of one daemon; `loops` are to be hosted like all others."""

    def __init__(self, around: Surroundings, outages: Outages) -> None:
        store, clock = around.store, around.clock
        self._ill = around.ill
        self._clock = clock
        self._targets = Targets()
        self._canary = Canary(store, store, clock, around.full, around.leaving)
        self._pinger = Pinger(
            store,
            store,
            around.in_force,
            clock,
            around.node,
            around.send,
            lambda secret: read_secret("heartbeat.ping_url", secret, os.environ),
            lambda: around.poke("pings"),
            self._targets,
        )
        around.bus.subscribe(self._pinger.hear)
        self.loops: dict[str, Loop] = {
            "canary": Loop("canary", self._canary.tick, store.now, outages=outages),
            "pings": Loop("pings", self._pinger.tick, store.now, outages=outages),
        }
        self._own = bool(around.url)
        if self._own:
            # Neither the database nor what waits for it may keep this one from telling that it does not answer.
            daemon_ping = DaemonPing(around.url, self._reasons, around.leaving, around.send, clock, self._targets)
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
