"""A daemon without threads: real store, real configuration, a clock that tests turn, executors that do what they are told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.config.load import load_texts
from scheduler.core.errors import Unavailable
from scheduler.core.ids import new_id
from scheduler.core.model import Configuration, FailReason, Job, Node, Output, Run
from scheduler.core.notices import Bus, Notice
from scheduler.core.outcome import Canceled, Failed, GivenBack, Outcome, Succeeded
from scheduler.core.ports import Launch, Report
from scheduler.core.queries import RunFilter
from scheduler.engine.audit import Auditor
from scheduler.engine.beats import Beats
from scheduler.engine.desk import Desk
from scheduler.engine.in_force import InForce
from scheduler.engine.keeper import Keeper
from scheduler.engine.planner import Planner
from scheduler.engine.reload import Reloader
from scheduler.engine.worker import Worker

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
"""A Monday."""


@dataclass
class TurnedClock:
    """`turn` moves all clocks, `step` only the wall."""

    wall: datetime = START
    seconds: float = 1000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds

    def boottime(self) -> float:
        return self.seconds

    def turn(self, **by: float) -> datetime:
        delta = timedelta(**by)
        self.wall += delta
        self.seconds += delta.total_seconds()
        return self.wall

    def step(self, **by: float) -> datetime:
        self.wall += timedelta(**by)
        return self.wall


class ScriptedExecutor:
    """Holds every attempt until the test says how it ends."""

    kind = "command"

    def __init__(self) -> None:
        self.live: dict[str, tuple[Launch, Callable[[Outcome], None]]] = {}
        self.started: list[Launch] = []
        self.ended: list[tuple[str, str]] = []
        self.obedient = True

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        self.started.append(launch)
        self.live[launch.run.id] = (launch, done)

    def end(self, run: str, why: str) -> None:
        self.ended.append((run, why))
        if self.obedient:
            outcome: Outcome = Canceled(why)
            if why == "timeout":
                outcome = Failed(FailReason.TIMEOUT, "ran too long")
            elif why == "drain":
                outcome = GivenBack(started=True)
            self.finish(run, outcome)

    def finish(self, run: str, outcome: Outcome | None = None) -> None:
        _, done = self.live.pop(run)
        done(outcome or Succeeded(exit_code=0))

    def finish_all(self, outcome: Outcome | None = None) -> int:
        runs = list(self.live)
        for run in runs:
            self.finish(run, outcome)
        return len(runs)


class NoAttempts:
    """Attempts whose output nobody wrote."""

    def __init__(self) -> None:
        self.pending: list[Report] = []
        self.forgotten: list[tuple[str, int]] = []

    def outputs(self, runs: Collection[tuple[str, int]]) -> list[Output]:
        return [Output(run, attempt, b"printed\n", b"", 0, True) for run, attempt in runs]

    def reports(self) -> list[Report]:
        reports, self.pending = self.pending, []
        return reports

    def forget(self, runs: Collection[tuple[str, int]]) -> None:
        self.forgotten.extend(runs)

    def left_behind(self) -> list[tuple[str, int]]:
        return []


@dataclass
class FakeSwitch:
    silent: float = 0.0
    trusted: list[tuple[float | None, float | None]] = field(default_factory=list)
    killed: int = 0
    gone: bool = False

    def trust(self, term_at: float | None, kill_at: float | None) -> None:
        self.trusted.append((term_at, kill_at))

    def ping(self) -> None:
        if self.gone:
            raise Unavailable("gone")

    def silent_for(self) -> float:
        return self.silent

    def kill(self) -> None:
        self.killed += 1


class Rig:
    """One node. `text` is its jobs.yaml; `node` its id; several rigs may share a store."""

    def __init__(
        self,
        store: Any,
        text: str,
        clock: TurnedClock | None = None,
        *,
        slots: int = 64,
        queues: tuple[str, ...] | None = None,
        lease: timedelta | None = None,
        start: bool = True,
    ) -> None:
        self.store = store
        self.clock = clock or TurnedClock()
        store.now = self.clock.now
        self.text = text
        self.node = new_id()
        self.notices: list[Notice] = []
        self.bus = Bus(self._fail)
        self.bus.subscribe(self.notices.append)
        self.in_force = InForce()
        self.executor = ScriptedExecutor()
        self.attempts = NoAttempts()
        self.switch = FakeSwitch()
        self.died = 0
        self.reloader = Reloader(store, self.in_force, self.bus, self.load, _from_texts, _no_words, _no_warnings)
        self.worker = Worker(
            store,
            self.in_force,
            {"command": self.executor},
            lambda run, job, state: Launch(run, job, run.attempt, {}),
            self.attempts,
            self.bus,
            self.clock,
            lambda: self.node,
            slots,
            queues,
            lambda: None,
        )
        self.planner = Planner(store, self.in_force, self.bus, lambda: self.node, self.worker.claim, self.worker.take)
        self.keeper = Keeper(store, self.in_force, self.bus, self.clock, self.attempts, self.reloader.follow)
        self.auditor = Auditor(store, self.bus, lambda: self.node)
        self.beats = Beats(
            store, self.in_force, self.bus, self.clock, lambda: self.switch, lambda: self.node, lease, self._die
        )
        self.desk = Desk(store, store, self.in_force, self.reloader, self.bus, lambda: None)
        if start:
            self.reloader.start(self.load(), author="start", node=self.node)
            self.register(lease, slots, queues)

    def register(self, lease: timedelta | None = None, slots: int = 64, queues: tuple[str, ...] | None = None) -> None:
        with self.store.begin() as tx:
            tx.nodes.register(
                Node(self.node, "host", 1, "0", self.clock.now(), lease, slots, queues), self.clock.now()
            )

    # ------------------------------------------------------------ doing

    def load(self) -> Configuration:
        return load_texts({"jobs.yaml": self.text}, "jobs.yaml", environ={})

    def reload(self, text: str, **how: Any) -> Any:
        self.text = text
        return self.desk.reload(author="test", **how)

    def tick(self, **by: float) -> None:
        """Turns the clock and lets every loop turn once, as a second of a daemon would."""
        now = self.clock.turn(**by) if by else self.clock.now()
        self.keeper.tick(now)
        self.planner.tick(now)
        self.worker.tick(now)

    def seconds(self, count: int) -> None:
        for _ in range(count):
            self.tick(seconds=1)

    # ------------------------------------------------------------ looking

    def runs(self, job: str | None = None) -> list[Run]:
        """Oldest first."""
        with self.store.queries() as queries:
            page = queries.history(RunFilter(jobs=(job,) if job else (), skips=False), limit=1000)
        return [entry.run for entry in reversed(page.entries) if entry.run is not None]

    def run(self, run: str) -> Run:
        with self.store.read() as tx:
            found = tx.runs.get(run)
        assert found is not None
        return found

    def skips(self, job: str) -> list[tuple[str, datetime, datetime, int]]:
        with self.store.read() as tx:
            _, skips = tx.ledger.entries(job, START - timedelta(days=4000), self.clock.now() + timedelta(days=4000))
        return [(str(skip.reason), skip.first, skip.last, skip.count) for skip in skips]

    def state(self, job: str) -> Any:
        with self.store.read() as tx:
            return tx.jobs.states([job])[job]

    def named(self, name: str) -> list[Mapping[str, Any]]:
        return [notice.fields for notice in self.notices if notice.name == name]

    def _die(self) -> None:
        self.died += 1

    @staticmethod
    def _fail(notice: Notice, error: Exception) -> None:
        raise AssertionError(f"a listener of {notice.name} failed") from error


def _from_texts(files: Mapping[str, str]) -> Configuration:
    return load_texts(files, environ={})


def _no_words(old: Configuration | None, new: Configuration) -> dict[str, tuple[str, ...]]:
    return {}


def _no_warnings(configuration: Configuration) -> tuple[str, ...]:
    return ()


__all__ = ["START", "Job", "Rig", "TurnedClock"]
