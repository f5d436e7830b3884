"""The composition root: the only file that knows every part and joins them."""

from __future__ import annotations

import os
import shlex
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from datetime import datetime
from functools import partial
from importlib.metadata import version

import structlog

from scheduler.core.errors import SchedulerError, Unavailable
from scheduler.core.job import Configuration
from scheduler.core.model import Output
from scheduler.core.notices import Bus, Notice
from scheduler.core.schedule import TZDATA_VERSION
from scheduler.doors import Doors
from scheduler.engine.audit import Auditor
from scheduler.engine.beats import Beats
from scheduler.engine.clock import SystemClock
from scheduler.engine.daemon import Daemon
from scheduler.engine.desk import Desk
from scheduler.engine.disk import Disk
from scheduler.engine.drain import Drain
from scheduler.engine.find import no_job
from scheduler.engine.gate import TokenGate
from scheduler.engine.health import Health, Watched
from scheduler.engine.in_force import InForce
from scheduler.engine.intake import Intake
from scheduler.engine.invariants import Invariants
from scheduler.engine.keeper import Keeper
from scheduler.engine.loop import Loop
from scheduler.engine.planner import Planner
from scheduler.engine.recovery import recover
from scheduler.engine.reload import Reloader
from scheduler.engine.retention import Retention
from scheduler.engine.turns import Turns
from scheduler.engine.watch import Watch
from scheduler.engine.worker import Worker
from scheduler.executors.attempts.prepare import Preparation
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.executors.context import Context
from scheduler.executors.registry import create_executors
from scheduler.files import JobsFile
from scheduler.installation import folders, lock_database, open_own_store
from scheduler.membership import Members, Membership
from scheduler.memory import give_back
from scheduler.observe.daemon_families import OwnState
from scheduler.observe.logs import LogCounts, configure_logs, log_notices
from scheduler.observe.metrics import Metrics
from scheduler.observe.notify_socket import NotifySocket
from scheduler.patience import Patience, ToldToStop
from scheduler.readiness import Readiness
from scheduler.service import Parts, Service
from scheduler.settings import Settings
from scheduler.store.store import SqlStore
from scheduler.succession import succeed
from scheduler.supervisor.owner import Owner
from scheduler.supervisor.state import StateLock, forget_exits
from scheduler.web.backend import Backend

log = structlog.get_logger("daemon")

VERSION = version("schedulerd")


