"""What the service manager hears, and when: with a clock that tests turn, and loops that hang when they are told to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from scheduler import service as service_module
from scheduler.engine.health import ESSENTIAL
from scheduler.observe.notify_socket import NotifySocket
from scheduler.service import Parts, Service, waits_for_disk
from tests.daemon.waiting import wait_for

WATCHDOG = 120.0


class Notify(NotifySocket):
    """Writes down instead of sending."""

    def __init__(self, watchdog: float | None = WATCHDOG) -> None:
        super().__init__("/nowhere", watchdog)
        self.sent: list[dict[str, str | int]] = []

    def send(self, **lines: str | int) -> None:
        self.sent.append(lines)

    def take(self) -> list[dict[str, str | int]]:
        taken, self.sent = self.sent, []
        return taken


class World:
    """A daemon without a daemon: all is well until a test says otherwise."""

    def __init__(self, watchdog: float | None = WATCHDOG) -> None:
        self.now = 1000.0
        self.notify = Notify(watchdog)
        names = (*ESSENTIAL, "audit", "retention")
        self.loops: dict[str, Any] = {
            name: SimpleNamespace(turned_at=self.now, returned_at=self.now, thread=None) for name in names
        }
        self.sick: str | None = None
        self.remarks: list[str] = []
        self.drain: Any = SimpleNamespace(begun=False)
        self.runs: list[Any] = []
        self.service = Service(self.notify, lambda: self.now)
        readiness: Any = SimpleNamespace(
            checks=lambda: {"database": lambda: self.sick}, remarks=lambda: list(self.remarks)
        )
        self.parts = Parts(self.loops, readiness, self.drain, lambda: self.runs, lambda: 7)

    def joined(self) -> World:
        self.service.join(self.parts)
        return self

    def ready(self) -> World:
        self.joined().pass_time(1)
        assert {"READY": 1, "STATUS": "7 jobs, none running"} in self.notify.take()
        return self

    def pass_time(self, seconds: float, *, hanging: tuple[str, ...] = (), failing: tuple[str, ...] = ()) -> None:
        """Rounds of half a second, in which every loop comes back that does not hang."""
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            for name, loop in self.loops.items():
                if name not in hanging:
                    loop.returned_at = self.now
                    if name not in failing:
                        loop.turned_at = self.now
            self.service.round()

    def pings(self) -> int:
        return sum("WATCHDOG" in lines for lines in self.notify.take())


def names(sent: list[dict[str, str | int]]) -> list[str]:
    return [name for lines in sent for name in lines]


# ------------------------------------------------------------ ready


def test_ready_only_when_every_essential_loop_has_turned_since_the_start() -> None:
    world = World().joined()
    world.service.round()
    for missing in ESSENTIAL:
        world.pass_time(5, hanging=(missing,))
        for name in ESSENTIAL:
            if name != missing:
                world.loops[name].turned_at = 1000.0
        assert "READY" not in names(world.notify.take()), missing
    world.pass_time(1, hanging=("audit",))
    assert names(world.notify.take()).count("READY") == 1


def test_a_loop_that_only_failed_so_far_is_not_ready() -> None:
    world = World().joined()
    world.pass_time(10, failing=("planner",))
    assert "READY" not in names(world.notify.take())


def test_not_ready_while_the_database_is_away_and_status_says_so() -> None:
    world = World().joined()
    world.sick = "the database does not answer: it is locked"
    world.pass_time(10)
    sent = world.notify.take()
    assert "READY" not in names(sent)
    assert {"STATUS": "Starting; the database does not answer: it is locked"} in sent
    world.sick = None
    world.pass_time(1)
    assert {"READY": 1, "STATUS": "7 jobs, none running"} in world.notify.take()


def test_ready_is_said_once() -> None:
    world = World().ready()
    world.sick = "away"
    world.pass_time(30)
    world.sick = None
    world.pass_time(30)
    assert "READY" not in names(world.notify.take())


def test_a_start_asks_for_more_time_until_it_is_ready_and_no_longer_than_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_module, "EXTENSION", 0.04)
    world = World()
    world.service.start()
    wait_for(lambda: names(world.notify.sent).count("EXTEND_TIMEOUT_USEC") >= 3, 10, "the start is extended", 0.01)
    assert world.notify.sent[0] == {"EXTEND_TIMEOUT_USEC": 40_000}
    world.now += service_module.LONGEST_START + 1
    wait_for(lambda: not extending(), 10, "nobody asks any more after an hour", 0.01)

    world.service.start()
    wait_for(extending, 10, "asked again", 0.01)
    world.ready()
    wait_for(lambda: not extending(), 10, "nobody asks when the daemon is ready", 0.01)


def extending() -> bool:
    return any(thread.name == "service" for thread in threading.enumerate())


def test_stages_of_the_start() -> None:
    world = World()
    world.service.stage("Opening the database")
    world.service.stage("Opening the database")
    assert world.notify.take() == [{"STATUS": "Opening the database"}]


# ------------------------------------------------------------ reload


def test_a_reload_is_told_with_its_instant_and_ends_ready() -> None:
    world = World().ready()
    with world.service.reloading():
        (begun,) = world.notify.take()
        assert begun["RELOADING"] == 1
        assert isinstance(begun["MONOTONIC_USEC"], int)
    assert world.notify.take() == [{"READY": 1}]


def test_a_reload_that_fails_ends_ready_too() -> None:
    world = World().ready()
    with pytest.raises(ValueError), world.service.reloading():
        raise ValueError
    assert names(world.notify.take()) == ["RELOADING", "MONOTONIC_USEC", "READY"]


def test_a_reload_before_the_daemon_is_ready_says_nothing() -> None:
    world = World().joined()
    with world.service.reloading():
        pass
    assert world.notify.take() == []


def test_a_reload_during_which_the_daemon_leaves_does_not_call_it_back() -> None:
    world = World().ready()
    with world.service.reloading():
        world.drain.begun = True
        world.service.round()
    sent = world.notify.take()
    assert names(sent).index("RELOADING") < names(sent).index("STOPPING")
    assert "READY" not in names(sent)


# ------------------------------------------------------------ leaving


def test_a_drain_says_so_once_names_what_it_waits_for_and_asks_for_time() -> None:
    world = World().ready()
    world.runs = [SimpleNamespace(job=f"job{n}", id=f"01a22863-488f-7000-81f8-5df9a7bc25c{n}") for n in range(5)]
    world.drain.begun = True
    world.pass_time(60)
    sent = world.notify.take()
    assert names(sent).count("STOPPING") == 1
    first = next(lines for lines in sent if "STOPPING" in lines)
    assert first["EXTEND_TIMEOUT_USEC"] == 60_000_000
    extensions = names(sent).count("EXTEND_TIMEOUT_USEC")
    assert 4 <= extensions <= 6
    said = [lines["STATUS"] for lines in sent if "STATUS" in lines]
    assert said == ["Leaving: waits for job0 (a7bc25c0), job1 (a7bc25c1), job2 (a7bc25c2) and 2 more"]
    world.runs = []
    world.pass_time(5)
    assert {"STATUS": "Leaving"} in world.notify.take()


# ------------------------------------------------------------ watchdog


def test_the_watchdog_is_fed_at_least_twice_within_its_limit() -> None:
    world = World().ready()
    world.pass_time(10 * WATCHDOG)
    assert 20 <= world.pings() <= 50


@pytest.mark.parametrize("hanging", ESSENTIAL)
def test_a_loop_that_hangs_ends_the_pings_and_one_that_returns_brings_them_back(hanging: str) -> None:
    world = World().ready()
    world.pass_time(WATCHDOG / 2 + 1, hanging=(hanging,))
    world.notify.take()
    world.pass_time(2 * WATCHDOG, hanging=(hanging,))
    assert world.pings() == 0
    world.pass_time(1)
    assert world.pings() == 1


def test_a_hang_is_logged_once() -> None:
    world = World().ready()
    with structlog.testing.capture_logs() as said:
        world.pass_time(2 * WATCHDOG, hanging=("keeper",))
    assert [(line["event"], line["loops"]) for line in said] == [("loops_hang", ["keeper"])]


def test_loops_that_may_take_their_time_are_not_watched() -> None:
    world = World().ready()
    world.pass_time(2 * WATCHDOG, hanging=("audit", "retention"))
    assert world.pings() >= 4


def test_a_database_that_is_away_for_an_hour_is_no_hang() -> None:
    world = World().ready()
    world.sick = "the database does not answer: the server is starting"
    world.pass_time(3600, failing=ESSENTIAL)
    sent = world.notify.take()
    assert names(sent).count("WATCHDOG") >= 60
    assert {"STATUS": "7 jobs, none running; the database does not answer: the server is starting"} in sent


def test_a_loop_that_waits_for_the_disk_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().ready()
    world.loops["worker"].thread = 4711
    monkeypatch.setattr(service_module, "waits_for_disk", lambda thread: thread == 4711)
    world.pass_time(2 * WATCHDOG, hanging=("worker",))
    assert world.pings() >= 4
    world.pass_time(2 * WATCHDOG, hanging=("worker", "planner"))
    world.notify.take()
    world.pass_time(WATCHDOG, hanging=("worker", "planner"))
    assert world.pings() == 0


def test_a_short_watchdog_leaves_the_loops_the_time_they_need() -> None:
    """They are called every second, on a loaded machine later."""
    world = World(watchdog=2.0).ready()
    world.pass_time(3, hanging=("planner",))
    assert world.pings() >= 3


def test_without_a_watchdog_there_are_no_pings() -> None:
    world = World(watchdog=None).ready()
    world.pass_time(60)
    assert world.pings() == 0


def test_a_thread_that_waits_for_the_disk_is_told_from_one_that_waits_for_anything_else(tmp_path: Path) -> None:
    """A parent waits for its vfork child as for a disk: uninterruptibly. This child waits until a pipe is opened."""
    os.mkfifo(tmp_path / "pipe")
    program = (
        "import os, sys; print(flush=True); opened = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0); "
        "os.posix_spawn('/bin/true', ['true'], {}, file_actions=[opened]); print(flush=True); input()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "pipe")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        wait_for(lambda: waits_for_disk(process.pid), 10, "it waits uninterruptibly", 0.01)
        (tmp_path / "pipe").write_text("")
        process.stdout.readline()
        wait_for(lambda: not waits_for_disk(process.pid), 10, "it waits for its input", 0.01)
        process.communicate(b"\n", timeout=10)
    assert not waits_for_disk(None)
    assert not waits_for_disk(threading.get_native_id())


# ------------------------------------------------------------ status


def test_status_tells_what_is_wrong_once_and_only_when_it_changes() -> None:
    world = World().ready()
    world.remarks = ["the last reload was refused: jobs.yaml:3:5: no"]
    world.runs = [object(), object()]
    world.pass_time(20)
    assert [lines for lines in world.notify.take() if "STATUS" in lines] == [
        {"STATUS": "7 jobs, 2 running; the last reload was refused: jobs.yaml:3:5: no"}
    ]
    world.sick = "no turn for 30 s: planner"
    world.remarks = ["the disk is full", "the clock is wrong"]
    world.pass_time(3)
    assert [lines for lines in world.notify.take() if "STATUS" in lines] == [
        {"STATUS": "7 jobs, 2 running; the disk is full; the clock is wrong"}
    ]


def test_without_a_service_manager_nothing_happens() -> None:
    silent = Service(NotifySocket(None, None))
    silent.start()
    silent.stage("x")
    silent.join(World().parts)
    silent.round()
    with silent.reloading():
        pass
    silent.leave()
    assert not extending()
