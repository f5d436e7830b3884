"""A season of two hundred jobs through the real engine, on a clock that jumps from one event to the next."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from scheduler.core.model import Output
from scheduler.core.state import Flip
from scheduler.engine.unwatched import KEY, WatchLog
from scheduler.store.store import SqlStore
from tests.engine.doubles import NoAttempts, TurnedClock
from tests.engine.rig import Rig, failed
from tests.silence.instants import ZONES, Timing
from tests.silence.oracle import Record, Span

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
LONGEST = 50 * MINUTE
"""That a healthy run may take, with the default grace of an hour."""
APART = 4
"""Healthy runs of a job between two planted misses."""


class SilentAttempts(NoAttempts):
    """Attempts that printed nothing: it is not looked at here."""

    def outputs(self, runs: Collection[tuple[str, int]]) -> list[Output]:
        return []


@dataclass(slots=True)
class Planted:
    job: str
    covers: datetime


@dataclass(slots=True)
class Year:
    """From `start` to `end`. `misses` are planted evenly over it; `restarts`, `pauses`, `edits` and `removals` happen
    at random."""

    store: SqlStore
    start: datetime
    end: datetime
    jobs: int
    misses: int
    seed: int = 1
    restarts: int = 0
    pauses: int = 0
    edits: int = 0
    removals: int = 0
    clock: TurnedClock = field(init=False)
    rig: Rig = field(init=False)
    records: dict[str, Record] = field(default_factory=dict)
    timings: dict[str, Timing] = field(default_factory=dict)
    outages: list[tuple[datetime, datetime]] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    healthy: dict[str, int] = field(default_factory=dict)
    events: int = 0
    hourly: bool = True
    """Whether one of the jobs runs every hour."""
    _plan: list[tuple[datetime, int, str, Any]] = field(default_factory=list)
    _ids: Any = field(default_factory=count)
    _due: datetime | None = None
    _moved: bool = True
    _ended: bool = True
    _random: random.Random = field(init=False)

    def run(self) -> None:
        self._random = random.Random(self.seed)
        self.clock = TurnedClock(self.start)
        self.timings = {f"job-{number:03}": self._timing(number) for number in range(self.jobs)}
        for name, timing in self.timings.items():
            self.records[name] = Record([(self.start, timing)])
        self._open()
        for what, number in (
            ("restart", self.restarts),
            ("pause", self.pauses),
            ("edit", self.edits),
            ("remove", self.removals),
        ):
            for _ in range(number):
                self._later(self.start + DAY + self._random.random() * (self.end - self.start - 2 * DAY), what)
        self._loops()
        while (moment := self._next()) < self.end:
            self._turn_to(moment)

    # ------------------------------------------------------------ the world

    def _timing(self, number: int) -> Timing:
        """Half of the jobs are due in the hours in which clocks are set."""
        chance = self._random
        zone, minute = ZONES[number % len(ZONES)], chance.choice((0, 10, 15, 30, 45))
        hour = chance.choice((0, 1, 2, 2, 3)) if chance.random() < 0.5 else chance.randrange(24)
        match number % 20:
            case 0 if number == 0:
                return Timing(zone, minute, None if self.hourly else (0, 1, 2, 3))
            case 1 if number % 120 == 1:
                return Timing(zone, minute, (hour % 6, hour % 6 + 6, hour % 6 + 12, hour % 6 + 18))
            case 2 | 3:
                return Timing(zone, minute, (hour,))
            case 18 | 19:
                return Timing(zone, minute, (hour,), day=chance.choice((1, 15, 28, 31)))
        return Timing(zone, minute, (hour,), weekday=chance.randrange(7))

    def _text(self) -> str:
        jobs = {
            name: {"schedule": timing.cron, "timezone": timing.zone, "command": ["true"]}
            for name, timing in self.timings.items()
        }
        return json.dumps({"jobs": jobs})

    def _open(self) -> None:
        """A daemon starts, as its parts do one after the other."""
        self.rig = Rig(self.store, self._text(), self.clock, slots=500, start=False)
        self.rig.attempts = SilentAttempts()
        self.rig.worker._settler._attempts = self.rig.attempts
        self.rig.start()
        self.rig.notices.clear()

    # ------------------------------------------------------------ time

    def _later(self, at: datetime, what: str, about: Any = None) -> None:
        heapq.heappush(self._plan, (at, next(self._ids), what, about))

    def _next(self) -> datetime:
        moments = [self._plan[0][0] if self._plan else self.end, self.rig.vigil.next_due(), self._due]
        return max(self.clock.now(), min(moment for moment in moments if moment is not None))

    def _turn_to(self, moment: datetime) -> None:
        self.events += 1
        self.clock.turn(seconds=(moment - self.clock.now()).total_seconds())
        self._watched()
        while self._plan and self._plan[0][0] <= moment:
            _, _, what, about = heapq.heappop(self._plan)
            getattr(self, f"_{what}")(about)
            self._moved = self._moved or what != "end"
            self._ended = True
        self._loops()

    def _watched(self) -> None:
        """What the turns of the seconds that were left out would have come to: somebody watched."""
        log = self.rig.vigil._log
        if log is not None:
            self.rig.vigil._log = seen = WatchLog(self.clock.now(), log.stretches).looked(self.clock.now())
            with self.store.begin() as tx:
                tx.generations.set_value(KEY, seen.text or "")

    def _loops(self) -> None:
        now = self.clock.now()
        if self._moved or self._due is None or self._due <= now:
            self.rig.plan(now)
            self._due = self.rig.planner.next_due()
        if self._ended:
            self.rig.worker.tick(now)
        self._moved = self._ended = False
        for launch in self.rig.executor.started:
            self._began(launch.run.id, launch.job.name, launch.run.scheduled_for or now, launch.attempt)
        self.rig.executor.started.clear()
        self.rig.vigil.tick(now)
        self.rig.notices.clear()

    # ------------------------------------------------------------ what happens

    def _began(self, run: str, job: str, covers: datetime, attempt: int) -> None:
        now, record = self.clock.now(), self.records[job]
        span = record.runs.setdefault(run, Span(covers, now))
        length = self._random.randrange(1, LONGEST // MINUTE + 1) * MINUTE
        good = True
        wanted = self.misses * ((now - self.start) / (self.end - self.start - 3 * DAY))
        on_time = attempt == 1 and now - covers < MINUTE
        if on_time and len(self.planted) < min(wanted, self.misses) and self.healthy.get(job, APART) >= APART:
            self.planted.append(Planted(job, covers))
            self.healthy[job] = 0
            good = self._random.random() < 0.3
            if good:
                length = self._random.randrange(61, 600) * MINUTE
        self._later(now + length, "end", (self.rig, run, span, job, good))

    def _end(self, about: tuple[Rig, str, Span, str, bool]) -> None:
        rig, run, span, job, good = about
        if rig is not self.rig or run not in rig.executor.live:
            return
        rig.executor.finish(run, None if good else failed())
        span.ended, span.succeeded = self.clock.now(), good
        self.healthy[job] = self.healthy.get(job, 0) + 1 if good else 0

    def _restart(self, _: None) -> None:
        """Most restarts are short; what ran is cut short."""
        chance = self._random.random()
        away = (
            self._random.randrange(1, 25) * SECOND
            if chance < 0.6
            else self._random.randrange(2, 25) * MINUTE
            if chance < 0.85
            else self._random.randrange(30, 400) * MINUTE
        )
        cut = set()
        for launch, _done in self.rig.executor.live.values():
            self.records[launch.job.name].runs[launch.run.id].cut += 1
            cut.add((launch.job.name, launch.run.scheduled_for))
        down = self.clock.now()
        self.clock.turn(seconds=away.total_seconds())
        # What was planted in a run that is repeated, or judged after catching up, may come to nothing.
        self.planted = [
            one
            for one in self.planted
            if one.covers + HOUR <= down or ((one.job, one.covers) not in cut and one.covers + HOUR > self.clock.now())
        ]
        self.outages.append((down, self.clock.now()))
        self._open()

    def _pause(self, _: None) -> None:
        name = self._random.choice(sorted(self.timings))
        if not self._well(name):
            return
        now = self.clock.now()
        length = self._random.choice((10 * MINUTE, HOUR, 9 * HOUR, DAY, 9 * DAY))
        by_itself = self._random.random() < 0.5
        self.rig.desk.pause([name], until=now + length if by_itself else None, reason="", author="test")
        self.records[name].pauses.append((now, now + length))
        if not by_itself:
            self._later(now + length, "resume", name)

    def _resume(self, name: str) -> None:
        begin, _ = self.records[name].pauses[-1]
        self.records[name].pauses[-1] = (begin, self.clock.now())
        if name in self.timings:
            self.rig.desk.resume([name], author="test")

    def _edit(self, _: None) -> None:
        name = self._random.choice(sorted(self.timings))
        if self._well(name):
            self._put(name, self._timing(self._random.choice((2, 3, 6, 7, 18))))

    def _remove(self, _: None) -> None:
        name = self._random.choice(sorted(self.timings))
        if self._well(name):
            self._put(name, None)
            self._later(self.clock.now() + self._random.choice((MINUTE, HOUR, 3 * DAY)), "come_back", name)

    def _come_back(self, name: str) -> None:
        self._put(name, self._timing(self._random.choice((2, 3, 5, 6, 18))))

    def _put(self, name: str, timing: Timing | None) -> None:
        self.timings.pop(name, None)
        if timing is not None:
            self.timings[name] = timing
        self.rig.reload(self._text())
        self.records[name].timings.append((self.clock.now(), timing))

    def _well(self, name: str) -> bool:
        """Whether it is neither paused nor behind: what becomes of a miss under an edit is not asked here."""
        now, record = self.clock.now(), self.records[name]
        paused = any(begin <= now < end for begin, end in record.pauses)
        spans = list(record.runs.values())
        return not paused and self.healthy.get(name, 1) > 0 and (not spans or (spans[-1].ended is not None))

    # ------------------------------------------------------------ what came of it

    def flips(self, job: str) -> list[Flip]:
        """Oldest first."""
        with self.store.queries() as queries:
            return queries.flips(job, 100_000)[::-1]


def begin(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)
