"""A daemon without threads: real store, real configuration, turned clocks, executors that do what they are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from scheduler.config.load import load_texts
from scheduler.core.commands import AuditReport, Reloaded
from scheduler.core.errors import Unavailable
from scheduler.core.execution import Launch
from scheduler.core.ids import new_id
from scheduler.core.job import Configuration
from scheduler.core.model import FailReason, JobState, Node, Run, Skip
from scheduler.core.notices import Bus, Notice
from scheduler.core.outcome import Canceled, Failed
from scheduler.core.queries import RunDetail, RunFilter
from scheduler.engine.audit import Auditor
from scheduler.engine.beats import Beats
from scheduler.engine.drain import Drain
from scheduler.engine.find import no_job
from scheduler.engine.in_force import InForce
from scheduler.engine.inbox import EventInbox
from scheduler.engine.intake import Intake
from scheduler.engine.invariants import Invariants
from scheduler.engine.keeper import Keeper
from scheduler.engine.lookout import Part
from scheduler.engine.planner import HEARING, Planner
from scheduler.engine.recovery import predecessors, recover
from scheduler.engine.reload import Reloader
from scheduler.engine.retention import Retention
from scheduler.engine.signs import SignDesk
from scheduler.engine.turns import Obstacle, Turns
from scheduler.engine.vigil import Vigil
from scheduler.engine.worker import Worker
from scheduler.store.store import SqlStore
from tests.engine.door import Door
from tests.engine.doubles import START, FakeSwitch, NoAttempts, ScriptedExecutor, TurnedClock
from tests.engine.patient_desk import PatientDesk

ALL = 1_000_000


def jobs(given: Mapping[str, Mapping[str, Any]] | None = None, /, **more: Any) -> str:
    """A jobs.yaml in UTC. Jobs do nothing (`command: ["true"]`) unless they say what; `queues` and other top keys by
    keyword."""
    entries = {
        name: {**({} if {"command", "http", "call", "external"} & set(keys) else {"command": ["true"]}), **keys}
        for name, keys in (given or {}).items()
    }
    return json.dumps({"defaults": {"timezone": "UTC"}, **more, "jobs": entries})


class Rig:
    """One node. `text` is its jobs.yaml. Several rigs may share a store; then `database` is the clock that planning
    uses, and each has a clock of its own for all that is monotonic."""

    def __init__(
        self,
        store: SqlStore,
        text: str,
        clock: TurnedClock | None = None,
        *,
        database: TurnedClock | None = None,
        slots: int = 64,
        queues: tuple[str, ...] | None = None,
        lease: timedelta | None = None,
        drain: timedelta = timedelta(minutes=5),
        start: bool = True,
    ) -> None:
        self.clock = clock or TurnedClock()
        self.database = database or self.clock
        self.store = Door(store, self.database.now)
        self.text = text
        self.node = new_id()
        self.lease = lease
        self.slots = slots
        self.queues = queues
        self.notices: list[Notice] = []
        self.bus = Bus(self._fail)
        self.bus.subscribe(self.notices.append)
        self.in_force = InForce()
        self.executor = ScriptedExecutor()
        self.attempts = NoAttempts()
        self.switch = FakeSwitch()
        self.vouched = True
        """Whether the supervisor would start anything."""
        self.died = 0
        self.woken = 0
        self.wakes_at: float | None = None
        """When the worker is to turn because it asked for that, in monotonic seconds."""
        self.listen: Callable[[], None] = lambda: None
        """What happens while the planner listens whether a run has ended."""
        self.listening = False
        self.obstacle: Obstacle | None = None
        """What keeps the planner's loop from turning."""
        self.reloader = Reloader(
            self.store,
            self.in_force,
            self.bus,
            self.load,
            _from_texts,
            _no_words,
            _no_warnings,
            judge=lambda job, due, now: self.turns.judge(job, self.worker.amend(due, now), now),
        )
        self.worker = Worker(
            self.store,
            self.in_force,
            {"command": self.executor},
            lambda run, job, _: Launch(run, job, run.attempt, {}),
            self.attempts,
            self.bus,
            self.clock,
            lambda: self.node,
            slots,
            queues,
            self._wake,
            self._wake_later,
            self.reloader.follow,
            vouches=lambda: self.vouched,
        )
        self.planner = self._new_planner()
        self.keeper = Keeper(self.store, self.in_force, self.bus, self.clock, self.attempts, self.reloader.follow)
        self.vigil = Vigil(self.store, self.in_force, self.bus)
        self.auditor = Auditor(self.store, self.bus, lambda: self.node)
        self.beats = Beats(
            self.store,
            self.in_force,
            self.bus,
            self.clock,
            lambda: self.switch,
            lambda: self.node,
            lease,
            self._die,
        )
        self.retention = Retention(self.store, self.in_force, self.bus)
        self.invariants = Invariants(self.store, self.store, self.bus)
        self.drain = Drain(self.store, self.worker, self.bus, self.clock, lambda: self.node, drain)
        self.intake = Intake(
            self.store,
            self.in_force,
            self.bus,
            self.clock,
            lambda: self.node,
            lambda: None,
            self.worker.take,
            self.reloader.follow,
            lambda name: no_job(name, self.in_force.current.configuration.jobs),
        )
        self.inbox = EventInbox(self.store, self.in_force, self.bus, self.reloader.follow, self._wake)
        self.signs = SignDesk(self.store, self.in_force, self.bus, self.clock, self.reloader.follow)
        self.desk = PatientDesk(self.store, self.store, self.in_force, self.reloader, self.bus, self._wake, self.intake)
        if start:
            self.start()

    # ------------------------------------------------------------ doing

    def start(self) -> None:
        """As a daemon starts: the file in force, then the node known, then what its predecessor held recovered."""
        former = predecessors(self.store, None)
        self.reloader.start(self.load(), author="start", node=self.node, gone=former)
        now, boottime = self.store.now(), self.clock.boottime()
        recover(self.store, self.in_force, self.bus, self.attempts, list(former), {}, now, boottime)
        self.register()

    def succeed(self) -> None:
        """Another daemon in the place of this one, which remembers nothing of its turns."""
        self.node = new_id()
        self.planner = self._new_planner()
        self.vigil = Vigil(self.store, self.in_force, self.bus)
        self.register()

    def register(self) -> None:
        now = self.store.now()
        with self.store.begin() as tx:
            tx.nodes.register(Node(self.node, "host", 1, "0", now, self.lease, self.slots, self.queues), now)

    def load(self) -> Configuration:
        return load_texts({"jobs.yaml": self.text}, "jobs.yaml", environ={})

    def reload(self, text: str, **how: Any) -> Reloaded:
        self.text = text
        return self.desk.reload(author="test", **how)

    def tick(self, **by: float) -> None:
        """Turns the clock (and that of the database) and lets every loop turn once, as a second of a daemon would."""
        if by:
            self.turn(**by)
        now = self.store.now()
        if self.lease is not None:
            self.check_rest(self.beats, self.beats.tick, now)
        self.check_rest(self.keeper, self.keeper.tick, now)
        self.check_rest(self.planner, self.plan, now)
        self.check_rest(self.inbox, self.inbox.tick, now)
        with suppress(Unavailable):
            self.worker.end_late()  # What its loop does first.
        self.check_rest(self.worker, self.worker.tick, now)
        self.check_rest(self.vigil, self.vigil.tick, now)

    def check_rest(self, part: Part, tick: Callable[[datetime], int], now: datetime) -> int:
        """Its tick. Where it would have rested instead, it must not find anything to do."""
        rests = False
        with suppress(Unavailable):
            rests = part.rests(self.store.look(self.node, self.in_force.current.generation))
        done = tick(now)
        assert not (rests and done), f"{type(part).__name__} would have rested"
        return done

    def plan(self, now: datetime | None = None) -> int:
        """A turn of the planner, and another one where it asked for that after listening."""
        now = self.store.now() if now is None else now
        judged = self.planner.tick(now)
        if self.listening:
            self.listening = False
            self.listen()
            self.planner.tick(now + HEARING)
        return judged

    def turn(self, **by: float) -> datetime:
        if self.database is not self.clock:
            self.database.turn(**by)
        return self.clock.turn(**by)

    def seconds(self, count: int, *, finish: bool = False) -> None:
        for _ in range(count):
            self.tick(seconds=1)
            if finish:
                self.executor.finish_all()

    def finish(self, outcome: Any = None) -> int:
        """Ends everything that runs, and settles it."""
        ended = self.executor.finish_all(outcome)
        self.worker.tick(self.store.now())
        return ended

    # ------------------------------------------------------------ looking

    def runs(self, job: str | None = None) -> list[Run]:
        """Oldest first."""
        with self.store.queries() as queries:
            page = queries.history(RunFilter(jobs=(job,) if job else (), skips=False), limit=ALL)
        return [entry.run for entry in reversed(page.entries) if entry.run is not None]

    def statuses(self, job: str | None = None) -> list[str]:
        return [str(run.status) for run in self.runs(job)]

    def run(self, run: str) -> Run:
        with self.store.read() as tx:
            found: Run | None = tx.runs.get(run)
        assert found is not None
        return found

    def detail(self, run: str) -> RunDetail:
        with self.store.queries() as queries:
            found: RunDetail | None = queries.run(run)
        assert found is not None
        return found

    def skips(self, job: str) -> list[Skip]:
        """As the ledger tells them, runs that ended as SKIPPED among them."""
        with self.store.read() as tx:
            _, skips = tx.ledger.entries(job, START - timedelta(days=4000), START + timedelta(days=4000))
        return list(skips)

    def skipped(self, job: str) -> list[tuple[str, datetime, datetime, int]]:
        return [(str(skip.reason), skip.first, skip.last, skip.count) for skip in self.skips(job)]

    def state(self, job: str) -> JobState:
        with self.store.read() as tx:
            state: JobState = tx.jobs.states([job])[job]
        return state

    def audit(self, since: datetime | None = None, job: str | None = None) -> AuditReport:
        return self.desk.audit(since=since or START - timedelta(days=400), job=job)

    def named(self, name: str) -> list[Mapping[str, Any]]:
        return [notice.fields for notice in self.notices if notice.name == name]

    def _new_planner(self) -> Planner:
        self.turns = Turns(self.clock, lambda: self.obstacle)
        return Planner(
            self.store,
            self.in_force,
            self.bus,
            lambda: self.node,
            self.worker.claim,
            self.worker.take,
            self.worker.amend,
            self._listen,
            self.turns,
        )

    def _listen(self) -> None:
        self.listening = True

    def _wake(self) -> None:
        self.woken += 1

    def _wake_later(self, delay: timedelta) -> None:
        self.wakes_at = self.clock.monotonic() + delay.total_seconds()

    def _die(self) -> None:
        self.died += 1

    @staticmethod
    def _fail(notice: Notice, error: Exception) -> None:
        raise AssertionError(f"a listener of {notice.name} failed") from error


def at(hour: int, minute: int = 0, second: int = 0, day: int = 2) -> datetime:
    """An instant of March 2026; without `day` of its first Monday."""
    return START.replace(day=day, hour=hour, minute=minute, second=second)


def failed(**how: Any) -> Failed:
    return Failed(FailReason.EXIT, "exit 1", exit_code=1, **how)


def canceled() -> Canceled:
    return Canceled("cancel")


def instants(runs: Sequence[Run]) -> list[datetime]:
    return [run.scheduled_for for run in runs if run.scheduled_for is not None]


def _from_texts(files: Mapping[str, str]) -> Configuration:
    return load_texts(files, environ={})


def _no_words(old: Configuration | None, new: Configuration) -> dict[str, tuple[str, ...]]:
    return {}


def _no_warnings(configuration: Configuration, jobs: Collection[str] | None) -> tuple[str, ...]:
    return ()
