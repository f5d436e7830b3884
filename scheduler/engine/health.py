"""Health: what this node knows to be wrong with itself, as far as it can know without asking anybody.

The limits are such that a machine that is merely busy raises no alarm: every loop is called once a second.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from scheduler.core.durations import format_duration
from scheduler.core.execution import Clock
from scheduler.core.notices import Bus, Notice
from scheduler.core.remark import Remark
from scheduler.core.value_object import value_object
from scheduler.engine.beats import LONGEST_SILENCE, Beats
from scheduler.engine.disk import Disk
from scheduler.engine.drain import Drain
from scheduler.engine.in_force import InForce
from scheduler.engine.invariants import Invariants
from scheduler.engine.keeper import Keeper
from scheduler.engine.loop import Loop
from scheduler.engine.reload import Reloader

ESSENTIAL = ("beats", "planner", "worker", "keeper", "children")
"""The loops without which nothing runs. What the others do may take as long as it takes."""
SLOW = 5.0
"""Seconds: an essential loop that has not turned for longer is worth a remark."""
SLOWEST = 60.0
"""The same for the other loops."""
SILENT = 5.0
"""Seconds without an answer after which the supervisor is worth a remark; it is killed at LONGEST_SILENCE."""
OFFSET = 1.0
"""Seconds between this machine's clock and the database's that are worth a remark."""
RECENT = timedelta(minutes=10)
"""So long it is told that a supervisor was lost."""


@value_object
class Watched:
    """What is looked at. `supervisor` gives its process id and for how many seconds it has been silent."""

    loops: Mapping[str, Loop]
    in_force: InForce
    invariants: Invariants
    reloader: Reloader
    drain: Drain
    keeper: Keeper
    beats: Beats
    disk: Disk
    supervisor: Callable[[], tuple[int | None, float]]


class Health:
    """`remarks` may be asked from any thread and touches neither disk nor database."""

    def __init__(self, watched: Watched, bus: Bus, clock: Clock) -> None:
        self._watched = watched
        self._clock = clock
        self._from = clock.monotonic()
        self._lost: datetime | None = None
        self._rejected: datetime | None = None
        self._apart: datetime | None = None
        """Since when the clocks have been seen to differ."""
        bus.subscribe(self._hear, "node.started", "supervisor.gone", "config.rejected")

    def remarks(self) -> list[Remark]:
        """Worst first; none when all is well."""
        now = self._clock.now()
        return [
            *self._disks(),
            *self._waiting_loops(now),
            *self._slow_loops(now),
            *self._clocks(now),
            *self._supervisor(now),
            *self._configuration(),
            *self._leaving(),
            *self._watched.invariants.remarks(),
        ]

    def holdup(self) -> str | None:
        """Why this node starts nothing at present; None if it does."""
        if self._watched.drain.begun:
            return (
                "this node is leaving: it starts nothing more, and nothing of it runs before a daemon is started again"
            )
        if self._watched.in_force.behind is not None:
            return f"this node stands aside and starts nothing: {self._watched.in_force.behind}"
        return None

    def without_database(self) -> list[str]:
        """Why essential loops have been waiting for the database for longer than a moment."""
        waiting = self._waiting()["database"].items()
        return [reason for reason, names in waiting if not set(names).isdisjoint(ESSENTIAL)]

    # ------------------------------------------------------------ parts

    def _disks(self) -> Iterator[Remark]:
        for folder, since in self._watched.disk.full.items():
            what = f"the disk of {folder} is full: what finds no room is not started or settled until there is some"
            yield Remark("disk", what, since, f"df -h {folder}")

    def _waiting_loops(self, now: datetime) -> Iterator[Remark]:
        """Loops that something unavailable keeps from their work: one remark for each thing that is, whatever each of
        them was told. What is said better elsewhere is left out: why the disk or the supervisor is away, and why this
        node stands aside."""
        full = bool(self._watched.disk.full)
        for about, reasons in self._waiting().items():
            waiting = {why: names for why, names in reasons.items() if not (full and "disk is full" in why)}
            if not waiting or (about == "supervisor" and self._supervisor_is_silent()):
                continue
            what = "; ".join(f"{reason} ({_waits(names)})" for reason, names in waiting.items())
            ages = [self._age(self._watched.loops[name]) for names in waiting.values() for name in names]
            yield Remark(about, what, now - timedelta(seconds=max(ages)), self._first_look(about))

    def _first_look(self, about: str) -> str:
        """What to type when that is away."""
        pid, _ = self._watched.supervisor()
        looks = {
            "database": "schedctl db status",
            "supervisor": _ps(pid),
            "configuration": "schedctl nodes",
        }
        return looks.get(about) or _log_command()

    def _waiting(self) -> Mapping[str, dict[str, list[str]]]:
        """The loops that wait, by what for and by what they were told."""
        found: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for name, loop in self._watched.loops.items():
            if loop.ailing is not None and loop.waits_for is not None and self._age(loop) > SLOW:
                found[loop.waits_for].setdefault(loop.ailing, []).append(name)
        return found

    def _slow_loops(self, now: datetime) -> Iterator[Remark]:
        """Loops that hang or fail. Where a disk hangs, whoever hangs besides waits for it."""
        ages = {name: self._age(loop) for name, loop in self._watched.loops.items() if loop.ailing is None}
        slow = [name for name, age in ages.items() if age > (SLOW if name in ESSENTIAL else SLOWEST)]
        failing = [name for name in slow if name != "disk" and self._watched.loops[name].failing]
        hung = [name for name in slow if name != "disk" and name not in failing]
        if failing:
            verb = "fails" if len(failing) == 1 else "fail"
            what = f"the {_loops(failing)} {verb} at every turn; the daemon's log has the error"
            yield Remark("loops", what, _began(now, ages, failing), _log_command())
        if "disk" in slow:
            folders = ", ".join(map(str, self._watched.disk.folders))
            what = f"the disk of {folders} does not answer" + (f" ({_waits(hung)})" if hung else "")
            yield Remark("disk", what, _began(now, ages, ["disk"]), f"df -h {folders}")
        elif hung:
            has = "has not turned; if it does" if len(hung) == 1 else "have not turned; if they do"
            what = f"the {_loops(hung)} {has} not go on soon, restart the daemon"
            yield Remark("loops", what, _began(now, ages, hung), f"ps -L -o lwp,stat,wchan:24,comm -p {os.getpid()}")

    def _clocks(self, now: datetime) -> Iterator[Remark]:
        back = self._watched.keeper.set_back
        if back is not None and now < back.until:
            what = (
                f"the clock was set back by {_rounded(back.by)}: instants up to {_clock(back.until)} have had their "
                f"entries, and no instant runs twice, so jobs wait for another {_rounded(back.until - now)}"
            )
            yield Remark("clock", what, back.at, "timedatectl")
        offset = self._watched.beats.offset
        if abs(offset) <= OFFSET:
            self._apart = None
        else:
            self._apart = self._apart or now
            word = "behind" if offset > 0 else "ahead of"
            what = f"this machine's clock is {_rounded(timedelta(seconds=abs(offset)))} {word} the database's"
            yield Remark("clock", what, self._apart, "timedatectl")

    def _supervisor(self, now: datetime) -> Iterator[Remark]:
        pid, silent = self._watched.supervisor()
        if self._supervisor_is_silent():
            what = (
                f"the supervisor (process {pid}) does not answer: nothing new is started; after {LONGEST_SILENCE:g} s "
                "it is ended with all it runs, and replaced"
            )
            since = now - timedelta(seconds=silent)
            yield Remark("supervisor", what, since, _ps(pid))
        elif self._lost is not None and timedelta(0) <= now - self._lost < RECENT:
            what = (
                "the supervisor was killed or hung, and was replaced; what it ran was ended and is tried again or lost"
            )
            yield Remark("supervisor", what, self._lost, "schedctl runs --since 15m")

    def _supervisor_is_silent(self) -> bool:
        _, silent = self._watched.supervisor()
        return silent > SILENT

    def _configuration(self) -> Iterator[Remark]:
        in_force, reloader = self._watched.in_force, self._watched.reloader
        if in_force.behind is not None:
            what = f"this node stands aside, it neither plans nor starts anything: {in_force.behind}"
            yield Remark("configuration", what, in_force.behind_since, "schedctl nodes")
        if reloader.rejected is not None:
            yield Remark(
                "configuration",
                f"the last reload was refused: {reloader.rejected}",
                self._rejected,
                reloader.remedy,
            )
        if reloader.not_taken is not None:
            what = f"this node's file was not put in force: {reloader.not_taken}; a reload on this node applies it"
            yield Remark("configuration", what, reloader.not_taken_at, "schedctl diff && schedctl reload")

    def _leaving(self) -> Iterator[Remark]:
        drain = self._watched.drain
        if drain.begun:
            yield Remark("leaving", f"this node is leaving: {drain.words()}", drain.since, "schedctl list --running")

    def _age(self, loop: Loop) -> float:
        """Seconds since it turned well, not counting the time before this node was started."""
        return self._clock.monotonic() - max(loop.turned_at, self._from)

    def _hear(self, notice: Notice) -> None:
        match notice.name:
            case "node.started":
                self._from = self._clock.monotonic()
            case "supervisor.gone":
                self._lost = self._clock.now()
            case "config.rejected":
                self._rejected = self._clock.now()


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(names))


def _waits(names: list[str]) -> str:
    return f"{_listed(names)} wait{'s' if len(names) == 1 else ''}"


def _loops(names: list[str]) -> str:
    return f"{_listed(names)} loop{'' if len(names) == 1 else 's'}"


def _began(now: datetime, ages: Mapping[str, float], names: list[str]) -> datetime:
    return now - timedelta(seconds=max(ages[name] for name in names))


def _rounded(duration: timedelta) -> str:
    return format_duration(timedelta(seconds=max(1, round(duration.total_seconds()))))


def _clock(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%H:%M:%S} UTC"


def _ps(pid: int | None) -> str:
    return f"ps -o pid,stat,wchan:24,args -p {pid}"


def _log_command() -> str:
    """Under systemd the log has a place; elsewhere it is wherever whoever started the daemon sends it."""
    return (
        f"journalctl _PID={os.getpid()} -n 100" if "INVOCATION_ID" in os.environ else f"ls -l /proc/{os.getpid()}/fd/2"
    )