class App:
    """One daemon. `run` returns its exit status; StartError and InvalidInput come out of it before anything started."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._bus = Bus(_listener_failed)
        self._in_force = InForce()
        self._file = JobsFile(settings.config)
        self._membership = Membership(settings, VERSION, self._bus, self._clock, self._in_force)
        self._node = self._membership.node
        self._log_counts = LogCounts()
        self._service = Service(NotifySocket.of(os.environ))
        self._patience = Patience(self._service.stage)
        self._doors = Doors(settings, VERSION, lambda: self._patience.reason)

    def run(self) -> int:
        """From the lock on the state directory to the end of the drain."""
        try:
            return self._run()
        except ToldToStop:
            log.info("stopped", detail="before the daemon had started")
            return 0

    def _run(self) -> int:
        settings = self._settings
        configure_logs(settings.log_format, counts=self._log_counts)
        log_notices(self._bus)
        self._bus.subscribe(_tidy)
        self._service.start()
        self._service.stage("Reading the jobs file")
        configuration = self._file.load()
        with ExitStack() as stack:
            self._service.stage("Taking the state directory")
            say = partial(log.warning, "state_directory_held")
            lock = StateLock.acquire(settings.state_dir, say=lambda text: say(detail=text))
            stack.callback(lock.release)
            more_locks = lock_database(settings, stack)
            self._doors.open()
            stack.callback(self._doors.close)
            self._service.stage("Opening the database, and migrating it if need be")
            patience = stack.enter_context(self._patience)
            store = stack.enter_context(closing(patience.until_done(partial(open_own_store, settings, VERSION))))
            self._join(store, lock, more_locks)
            patience.until_done(lambda: self._doors.check(self._gate, self._clock.now()))
            self._service.stage("Putting the file in force, settling what the former daemon left")
            self._start(configuration, lock)
            self._daemon.serve(until=self._round)
            self._service.leave()
            self._stop()
        return 0

    # ------------------------------------------------------------ joining

    def _join(self, store: SqlStore, lock: StateLock, more_locks: tuple[int, ...]) -> None:
        settings, bus, clock, in_force = self._settings, self._bus, self._clock, self._in_force
        self._store = store
        lease = settings.lease if store.kind == "postgresql" else None
        self._starting = ThreadPoolExecutor(1, thread_name_prefix="start")
        self._owner = Owner(
            lock,
            self._node(),
            lambda pid: self._daemon.post(partial(self._membership.replace_supervisor, pid)),
            more_locks,
        )
        self._records = AttemptRecords(settings.state_dir, os.environ)
        self._executors = create_executors(
            Context(self._owner, self._records, os.environ, settings.slots, str(self._file.folder))
        )
        preparation = Preparation(self._records, os.environ)
        turns = Turns(clock, lambda: self._loops["planner"].obstacle)
        self._reloader = Reloader(
            store,
            in_force,
            bus,
            self._file.load,
            self._file.load_texts,
            self._file.describe,
            self._file.warnings,
            self._service.reloading,
            check=shlex.join(["schedctl", "check", str(self._file.path)]),
            judge=turns.judge,
        )
        self._worker = Worker(
            store,
            in_force,
            self._executors,
            preparation.prepare,
            self._records,
            bus,
            clock,
            self._node,
            settings.slots,
            settings.queues,
            lambda: self._daemon.poke("worker"),
            self._reloader.follow,
            self._starting.submit,
        )
        self._planner = Planner(store, in_force, bus, self._node, self._worker.claim, self._worker.take, turns)
        self._beats = Beats(
            store,
            in_force,
            bus,
            clock,
            lambda: self._owner,
            self._node,
            lease,
            lambda: self._daemon.post(self._membership.begin_anew),
        )
        self._keeper = Keeper(store, in_force, bus, clock, self._records, self._reloader.follow)
        self._invariants = Invariants(store, store, bus)
        self._drain = Drain(store, self._worker, bus, clock, self._node, settings.drain_timeout)
        self._membership.join(Members(store, lease, self._owner, self._beats, self._worker, self._drain))
        self._intake = Intake(
            store,
            in_force,
            bus,
            clock,
            self._node,
            self._worker.claim,
            self._worker.take,
            self._reloader.follow,
            lambda name: no_job(name, in_force.current.configuration.jobs),
        )
        self._desk = Desk(
            store, store, in_force, self._reloader, bus, lambda: self._daemon.poke("worker"), self._intake
        )
        self._gate = TokenGate(store, clock, bus)
        self._disk = Disk(folders(settings))
        self._loops = self._make_loops()
        self._daemon = Daemon(self._loops, clock, self._planner.next_due)
        self._metrics = Metrics(
            bus,
            VERSION,
            TZDATA_VERSION,
            configuration=self._configuration,
            loops=self._loops,
            broken=lambda: self._invariants.broken,
            own=self._own_state,
            messages=self._log_counts.now,
        )
        self._health = Health(self._watched(), bus, clock)
        self._readiness = Readiness(self._loops, clock, in_force, self._health)
        self._backend = self._make_backend()
        self._service.join(
            Parts(self._loops, self._readiness, self._drain, self._worker.live, lambda: len(self._configuration().jobs))
        )

    def _make_loops(self) -> dict[str, Loop]:
        retention = Retention(self._store, self._in_force, self._bus)
        auditor = Auditor(self._store, self._bus, self._node)
        ticks = {
            "planner": self._planner.tick,
            "keeper": self._keeper.tick,
            "invariants": self._invariants.tick,
            "audit": auditor.tick,
            "retention": retention.tick,
            "metrics": self._refresh_metrics,
        }
        if self._settings.watch:
            watch = Watch(self._file.fingerprint, lambda: self._reloader.reload(author="file watch"))
            ticks["watch"] = watch.tick
        loops = {name: Loop(name, tick, self._store.now) for name, tick in ticks.items()}
        # The supervisor, time-outs, idle workers and what has exited do not wait for a database that is away.
        loops["beats"] = Loop("beats", self._beats.tick, self._store.now, first=self._beats.listen)
        loops["worker"] = Loop("worker", self._worker.tick, self._store.now, first=self._worker.end_late)
        loops["children"] = Loop("children", self._mind_children, self._clock.now)
        loops["disk"] = Loop("disk", self._disk.tick, self._clock.now)
        return loops

    def _watched(self) -> Watched:
        return Watched(
            self._loops,
            self._in_force,
            self._invariants,
            self._reloader,
            self._drain,
            self._keeper,
            self._beats,
            self._disk,
            lambda: (self._owner.supervisor_pid, self._owner.silent_for()),
        )

    def _own_state(self) -> OwnState:
        return OwnState(
            problems={problem.about for problem in self._readiness.problems()},
            aside=self._in_force.behind is not None,
            slots=self._settings.slots,
            taken=len(self._worker.live()),
            clock_offset=self._beats.offset,
        )

    def _mind_children(self, now: datetime) -> int:
        idle = sum(executor.tick(self._clock.monotonic()) for executor in self._executors.values())
        return idle + self._owner.reap()

    def _make_backend(self) -> Backend:
        return Backend(
            readable=self._store,
            commands=self._desk,
            bus=self._bus,
            now=self._store.now,
            configuration=self._configuration,
            version=VERSION,
            node=self._node,
            gate=self._gate,
            checks=self._readiness.checks(),
            metrics=self._metrics.render,
            live_output=self._live_output,
            remarks=self._readiness.problems,
            holdup=self._health.holdup,
            served=self._metrics.served,
            address=lambda: self._doors.address,
        )

    # ------------------------------------------------------------ starting and stopping

    def _start(self, configuration: Configuration, lock: StateLock) -> None:
        patient = self._patience.until_done
        inherited = patient(lambda: succeed(self._store, lock, self._records, configuration, self._owner.cgroup))
        patient(
            lambda: self._reloader.start(
                configuration,
                author="start",
                node=self._node(),
                gone=inherited.nodes,
                after_restore=self._settings.after_restore,
            )
        )
        now = patient(self._store.now)
        boottime = self._clock.boottime()
        patient(
            lambda: recover(
                self._store, self._in_force, self._bus, self._records, inherited.nodes, inherited.known, now, boottime
            )
        )
        forget_exits(self._settings.state_dir)
        self._owner.open()
        patient(self._membership.register)
        self._daemon.on_signal(signal.SIGTERM, self._drain.begin)
        self._daemon.on_signal(signal.SIGINT, self._drain.begin)
        self._daemon.on_signal(signal.SIGHUP, self._reload_aside)
        if self._patience.told:
            self._daemon.post(self._drain.begin)
        self._daemon.start()
        self._intake.start()
        self._doors.serve(self._backend)
        log.info(
            "started",
            version=VERSION,
            node=self._node(),
            jobs=len(configuration.jobs),
            http=self._doors.address or "nowhere",
            database=self._store.kind,
        )
        self._bus.publish("node.started", node=self._node(), version=VERSION)
        self._doors.offer_link(self._gate)

    def _stop(self) -> None:
        self._doors.close()
        self._intake.stop()
        self._daemon.shutdown()
        self._starting.shutdown()
        with suppress(Unavailable):  # What cannot be settled now is settled by the next daemon.
            self._worker.tick(self._store.now())
        for executor in self._executors.values():
            executor.close()
        self._owner.close()
        self._drain.finish()

    def _reload_aside(self) -> None:
        """A file takes its time to read, and the main thread has other duties."""

        def reload() -> None:
            try:
                self._reloader.reload(author="SIGHUP")
            except SchedulerError:
                return  # Said and counted by the reload itself.

        threading.Thread(target=reload, name="reload").start()

    def _round(self) -> bool:
        """Of the main thread; true when there is nothing left to wait for."""
        self._service.round()
        return self._drain.over()

    # ------------------------------------------------------------ answering

    def _configuration(self) -> Configuration:
        return self._in_force.current.configuration

    def _live_output(self, run: str, attempt: int) -> Output | None:
        if all(live.id != run for live in self._worker.live()):
            return None
        return self._records.outputs([(run, attempt)])[0]

    def _refresh_metrics(self, now: object) -> int:
        self._metrics.refresh(self._store, self._store.now())
        return 0


def _tidy(notice: Notice) -> None:
    if notice.name in ("config.loaded", "node.started"):
        give_back()


def _listener_failed(notice: Notice, error: Exception) -> None:
    log.error("listener_failed", notice=notice.name, error=f"{type(error).__name__}: {error}")
