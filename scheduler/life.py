"""The life of a daemon: the order in which its parts start, serve and stop."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial

import structlog

from scheduler.app import VERSION, App
from scheduler.core.canary import written
from scheduler.core.errors import SchedulerError, Unavailable
from scheduler.core.job import Configuration
from scheduler.engine.in_force import Loaded
from scheduler.engine.recovery import recover
from scheduler.installation import lock_database, open_own_store
from scheduler.memory import Lull, compacted, give_back
from scheduler.observe.logs import configure_logs, log_notices
from scheduler.observe.spans import export_spans
from scheduler.patience import ToldToStop
from scheduler.settings import Settings
from scheduler.succession import succeed
from scheduler.supervisor.state import StateLock, forget_exits

log = structlog.get_logger("daemon")

UNWRITTEN = 74
"""The exit status of a daemon that could not write how its runs ended, or that it left (EX_IOERR of sysexits.h)."""


class Life:
    """Of one daemon. `run` returns its exit status; StartError and InvalidInput come out of it before anything
    started."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app = App(settings)
        self._lull = Lull(self._tidy, busy=lambda: not self._app.worker.idle)

    def run(self) -> int:
        """From the lock on the state directory to the end of the drain."""
        try:
            self._run(self._app)
        except ToldToStop:
            log.info("stopped", detail="before the daemon had started")
            return 0
        return 0 if self._app.drain.unwritten is None else UNWRITTEN

    def _run(self, app: App) -> None:
        settings, stage, until_done = self._settings, app.service.stage, app.patience.until_done
        configure_logs(settings.log_format, counts=app.log_counts)
        log_notices(app.bus)
        app.service.start()
        stage("Reading the jobs file")
        read = [app.file.load()]  # Of which nothing must be kept here.
        with ExitStack() as stack:
            stack.callback(export_spans(app.bus, os.environ, VERSION))
            stage("Taking the state directory")
            say = partial(log.warning, "state_directory_held")
            lock = StateLock.acquire(settings.state_dir, say=lambda text: say(detail=text))
            stack.callback(lock.release)
            more_locks = lock_database(settings, stack)
            app.doors.open()
            stack.callback(app.doors.close)
            stage("Opening the database, and migrating it if need be")
            stack.enter_context(app.patience)
            store = stack.enter_context(closing(until_done(partial(open_own_store, settings, VERSION))))
            app.join(store, lock, more_locks)
            until_done(lambda: app.doors.check(app.gate, app.clock.now()))
            stage("Putting the file in force, settling what the former daemon left")
            self._inherit(app, read.pop(), lock)
            self._start(app)
            app.daemon.serve(until=self._round)
            app.service.leave()
            self._stop(app)

    def _inherit(self, app: App, configuration: Configuration, lock: StateLock) -> None:
        until_done = app.patience.until_done
        inherited = until_done(lambda: succeed(app.store, lock, app.records, configuration, app.owner.cgroup))
        until_done(
            lambda: app.reloader.start(
                configuration,
                author="start",
                node=app.membership.node(),
                gone=inherited.nodes,
                finished=inherited.finished,
                after_restore=self._settings.after_restore,
            )
        )
        now = until_done(app.store.now)
        boottime = app.clock.boottime()

        def recovered() -> int:
            # Another node may have put a newer file in force since.
            app.reloader.follow(app.store.now())
            return recover(
                app.store, app.in_force, app.bus, app.records, inherited.nodes, inherited.known, now, boottime
            )

        until_done(recovered)
        forget_exits(self._settings.state_dir)

    def _start(self, app: App) -> None:
        app.owner.open()
        app.patience.until_done(app.membership.register)
        app.daemon.on_signal(signal.SIGTERM, app.drain.begin)
        app.daemon.on_signal(signal.SIGINT, app.drain.begin)
        app.daemon.on_signal(signal.SIGHUP, self._reload_aside)
        if app.patience.told:
            app.daemon.post(app.drain.begin)
        app.daemon.start()
        app.hints.start(app.store.ear(app.hints.said, app.hints.heard))
        app.intake.start()
        app.inbox.start()
        app.doors.serve(app.backend)
        node = app.membership.node()
        log.info(
            "started",
            version=VERSION,
            node=node,
            jobs=written(app.in_force.current.configuration.jobs),
            http=app.doors.address or "nowhere",
            webhooks=app.doors.webhook_address or app.doors.address or "nowhere",
            database=app.store.kind,
        )
        app.bus.publish("node.started", node=node, version=VERSION)
        app.doors.offer_link(app.gate)
        self._lull.ask()  # When all loops have turned: to read ten thousand gauges takes its room, too.
        app.bus.subscribe(lambda _: self._loaded(), "config.loaded")

    def _stop(self, app: App) -> None:
        app.doors.close()
        app.intake.stop()
        app.inbox.stop()
        app.daemon.shutdown()
        app.starting.shutdown()
        app.telling.close()
        with suppress(Unavailable):  # What cannot be settled now is settled by the next daemon.
            app.worker.tick(app.store.now())
        app.hints.stop()  # What this node gives back others may take at once.
        for executor in app.executors.values():
            executor.close()
        app.owner.close()
        app.drain.finish()

    def _reload_aside(self) -> None:
        """A file takes its time to read, and the main thread has other duties."""

        def reload() -> None:
            try:
                self._app.reloader.reload(author="SIGHUP")
            except SchedulerError:
                return  # Said and counted by the reload itself.

        threading.Thread(target=reload, name="reload").start()

    def _round(self) -> bool:
        """Of the main thread; true when there is nothing left to wait for."""
        self._app.service.round()
        self._lull.round()
        return self._app.drain.over()

    def _loaded(self) -> None:
        """By whoever has just put a configuration in force. Until then nobody here planned the jobs that it changed,
        and what it planned itself waits to be claimed."""
        self._app.daemon.poke("planner")
        self._app.daemon.poke("worker")
        self._app.file.let_go()
        self._lull.ask()

    def _tidy(self) -> None:
        self._app.file.let_go()
        loaded = self._app.in_force.current
        compact = replace(loaded.configuration, jobs=compacted(loaded.configuration.jobs))
        self._app.in_force.renew(loaded, Loaded.of(loaded.generation, compact))
        del loaded
        self._app.store.let_go()
        give_back()
