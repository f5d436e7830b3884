"""The composition root: the only file that knows every part and joins them."""

from __future__ import annotations

import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from importlib.metadata import version

import structlog

from scheduler.core.canary import CANARY, written
from scheduler.core.canary import KIND as CANARY_KIND
from scheduler.core.job import Configuration
from scheduler.core.model import Output
from scheduler.core.notices import Bus, Notice
from scheduler.core.schedule import TZDATA_VERSION
from scheduler.doors import Doors
from scheduler.engine.beats import Beats
from scheduler.engine.canary import CanaryExecutor
from scheduler.engine.clock import SystemClock
from scheduler.engine.daemon import Daemon
from scheduler.engine.desk import Desk
from scheduler.engine.drain import Drain
from scheduler.engine.find import no_job
from scheduler.engine.gate import TokenGate
from scheduler.engine.health import Health, Watched
from scheduler.engine.hints import HINTED, Hints
from scheduler.engine.in_force import InForce
from scheduler.engine.inbox import EventInbox
from scheduler.engine.intake import Intake
from scheduler.engine.keeper import Keeper
from scheduler.engine.lookout import Lookout
from scheduler.engine.loop import Loop
from scheduler.engine.outages import Outages
from scheduler.engine.planner import HEARING, Planner
from scheduler.engine.reload import Reloader
from scheduler.engine.scans import Scanner
from scheduler.engine.signs import SignDesk
from scheduler.engine.turns import Turns
from scheduler.engine.vigil import Vigil
from scheduler.engine.worker import Worker
from scheduler.executors.attempts.prepare import Preparation
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.executors.context import Context
from scheduler.executors.registry import create_executors, informed
from scheduler.files import JobsFile
from scheduler.membership import Members, Membership
from scheduler.observe.daemon_families import OwnState
from scheduler.observe.logs import LogCounts
from scheduler.observe.metrics import Metrics, Refresher
from scheduler.observe.notify_socket import NotifySocket
from scheduler.observe.pinging import Sender
from scheduler.patience import Patience
from scheduler.readiness import Readiness
from scheduler.rings import Rings
from scheduler.service import Parts, Service
from scheduler.settings import Settings
from scheduler.signatures.registry import build
from scheduler.store.store import SqlStore
from scheduler.supervisor.owner import Owner
from scheduler.supervisor.state import StateLock
from scheduler.telling import Telling
from scheduler.upkeep import Upkeep
from scheduler.web.backend import Backend
from scheduler.web.reception import Receptions

log = structlog.get_logger("daemon")

VERSION = version("schedulerd")


