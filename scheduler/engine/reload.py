"""Reload: puts a file in force, follows what other nodes put in force, decides at start which of the two."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from scheduler.core.canary import lacks_canary, seen, written
from scheduler.core.commands import Reloaded
from scheduler.core.errors import InvalidInput, Refused, SchedulerError, StartError
from scheduler.core.execution import Bus
from scheduler.core.job import Configuration, Job
from scheduler.core.model import Generation
from scheduler.core.policy import Plan, plan
from scheduler.core.ports import Store, Transaction
from scheduler.core.requests import Due
from scheduler.core.schedule import SCHEDULE_CODE, TZDATA_VERSION
from scheduler.engine.in_force import InForce, Loaded
from scheduler.engine.line import Line
from scheduler.engine.planner import Planned, announce
from scheduler.engine.restored import write_off
from scheduler.engine.swap import Judge, compare, swap, waiting

log = structlog.get_logger("engine")

LIVE_WITHIN = timedelta(seconds=30)
"""A node whose beat is younger counts as live when another one starts."""
TRIES = 10.0
"""A generation that could not be loaded is tried again after this many times the time that the try took."""


class Reloader:
    """`load` reads the file (InvalidInput with all its errors), `load_texts` a stored generation, `describe` puts the
    changes between two configurations into words, per job, and `warn` says what `check` would of some jobs (None: of
    all, and of all else). `around` is entered while a file is put in force. `judge` decides about instants
    that are owed at that moment."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        bus: Bus,
        load: Callable[[], Configuration],
        load_texts: Callable[[Mapping[str, str]], Configuration],
        describe: Callable[[Configuration | None, Configuration], Mapping[str, tuple[str, ...]]],
        warn: Callable[[Configuration, Collection[str] | None], tuple[str, ...]],
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
        check: str = "schedctl check",
        judge: Judge = plan,
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._load = load
        self._load_texts = load_texts
        self._describe = describe
        self._warn = warn
        self._around = around
        self._check = check
        self._judge = judge
        self._line: Line[Reloaded] = Line()
        self.rejected: str | None = None
        """Why the last file was refused; None after one was taken."""
        self.remedy = check
        """What to type about that."""
        self.not_taken: str | None = None
        """Why the file was not put in force when this node started; None after one was taken."""
        self.not_taken_at: datetime | None = None
        self._following = threading.Lock()
        self._next_try = 0.0

    def reload(
        self, *, author: str, drop_pending: bool = False, if_hash: str | None = None, dry_run: bool = False
    ) -> Reloaded:
        """Reads the file and puts it in force; see core.commands.Commands.reload. Requests that arrive while one is
        loading share the next."""
        if dry_run:
            return self._preview(self._load())
        return self._line.share(
            (drop_pending, if_hash), lambda: self._put(author, drop_pending=drop_pending, if_hash=if_hash)
        )

    def start(
        self,
        file: Configuration,
        *,
        author: str,
        node: str,
        gone: Collection[str] = (),
        finished: Collection[tuple[str, int]] = (),
        after_restore: bool = False,
    ) -> Reloaded:
        """At start: puts the file in force, unless other nodes live and it would remove jobs or is an older one; then
        this node follows what is in force, or stands aside until it can load that. `gone`: nodes that this one succeeds
        and that cannot live any more, however young their last beat is; `finished`: attempts of theirs (run, number)
        that ended for good, which the ledger does not know yet. `after_restore`: what is owed is written off first;
        StartError if other nodes live."""
        now, known = self._store.now(), {node, *gone}
        with self._store.begin() as tx:
            newest = tx.generations.newest(lock=True)
            if after_restore:
                self._write_off(tx, newest, known, now)
            reason = self._not_taken(tx, newest, file, known, now)
            if reason is None:
                judge = _without(finished, self._judge)
                reloaded, planned = self._apply(tx, newest, file, now, author, judge, drop_pending=True)
        if reason is None:
            return self._enter(reloaded, file, author, planned)
        log.warning("file_not_taken", reason=reason, remedy="`schedctl reload` on this node applies it")
        self.not_taken, self.not_taken_at = reason, now
        assert newest is not None
        # Nothing to work with, if it cannot be loaded: no job of an older file must be run as if it were in force.
        self._in_force.set(Loaded.of(0, Configuration("", {}, {}, {})))
        return self._try(newest, now) or Reloaded(False, newest.id, newest.hash)

    def follow(self, now: datetime) -> None:
        """Loads the newest generation if another node put it in force; safe to call from any thread. One that this
        release cannot load makes this node stand aside until it can, which is tried again and again."""
        with self._following:
            with self._store.read() as tx:
                newest_id = tx.generations.newest_id()
                if newest_id <= self._in_force.current.generation:
                    return
                if self._in_force.behind is not None and time.monotonic() < self._next_try:
                    return
                newest = tx.generations.newest()
            assert newest is not None
            self._try(newest, now)

    def _try(self, newest: Generation, now: datetime) -> Reloaded | None:
        """Adopts it, or stands aside."""
        begun = time.monotonic()
        try:
            return self._adopt(newest)
        except SchedulerError as error:
            if self._in_force.stand_aside(f"generation {newest.id} cannot be loaded here: {error}", now):
                log.error("generation_not_loaded", generation=newest.id, reason=str(error))
            # A large file takes its time; it must not take all of it.
            self._next_try = time.monotonic() + TRIES * (time.monotonic() - begun)
            return None

    # ------------------------------------------------------------ parts

    def _put(self, author: str, *, drop_pending: bool, if_hash: str | None) -> Reloaded:
        with self._around():
            return self._read_and_put(author, drop_pending=drop_pending, if_hash=if_hash)

    def _read_and_put(self, author: str, *, drop_pending: bool, if_hash: str | None) -> Reloaded:
        try:
            file = self._load()
            if if_hash is not None and not file.hash.startswith(if_hash):
                raise Refused(
                    f"the file's hash is {file.hash[:12]}, not {if_hash}", hint="look at `schedctl diff` again"
                )
            now = self._store.now()
            with self._store.begin() as tx:
                newest = tx.generations.newest(lock=True)
                reloaded, planned = self._apply(tx, newest, file, now, author, self._judge, drop_pending=drop_pending)
            self._enter(reloaded, file, author, planned)
        except (InvalidInput, Refused) as error:
            # `check` finds errors of the file; what stands against a good one is seen beside what is in force.
            self.remedy = self._check if isinstance(error, InvalidInput) else "schedctl diff"
            self.rejected = str(error)
            log.warning("config_rejected", reason=str(error))
            self._bus.publish("config.rejected", reason=str(error))
            raise
        return replace(reloaded, warnings=self._warn(file, {*reloaded.added, *reloaded.changed}))

    def _apply(
        self,
        tx: Transaction,
        newest: Generation | None,
        file: Configuration,
        now: datetime,
        author: str,
        judge: Judge,
        *,
        drop_pending: bool,
    ) -> tuple[Reloaded, Planned]:
        if newest is not None and not self._differs(tx, newest, file):
            return Reloaded(True, newest.id, file.hash, unchanged=written(file.jobs)), []
        old = self._readable(newest)
        generation, difference, planned = swap(tx, newest, old, file, now, author, judge, drop_pending=drop_pending)
        reloaded = Reloaded(
            applied=True,
            generation=generation.id,
            hash=file.hash,
            added=seen(difference.added),
            changed=seen(difference.changed),
            removed=seen(difference.removed),
            unchanged=written(difference.unchanged),
            changes=self._describe(old, file),
        )
        return reloaded, planned

    def _enter(self, reloaded: Reloaded, file: Configuration, author: str, planned: Planned) -> Reloaded:
        """After the commit: until here the loops work with the old definitions, and the new generation of the changed
        rows keeps them from touching those."""
        self._in_force.set(Loaded.of(reloaded.generation, file))
        self.rejected = self.not_taken = None
        announce(self._bus, planned)
        counts = {"added": len(reloaded.added), "changed": len(reloaded.changed), "removed": len(reloaded.removed)}
        log.info("config_loaded", generation=reloaded.generation, hash=file.hash[:12], author=author, **counts)
        self._bus.publish(
            "config.loaded", generation=reloaded.generation, hash=file.hash, author=author, removed=reloaded.removed
        )
        return reloaded

    def _not_taken(
        self, tx: Transaction, newest: Generation | None, file: Configuration, known: Collection[str], now: datetime
    ) -> str | None:
        if newest is None or newest.hash == file.hash or not self._others_live(tx, known, now):
            return None
        removed = compare(tx.jobs.defined(), file).removed
        if removed:
            return f"other nodes live, and the file removes {', '.join(removed)}"
        if tx.generations.find(file.hash) is not None:
            return "other nodes live, and the file is older than what is in force"
        return None

    def _write_off(self, tx: Transaction, newest: Generation | None, known: Collection[str], now: datetime) -> None:
        if self._others_live(tx, known, now):
            raise StartError(
                "--after-restore is for the first daemon on a restored database, and other nodes live on this one",
                hint="start without it, or stop them first",
            )
        count = write_off(tx, self._readable(newest), now)
        log.warning("owed_instants_written_off", count=count, remedy="`schedctl backfill JOB` runs what did not run")

    @staticmethod
    def _differs(tx: Transaction, newest: Generation, file: Configuration) -> bool:
        if newest.hash != file.hash or (newest.tzdata, newest.schedule_code) != (TZDATA_VERSION, SCHEDULE_CODE):
            return True
        states = tx.jobs.states()
        return any(state.alarm for state in states.values()) or lacks_canary(states, file)

    def _preview(self, file: Configuration) -> Reloaded:
        with self._store.read() as tx:
            newest = tx.generations.newest()
            old = self._readable(newest)
            difference = compare(tx.jobs.defined(), file)
            pending = waiting(tx, difference, old, file, self._store.now())
        changes = self._describe(old, file)
        return Reloaded(
            applied=False,
            generation=newest.id if newest is not None else 0,
            hash=file.hash,
            added=seen(difference.added),
            changed=seen(difference.changed),
            removed=seen(difference.removed),
            unchanged=written(difference.unchanged),
            pending=pending,
            changes=changes,
            warnings=self._warn(file, None),
        )

    def _readable(self, generation: Generation | None) -> Configuration | None:
        """The configuration of a stored generation, if this release can read it."""
        if generation is None:
            return None
        loaded = self._in_force.loaded
        if loaded is not None and loaded.generation == generation.id:
            return loaded.configuration
        try:
            return self._load_texts(generation.files)
        except SchedulerError as error:
            log.warning("old_generation_unreadable", generation=generation.id, reason=str(error))
            return None

    def _adopt(self, generation: Generation) -> Reloaded:
        configuration = self._load_texts(generation.files)
        self._in_force.set(Loaded.of(generation.id, configuration))
        log.info("config_followed", generation=generation.id, hash=generation.hash[:12])
        self._bus.publish("config.loaded", generation=generation.id, hash=generation.hash, author=generation.author)
        return Reloaded(True, generation.id, generation.hash, unchanged=written(configuration.jobs))

    @staticmethod
    def _others_live(tx: Transaction, known: Collection[str], now: datetime) -> bool:
        return any(
            other.id not in known
            and other.state in ("live", "stopping")
            and other.beat_at is not None
            and now - other.beat_at < LIVE_WITHIN
            for other in tx.nodes.all()
        )


def _without(finished: Collection[tuple[str, int]], judge: Judge) -> Judge:
    """What has ended for good is in nobody's way."""

    def judged(job: Job, due: Due, now: datetime) -> Plan:
        left = tuple(one for one in due.unfinished if (one.run, one.attempt) not in finished)
        return judge(job, replace(due, unfinished=left), now)

    return judged
