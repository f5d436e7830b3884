"""This daemon as a node: its identity, its row, and the supervisor that serves it."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

import structlog

from scheduler.core.errors import SchedulerError, StartError, Unavailable
from scheduler.core.execution import Bus, Clock
from scheduler.core.ids import new_id
from scheduler.core.model import Node
from scheduler.core.ports import Store
from scheduler.core.value_object import value_object
from scheduler.engine.beats import Beats
from scheduler.engine.drain import Drain
from scheduler.engine.in_force import InForce
from scheduler.engine.worker import Worker
from scheduler.settings import Settings
from scheduler.supervisor.owner import Owner

log = structlog.get_logger("daemon")

TRIES = 3
"""So many supervisors may fail to come up, one after the other: whatever stopped or killed one may spare the next."""


@value_object
class Members:
    """What a node consists of. `lease` None: it has none (SQLite)."""

    store: Store
    lease: timedelta | None
    owner: Owner
    beats: Beats
    worker: Worker
    drain: Drain


class Membership:
    """The node's id is random and new with each daemon, and with each time that others have declared it dead."""

    def __init__(self, settings: Settings, version: str, bus: Bus, clock: Clock, in_force: InForce) -> None:
        self._settings = settings
        self._version = version
        self._bus = bus
        self._clock = clock
        self._in_force = in_force
        self._node = new_id()
        self._members: Members | None = None

    def node(self) -> str:
        return self._node

    def join(self, members: Members) -> None:
        """Before anything else is called, but for `node`."""
        self._members = members

    def register(self) -> None:
        """From now on the node may hold runs. Raises Unavailable."""
        members = self._joined()
        before, now = self._clock.boottime(), members.store.now()
        node = Node(
            id=self._node,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=self._version,
            started_at=now,
            lease=members.lease,
            slots=self._settings.slots,
            queues=self._settings.queues,
            generation=self._in_force.current.generation,
        )
        with members.store.begin() as tx:
            tx.nodes.register(node, now)
        members.beats.extend_trust(members.owner, before)

    def replace_supervisor(self, pid: int) -> None:
        """The supervisor with that process id ended: what it left is ended, its runs are lost, another one takes over.
        Nothing if another one has taken over already: who replaces a supervisor ends it first, and hears of that,
        too."""
        members = self._joined()
        if members.owner.supervisor_pid != pid:
            return
        members.beats.distrust()
        log.error("supervisor_gone", node=self._node)
        self._bus.publish("supervisor.gone", node=self._node)
        self._supervise_anew(members)
        if members.lease is None:
            members.beats.extend_trust(members.owner, self._clock.boottime())
        members.beats.hurry()

    def begin_anew(self) -> None:
        """This node was declared dead: everything of it ends, and it goes on under a new identity."""
        members = self._joined()
        members.worker.accepting = False
        members.beats.distrust()
        self._node = new_id()
        self._supervise_anew(members)
        try:
            self.register()
        except Unavailable as error:
            log.warning("node_not_registered", reason=str(error))  # The next beat finds it unknown and asks again.
        members.worker.accepting = not members.drain.begun

    def _supervise_anew(self, members: Members) -> None:
        for left in reversed(range(TRIES)):
            try:
                members.owner.replace(self._node)
                return
            except StartError as error:
                if not left:
                    raise SchedulerError(f"without a supervisor this daemon cannot go on: {error}") from error
                log.error("supervisor_not_started", reason=str(error), remedy="another one is tried at once")

    def _joined(self) -> Members:
        assert self._members is not None
        return self._members
