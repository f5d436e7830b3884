"""What a node says about itself when something is wrong, and that it says nothing when nothing is."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.core.errors import DatabaseAway, InvalidInput, Refused, SupervisorAway, Unavailable
from scheduler.core.remark import Remark
from scheduler.engine import disk
from scheduler.engine.disk import Disk
from scheduler.engine.fan_out import LoadFirst
from scheduler.engine.health import ESSENTIAL, SILENT, SLOW, SLOWEST, Health, Watched
from scheduler.engine.loop import Loop
from scheduler.readiness import Readiness
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig, jobs

MINUTELY = {"schedule": "* * * * *"}

FULL = "the disk of /state is full: what finds no room is not started or settled until there is some"


class Patient:
    """A rig with a Health; `turn` lets every loop turn."""

    def __init__(self, store: SqlStore, text: str = "") -> None:
        self.rig = Rig(store, text or jobs({"a": MINUTELY}))
        self.loops = {name: Loop(name, lambda now: 0, self.rig.clock.now) for name in (*ESSENTIAL, "audit", "disk")}
        self.disk = Disk([Path("/state")])
        self.silent = 0.0
        rig = self.rig
        watched = Watched(
            self.loops,
            rig.in_force,
            rig.invariants,
            rig.reloader,
            rig.drain,
            rig.keeper,
            rig.beats,
            self.disk,
            lambda: (4711, self.silent),
        )
        self.health = Health(watched, rig.bus, rig.clock)
        self.turn()

    def turn(self, *names: str) -> None:
        for name in names or self.loops:
            self.loops[name].turned_at = self.rig.clock.monotonic()

    def readiness(self) -> Readiness:
        return Readiness(self.loops, self.rig.clock, self.rig.in_force, self.health)

    def said(self) -> list[tuple[str, Any]]:
        return [(one.about, one.since) for one in self.health.remarks()]

    def one(self) -> Remark:
        (remark,) = self.health.remarks()
        return remark


@pytest.fixture
def patient(sqlite: SqlStore) -> Patient:
    return Patient(sqlite)


def test_nothing_is_said_when_nothing_is_wrong(patient: Patient) -> None:
    patient.rig.tick(minutes=1)
    patient.turn()
    assert patient.said() == []
    assert patient.health.holdup() is None


# ------------------------------------------------------------ loops


@pytest.mark.parametrize("name", ESSENTIAL)
def test_a_loop_that_does_not_turn(patient: Patient, name: str) -> None:
    others = [other for other in patient.loops if other != name]
    patient.rig.turn(seconds=SLOW)
    patient.turn(*others)
    assert patient.said() == [], "a machine that is busy may take so long"
    patient.rig.turn(seconds=1)
    patient.turn(*others)
    remark = patient.one()
    assert (remark.about, remark.since) == ("loops", START)
    assert remark.what.startswith(f"the {name} loop has not turned")
    assert remark.command is not None
    patient.turn(name)
    assert patient.said() == []


def test_what_may_take_long_takes_long(patient: Patient) -> None:
    patient.rig.turn(seconds=SLOWEST)
    patient.turn(*ESSENTIAL, "disk")
    assert patient.said() == []
    patient.rig.turn(seconds=1)
    patient.turn(*ESSENTIAL, "disk")
    assert patient.said() == [("loops", START)]


def test_a_loop_that_fails_at_every_turn(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(now: object) -> int:
        raise ValueError("oops")

    monkeypatch.delenv("INVOCATION_ID", raising=False)
    loop = patient.loops["worker"] = Loop("worker", broken, patient.rig.clock.now)
    loop.turned_at = patient.rig.clock.monotonic()
    loop.run()
    assert loop.failing
    patient.rig.turn(seconds=6)
    patient.turn("beats", "planner", "keeper", "children", "disk", "audit")
    assert patient.one().what == "the worker loop fails at every turn; the daemon's log has the error"
    assert patient.one().command == f"ls -l /proc/{os.getpid()}/fd/2"
    monkeypatch.setenv("INVOCATION_ID", "1")
    assert "journalctl" in str(patient.one().command)


def test_what_loops_wait_for_is_said_once_with_the_earliest_time(patient: Patient) -> None:
    def full(now: object) -> int:
        raise DatabaseAway("/state/scheduler.db: database or disk is full")

    for name in ("planner", "worker"):
        patient.loops[name] = Loop(name, full, patient.rig.clock.now)
        patient.loops[name].run()
        patient.turn(name)
    patient.rig.turn(seconds=SLOW)
    patient.turn(*(name for name in patient.loops if name not in ("planner", "worker")))
    assert patient.said() == []
    patient.rig.turn(seconds=2)
    patient.turn(*(name for name in patient.loops if name not in ("planner", "worker")))
    remark = patient.one()
    assert (remark.about, remark.since) == ("database", START)
    assert remark.what == "/state/scheduler.db: database or disk is full (planner, worker wait)"
    assert remark.command == "schedctl db status"


def test_the_time_before_the_start_does_not_count(patient: Patient) -> None:
    patient.rig.turn(minutes=3)
    patient.rig.bus.publish("node.started", node=patient.rig.node)
    assert patient.said() == []
    patient.rig.turn(seconds=6)
    assert patient.said() == [("loops", START + timedelta(minutes=3))]


def waits(patient: Patient, name: str, reason: str | Unavailable) -> None:
    def tick(now: object) -> int:
        raise reason if isinstance(reason, Unavailable) else DatabaseAway(reason)

    patient.loops[name] = Loop(name, tick, patient.rig.clock.now)
    patient.turn(name)
    patient.loops[name].run()


def test_a_database_that_is_away_is_one_thing_whatever_each_loop_was_told(patient: Patient) -> None:
    waits(patient, "planner", "database pg: connection refused")
    waits(patient, "keeper", "database pg: the server closes")
    patient.rig.turn(seconds=40)
    patient.turn(*(name for name in patient.loops if name not in ("planner", "keeper")))
    assert (
        patient.one().what
        == "database pg: connection refused (planner waits); database pg: the server closes (keeper waits)"
    )
    (problem,) = patient.readiness().problems()
    assert (problem.about, problem.since, problem.command) == ("database", START, "schedctl db status")


@pytest.mark.parametrize(
    ("error", "about", "command"),
    [
        (SupervisorAway("the supervisor does not read"), "supervisor", "ps -o pid,stat,wchan:24,args -p 4711"),
        (LoadFirst(), "configuration", "schedctl nodes"),
        (DatabaseAway("database pg: connection refused"), "database", "schedctl db status"),
    ],
)
def test_what_loops_wait_for_is_filed_under_what_it_is(
    patient: Patient, error: Unavailable, about: str, command: str
) -> None:
    """Also where the loop that asks the database at every turn is the one that waits, and for so long that the node is
    not ready any more."""
    for name in ("beats", "keeper"):
        waits(patient, name, error)
    patient.rig.turn(seconds=40)
    patient.turn(*(name for name in patient.loops if name not in ("beats", "keeper")))
    what = f"{error} (beats, keeper wait)"
    assert patient.readiness().problems() == [Remark(about, what, START, command)]
    failed = [name for name, check in patient.readiness().checks().items() if check() is not None]
    assert failed == (["loops", "database"] if about == "database" else ["loops"])


def test_two_things_that_are_away_are_two_problems(patient: Patient) -> None:
    waits(patient, "beats", SupervisorAway("the supervisor is gone"))
    waits(patient, "keeper", "database pg: connection refused")
    patient.rig.turn(seconds=6)
    patient.turn(*(name for name in patient.loops if name not in ("beats", "keeper")))
    assert sorted(patient.said()) == [("database", START), ("supervisor", START)]


def test_a_supervisor_that_is_silent_is_told_once(patient: Patient) -> None:
    waits(patient, "beats", SupervisorAway("the supervisor does not read"))
    patient.rig.turn(seconds=6)
    patient.turn(*(name for name in patient.loops if name != "beats"))
    patient.silent = SILENT + 1
    assert [about for about, _ in patient.said()] == ["supervisor"]


def test_loops_that_hang_together_are_one_thing(patient: Patient) -> None:
    patient.rig.turn(seconds=6)
    patient.turn("keeper", "worker", "children")
    assert patient.said() == [("loops", START)]
    assert patient.one().what.startswith("the beats, planner loops have not turned")


def test_a_disk_that_hangs_explains_the_loops_that_hang_on_it(patient: Patient) -> None:
    patient.rig.turn(seconds=61)
    patient.turn("keeper", "worker", "children", "audit")
    assert patient.one() == Remark(
        "disk", "the disk of /state does not answer (beats, planner wait)", START, "df -h /state"
    )


def test_a_failed_check_is_told_once_as_what_it_follows_from(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    readiness = patient.readiness()
    waits(patient, "keeper", "database /state/scheduler.db: it is locked")
    assert readiness.checks()["database"]() is not None
    assert patient.said() == [], "busy for less than a moment"
    assert readiness.problems() == [
        Remark("database", "database /state/scheduler.db: it is locked", START, "schedctl db status")
    ]
    for name in ESSENTIAL:
        waits(patient, name, "database /state/scheduler.db: the disk is full")
    monkeypatch.setattr("os.statvfs", lambda folder: SimpleNamespace(f_bavail=0, f_frsize=1, f_files=0))
    patient.disk.tick(START)
    patient.rig.turn(seconds=31)
    patient.turn("disk", "audit")
    assert [name for name, check in readiness.checks().items() if check() is not None] == ["loops", "database"]
    assert [problem.about for problem in readiness.problems()] == ["disk"]
    assert readiness.remarks() == [FULL]


# ------------------------------------------------------------ disk


def test_one_full_disk_is_one_thing_to_attend_to(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(now: object) -> int:
        raise DatabaseAway("database /state/scheduler.db: the disk is full")

    patient.loops["worker"] = Loop("worker", full, patient.rig.clock.now)
    patient.loops["worker"].run()
    patient.turn()
    patient.rig.turn(seconds=6)
    patient.turn(*(name for name in patient.loops if name != "worker"))
    assert patient.said() == [("database", START)]
    monkeypatch.setattr("os.statvfs", lambda folder: SimpleNamespace(f_bavail=0, f_frsize=1, f_files=0))
    patient.disk.tick(START)
    assert patient.said() == [("disk", START)]


@pytest.mark.parametrize(
    ("free", "files", "full"), [(disk.LEAST - 1, 10, True), (disk.LEAST, 10, False), (1 << 40, 0, True)]
)
def test_a_full_disk(patient: Patient, monkeypatch: pytest.MonkeyPatch, free: int, files: int, full: bool) -> None:
    seen = SimpleNamespace(f_bavail=free, f_frsize=1, f_files=100, f_favail=files)
    monkeypatch.setattr("os.statvfs", lambda folder: seen)
    assert patient.disk.tick(START) == int(full)
    patient.disk.tick(START + timedelta(seconds=6))
    assert patient.said() == ([("disk", START)] if full else [])
    if full:
        assert patient.one().what == FULL
        assert patient.one().command == "df -h /state"
    seen.f_bavail, seen.f_favail = 1 << 40, 100
    patient.disk.tick(START + timedelta(seconds=9))
    assert len(patient.said()) == int(full), "it looks every five seconds"
    patient.disk.tick(START + timedelta(seconds=12))
    assert patient.said() == []


def test_a_file_system_without_a_number_of_files_is_not_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """btrfs, for one."""
    seen = SimpleNamespace(f_bavail=1 << 40, f_frsize=1, f_files=0, f_favail=0)
    monkeypatch.setattr("os.statvfs", lambda folder: seen)
    assert Disk([Path("/state")]).tick(START) == 0


def test_a_folder_that_is_gone_is_not_full(tmp_path: Path) -> None:
    assert Disk([tmp_path, tmp_path / "gone", tmp_path]).tick(START) == 0


def test_a_disk_that_does_not_answer(patient: Patient) -> None:
    patient.rig.turn(seconds=SLOWEST + 1)
    patient.turn(*ESSENTIAL, "audit")
    assert patient.one() == Remark("disk", "the disk of /state does not answer", START, "df -h /state")


# ------------------------------------------------------------ clock


def test_a_clock_that_was_set_back(patient: Patient) -> None:
    patient.rig.tick(minutes=1)
    patient.rig.clock.step(hours=-1)
    patient.rig.tick(seconds=1)
    patient.turn()
    since = START - timedelta(minutes=58, seconds=59)
    remark = patient.one()
    assert (remark.about, remark.since, remark.command) == ("clock", since, "timedatectl")
    assert "set back by 1h: instants up to 08:01:01 UTC have had their entries" in remark.what
    assert "wait for another 1h" in remark.what
    patient.rig.tick(minutes=30)
    patient.turn()
    assert "wait for another 30m" in patient.one().what
    patient.rig.tick(minutes=30)
    patient.turn()
    assert patient.said() == []
    assert patient.rig.runs("a")[-1].scheduled_for == START + timedelta(minutes=1)


def test_a_clock_that_is_put_right_again(patient: Patient) -> None:
    patient.rig.tick(minutes=1)
    for step, count in ((-1, 1), (-1, 1), (2, 0)):
        patient.rig.clock.step(hours=step)
        patient.rig.tick(seconds=1)
        patient.turn()
        assert len(patient.said()) == count


def test_two_steps_back_are_one_wait(patient: Patient) -> None:
    patient.rig.tick(minutes=1)
    for hours in (-1, -2):
        patient.rig.clock.step(hours=hours)
        patient.rig.tick(seconds=1)
    patient.turn()
    assert "set back by 2h59m59s" in patient.one().what


@pytest.mark.parametrize("how", ["while it ran", "while it was down"])
def test_the_next_daemon_knows_of_a_clock_that_was_set_back(store: SqlStore, how: str) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.beats.tick(rig.store.now())
    rig.tick(minutes=1)
    rig.turn(seconds=15)
    rig.beats.tick(rig.store.now())
    if how == "while it ran":
        rig.clock.step(hours=-1)
        rig.tick(seconds=1)
    else:
        rig.clock.step(hours=-1)
    rig = Rig(store, rig.text, rig.clock)
    rig.tick(seconds=1)
    back = rig.keeper.set_back
    assert back is not None
    assert START + timedelta(minutes=1, seconds=10) < back.until < START + timedelta(minutes=2)
    rig.tick(minutes=61)
    assert rig.keeper.set_back is None


@pytest.mark.parametrize("seconds", [0.9, -0.9, 3600])
def test_other_clocks_hold_up_nothing(patient: Patient, seconds: float) -> None:
    patient.rig.tick(seconds=1)
    patient.rig.clock.step(seconds=seconds)
    patient.rig.tick(seconds=1)
    patient.turn()
    assert patient.said() == []


@pytest.mark.parametrize(("offset", "word"), [(4.2, "4s behind"), (-3600.0, "1h ahead of"), (0.9, None)])
def test_a_clock_that_is_not_the_databases(patient: Patient, offset: float, word: str | None) -> None:
    patient.rig.beats.offset = offset
    assert [one.what for one in patient.health.remarks()] == (
        [f"this machine's clock is {word} the database's"] if word else []
    )
    patient.rig.turn(seconds=3)
    patient.turn()
    assert patient.said() == ([("clock", START)] if word else [])


# ------------------------------------------------------------ supervisor


def test_a_supervisor_that_does_not_answer(patient: Patient) -> None:
    patient.rig.turn(seconds=20)
    patient.turn()
    patient.silent = SILENT
    assert patient.said() == []
    patient.silent = 7.0
    remark = patient.one()
    assert (remark.about, remark.since) == ("supervisor", START + timedelta(seconds=13))
    assert "process 4711" in remark.what
    assert str(remark.command).endswith("-p 4711")


def test_a_supervisor_that_was_replaced_is_told_of_for_a_while(patient: Patient) -> None:
    patient.rig.bus.publish("supervisor.gone", node="n")
    assert patient.said() == [("supervisor", START)]
    patient.rig.turn(minutes=9, seconds=59)
    patient.turn()
    assert patient.said() == [("supervisor", START)]
    patient.rig.turn(seconds=1)
    patient.turn()
    assert patient.said() == []


# ------------------------------------------------------------ configuration, leaving, invariants


def test_a_file_that_was_refused(patient: Patient) -> None:
    with pytest.raises(InvalidInput):
        patient.rig.reload("jobs: [")
    patient.rig.turn(seconds=5)
    patient.turn()
    remark = patient.one()
    assert (remark.about, remark.since, remark.command) == ("configuration", START, "schedctl check")
    assert remark.what.startswith("the last reload was refused: ")
    patient.rig.reload(jobs({"a": MINUTELY}))
    assert patient.said() == []


def test_a_good_file_that_was_refused_is_compared_and_not_checked(patient: Patient) -> None:
    patient.rig.desk.run_now("a", author="me", payload=1, has_payload=True)
    with pytest.raises(Refused, match="waiting runs"):
        patient.rig.reload(jobs({"b": {}}))
    assert (patient.one().about, patient.one().command) == ("configuration", "schedctl diff")


def test_a_file_that_was_not_taken_says_what_applies_it(patient: Patient) -> None:
    patient.rig.reloader.not_taken, patient.rig.reloader.not_taken_at = "other nodes live", START
    remark = patient.one()
    assert remark.what == "this node's file was not put in force: other nodes live; a reload on this node applies it"
    assert remark.command == "schedctl diff && schedctl reload"


def test_a_node_that_stands_aside(patient: Patient) -> None:
    patient.rig.in_force.stand_aside("generation 2 cannot be loaded here: no", START)
    remark = patient.one()
    assert (remark.about, remark.since, remark.command) == ("configuration", START, "schedctl nodes")
    assert patient.health.holdup() == (
        "this node stands aside and starts nothing: generation 2 cannot be loaded here: no"
    )


def test_a_node_that_leaves(patient: Patient) -> None:
    rig = patient.rig
    rig.tick(minutes=1)
    patient.turn()
    rig.drain.begin()
    assert patient.one() == Remark(
        "leaving",
        "this node is leaving: it plans and starts nothing more, and waits for 1 run, at most for another 5m",
        START + timedelta(minutes=1),
        "schedctl list --running",
    )
    assert "nothing of it runs before a daemon is started again" in str(patient.health.holdup())
    rig.finish()
    assert patient.one().what == "this node is leaving: it plans and starts nothing more"


def test_a_broken_invariant_says_since_when(patient: Patient) -> None:
    patient.rig.turn(minutes=3)
    patient.rig.invariants.tick(patient.rig.store.now())
    patient.rig.turn(seconds=10)
    patient.turn()
    patient.rig.invariants.tick(patient.rig.store.now())
    patient.rig.turn(seconds=30)
    patient.turn()
    patient.rig.invariants.tick(patient.rig.store.now())
    remark = patient.one()
    assert (remark.about, remark.since) == ("overdue", START + timedelta(minutes=3, seconds=10))
    assert remark.command == "schedctl list --state overdue"