class App:
    """The parts of one daemon, as they know each other; `Life` starts and stops them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.bus = Bus(_listener_failed, unheard=CANARY)
        self.in_force = InForce()
        self.file = JobsFile(settings.config)
        self.membership = Membership(settings, VERSION, self.bus, self.clock, self.in_force)
        self._node = self.membership.node
        self.log_counts = LogCounts()
        self.service = Service(NotifySocket.of(os.environ))
        self.patience = Patience(self.service.stage)
        self.doors = Doors(settings, VERSION, lambda: self.patience.reason)

    def join(self, store: SqlStore, lock: StateLock, more_locks: tuple[int, ...]) -> None:
        """Makes the parts that need the database. `lock` is on the state directory, `more_locks` are the descriptors of
        those on the database."""
        settings, bus, clock, in_force = self.settings, self.bus, self.clock, self.in_force
        self.store = store
        lease = settings.lease if store.kind == "postgresql" else None
        self.starting = ThreadPoolExecutor(1, thread_name_prefix="start")
        self.owner = Owner(
            lock,
            self._node(),
            lambda pid: self.daemon.post(partial(self.membership.replace_supervisor, pid)),
            more_locks,
        )
        self.records = AttemptRecords(settings.state_dir, os.environ)
        wake = partial(self._poke, "worker")
        self._scanner = Scanner(store, in_force, bus, lambda now: self.reloader.follow(now), wake)
        context = Context(self.owner, self.records, os.environ, settings.slots, str(self.file.folder), self._scanner)
        self.executors = informed(create_executors(context), context)
        self.executors[CANARY_KIND] = CanaryExecutor(lambda run, attempt: self.records.of(run, attempt).finish())
        turns = Turns(clock, lambda: self._loops["planner"].obstacle)
        self.reloader = Reloader(
            store,
            in_force,
            bus,
            self.file.load,
            self.file.load_texts,
            self.file.describe,
            self.file.warnings,
            self.service.reloading,
            check=shlex.join(["schedctl", "check", str(self.file.path)]),
            judge=lambda job, due, now: turns.judge(job, self.worker.amend(due, now), now),
        )
        self.worker = Worker(
            store,
            in_force,
            self.executors,
            Preparation(self.records, os.environ).prepare,
            self.records,
            bus,
            clock,
            self._node,
            settings.slots,
            None if settings.queues is None else (*settings.queues, CANARY),
            wake,
            lambda delay: self.daemon.poke_later("worker", delay),
            self.reloader.follow,
            self.starting.submit,
            lambda: self._beats.trusted,
        )
        self._planner = Planner(
            store,
            in_force,
            bus,
            self._node,
            self.worker.claim,
            self.worker.take,
            self.worker.amend,
            lambda: self.daemon.poke_later("planner", HEARING),
            turns,
        )
        self._beats = Beats(
            store,
            in_force,
            bus,
            clock,
            lambda: self.owner,
            self._node,
            lease,
            lambda: self.daemon.post(self.membership.begin_anew),
            lambda: self.hints.word(self.in_force.behind),
            lambda delay: self.daemon.poke_later("beats", delay),
            lambda: self._poke("worker"),
        )
        # What a dead node ran goes on at once.
        bus.subscribe(lambda _: self._poke("keeper"), "node.dead")
        bus.subscribe(lambda _: self._poke("worker"), "run.lost")
        self.hints = Hints(lambda: self._beats.alone, lambda: self.worker.takes_all, self._poke)
        bus.subscribe(self.hints.notice, *HINTED)
        self._keeper = Keeper(store, in_force, bus, clock, self.records, self.reloader.follow)
        self.drain = Drain(store, self.worker, bus, clock, self._node, settings.drain_timeout)
        self.membership.join(Members(store, lease, self.owner, self._beats, self.worker, self.drain))
        self.intake = Intake(
            store,
            in_force,
            bus,
            clock,
            self._node,
            self.worker.claim,
            self.worker.take,
            self.reloader.follow,
            lambda name: no_job(name, in_force.current.configuration.jobs),
        )
        self.inbox = EventInbox(store, in_force, bus, self.reloader.follow, wake)
        self._signs = SignDesk(store, in_force, bus, clock, self.reloader.follow)
        self._desk = Desk(store, store, in_force, self.reloader, bus, wake, self.intake)
        self.gate = TokenGate(store, clock, bus)
        self._outages = Outages()
        self._lookout = Lookout(store, clock, self._node, lambda: in_force.current.generation, self._outages)
        self._upkeep = Upkeep(
            store, in_force, bus, clock, self._node, settings, self.file, self.reloader, self._outages, self._lookout
        )
        self._rings = Rings(
            store,
            in_force,
            bus,
            clock,
            self._node,
            settings,
            self.worker,
            self.drain,
            lambda: self._readiness.reasons(),
            Sender(f"schedulerd/{VERSION}"),
            self._poke,
            self._outages,
            self._lookout,
        )
        self._vigil = Vigil(store, in_force, bus)
        self.telling = Telling(store, in_force, bus, self._node, settings, self._poke, self._lookout)
        self._loops = self._make_loops()
        self._metrics = Metrics(
            bus,
            VERSION,
            TZDATA_VERSION,
            configuration=self._configuration,
            loops=self._loops,
            broken=lambda: self._upkeep.invariants.broken,
            own=self._own_state,
            messages=self.log_counts.now,
            job_histograms=settings.job_histograms,
        )
        self._loops["metrics"] = self._lookout.loop("metrics", Refresher(self._metrics, store), self._lookout.now)
        self.daemon = Daemon(self._loops, clock, {"planner": self._planner.ahead, "vigil": self._vigil.next_due})
        self._health = Health(self._watched(), bus, clock)
        self._readiness = Readiness(self._loops, clock, in_force, self._health, self._rings.remarks)
        self.backend = self._make_backend()
        self.service.join(Parts(self._loops, self._readiness, self.drain, self.worker.running, self._jobs))

    def _make_loops(self) -> dict[str, Loop]:
        loop, now = self._lookout.loop, self.store.now
        loops = {
            "planner": loop("planner", self._planner, now),
            "keeper": loop("keeper", self._keeper, now),
            "inbox": loop("inbox", self.inbox, now),
            "vigil": loop("vigil", self._vigil, self._lookout.now),
            "signs": loop("signs", self._signs, self.clock.now),
            # The supervisor, time-outs, idle workers and what has exited do not wait for a database that is away.
            "beats": loop("beats", self._beats, self._lookout.now, first=self._beats.listen),
            "worker": loop("worker", self.worker, now, first=self.worker.end_late),
            "children": Loop("children", self._mind_children, self.clock.now, outages=self._outages),
        }
        return loops | self._upkeep.loops | self._rings.loops | self.telling.loops

    def _poke(self, loop: str) -> None:
        self.daemon.poke(loop)

    def _watched(self) -> Watched:
        return Watched(
            self._loops,
            self.in_force,
            self._upkeep.invariants,
            self.reloader,
            self.drain,
            self._keeper,
            self._beats,
            self._upkeep.disk,
            lambda: (self.owner.supervisor_pid, self.owner.silent_for()),
        )

    def _own_state(self) -> OwnState:
        return OwnState(
            problems={problem.about for problem in self._readiness.problems()},
            aside=self.in_force.behind is not None,
            slots=self.settings.slots,
            taken=len(self.worker.live()),
            clock_offset=self._beats.offset,
            canary=self._rings.canary(),
            pings=self._rings.pings(),
        )

    def _mind_children(self, now: datetime) -> int:
        idle = sum(executor.tick(self.clock.monotonic()) for executor in self.executors.values())
        return idle + self.owner.reap()

    def _make_backend(self) -> Backend:
        return Backend(
            readable=self.store,
            commands=self._desk,
            bus=self.bus,
            now=self.store.now,
            configuration=self._configuration,
            version=VERSION,
            node=self._node,
            gate=self.gate,
            inbox=self.inbox,
            signs=self._signs,
            receptions=Receptions(lambda: self._configuration().sources, build, os.environ),
            checks=self._readiness.checks(),
            metrics=self._metrics.render,
            live_output=self._live_output,
            remarks=self._readiness.problems,
            holdup=self._health.holdup,
            served=self._metrics.served,
            received=self._metrics.received,
            address=lambda: self.doors.address,
            try_channel=self.telling.notifier.try_channel,
            elsewhere=self.hints.when_settled,
        )

    # ------------------------------------------------------------ answering

    def _configuration(self) -> Configuration:
        return self.in_force.current.configuration

    def _jobs(self) -> int:
        return written(self._configuration().jobs)

    def _live_output(self, run: str, attempt: int) -> Output | None:
        if all(live.id != run for live in self.worker.live()):
            return None
        return self.records.of(run, attempt).output()


def _listener_failed(notice: Notice, error: Exception) -> None:
    log.error("listener_failed", notice=notice.name, error=f"{type(error).__name__}: {error}")
