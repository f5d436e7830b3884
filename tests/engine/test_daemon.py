"""The host of the loops: prompt, complete, and not led astray by a clock that is set."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.engine.clock import SystemClock
from scheduler.engine.daemon import Daemon, Steadily
from scheduler.engine.loop import Loop
from tests.engine.doubles import TurnedClock

PATIENCE = 20.0


class Counted:
    """A tick that can be waited for."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.times: list[float] = []

    def __call__(self, now: datetime) -> int:
        with self.changed:
            self.times.append(time.monotonic())
            self.changed.notify_all()
        return 1

    def reaches(self, count: int, within: float = PATIENCE) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: len(self.times) >= count, within)


class Host:
    def __init__(self, clock: SystemClock | TurnedClock, next_due: Callable[[], datetime | None]) -> None:
        self.ticks = {name: Counted() for name in ("planner", "worker", "keeper")}
        loops = {name: Loop(name, tick, lambda: datetime.now(UTC)) for name, tick in self.ticks.items()}
        self.daemon = Daemon(loops, clock, {"planner": next_due})
        self.daemon.start()


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    made: list[Host] = []
    yield made
    for host in made:
        host.daemon.shutdown()


def test_every_loop_turns_at_once_and_then_every_second(hosts: list[Host]) -> None:
    host = Host(SystemClock(), lambda: None)
    hosts.append(host)
    for tick in host.ticks.values():
        assert tick.reaches(3)
        assert tick.times[2] - tick.times[1] == pytest.approx(1.0, abs=0.6)


def test_a_poke_turns_one_loop_soon(hosts: list[Host]) -> None:
    host = Host(SystemClock(), lambda: None)
    hosts.append(host)
    assert host.ticks["worker"].reaches(1)
    for _ in range(5):
        seen = len(host.ticks["worker"].times)
        begun = time.monotonic()
        host.daemon.poke("worker")
        assert host.ticks["worker"].reaches(seen + 1)
        assert time.monotonic() - begun < 0.9


def test_a_loop_is_poked_later(hosts: list[Host]) -> None:
    """Of several requests the last counts."""
    host = Host(SystemClock(), lambda: None)
    hosts.append(host)
    for delay in (0, 600, 300):
        before = datetime.now(UTC)
        host.daemon.poke_later("keeper", timedelta(seconds=delay))
    later = [job for job in host.daemon._scheduler.get_jobs() if job.id == "keeper-again"]
    assert [job.next_run_time >= before + timedelta(seconds=300) for job in later] == [True]
    assert later[0].next_run_time < before + timedelta(seconds=500)
    host.daemon.poke_later("keeper", timedelta(0))
    assert host.ticks["keeper"].reaches(2)


def test_the_planner_turns_at_the_next_instant(hosts: list[Host]) -> None:
    due = datetime.now(UTC) + timedelta(seconds=1.5)
    host = Host(SystemClock(), lambda: due)
    hosts.append(host)
    begun = time.monotonic()
    planner = host.ticks["planner"]
    assert planner.reaches(3)
    assert min(abs(one - begun - 1.5) for one in planner.times) < 0.4


def test_a_poked_planner_looks_ahead(hosts: list[Host]) -> None:
    """A reload may have brought a job that is due before the next regular turn."""
    due: list[datetime] = []
    host = Host(SystemClock(), lambda: due[0] if due else None)
    hosts.append(host)
    planner = host.ticks["planner"]
    assert planner.reaches(1)
    for job in host.daemon._scheduler.get_jobs():
        job.modify(next_run_time=datetime.now(UTC) + timedelta(hours=1))
    seen = len(planner.times)
    due.append(datetime.now(UTC) + timedelta(seconds=1.5))
    host.daemon.poke("planner")
    assert planner.reaches(seen + 2)


def test_the_main_thread_does_what_is_posted(hosts: list[Host]) -> None:
    host = Host(SystemClock(), lambda: None)
    hosts.append(host)
    done: list[str] = []
    host.daemon.post(lambda: done.append(threading.current_thread().name))
    host.daemon.serve(lambda: bool(done))
    assert done == [threading.current_thread().name]


def test_a_signal_is_served_by_the_main_thread(hosts: list[Host]) -> None:
    host = Host(SystemClock(), lambda: None)
    hosts.append(host)
    done: list[int] = []
    former = signal.getsignal(signal.SIGUSR1)
    try:
        host.daemon.on_signal(signal.SIGUSR1, lambda: done.append(1))
        signal.raise_signal(signal.SIGUSR1)
        host.daemon.serve(lambda: bool(done))
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert done == [1]


@pytest.mark.parametrize("hours", [-1, 1])
def test_when_the_clock_is_set_every_loop_turns_at_once(hosts: list[Host], hours: int) -> None:
    """C07: the timer underneath waits by the wall clock and may have fallen asleep for an hour."""
    clock = TurnedClock()
    host = Host(clock, lambda: None)
    hosts.append(host)
    for tick in host.ticks.values():
        assert tick.reaches(1)
    for job in host.daemon._scheduler.get_jobs():
        job.modify(next_run_time=datetime.now(UTC) + timedelta(hours=1))
    before = {name: len(tick.times) for name, tick in host.ticks.items()}
    rounds = 0

    def until() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            clock.step(hours=hours)
        return rounds == 4

    for _ in range(3):
        host.daemon.post(lambda: None)
    host.daemon.serve(until)
    for name, tick in host.ticks.items():
        assert tick.reaches(before[name] + 1), name


@pytest.mark.parametrize("asleep", [timedelta(0), timedelta(seconds=0.9), timedelta(seconds=61.5), timedelta(days=400)])
def test_turns_that_were_slept_through_are_not_made_up_for(asleep: timedelta) -> None:
    """A host that was suspended for a weekend must not first count the turns that it missed."""
    last, steadily = datetime(2026, 1, 1, tzinfo=UTC), Steadily(timedelta(seconds=1))
    now = last + asleep
    following = steadily.get_next_fire_time(last, now)
    assert now < following <= now + timedelta(seconds=1)
    assert (following - last) % timedelta(seconds=1) == timedelta(0)
    assert steadily.get_next_fire_time(None, now) == now


def test_a_tick_that_looks_ahead_while_the_daemon_stops_does_not_hang_it() -> None:
    """It asks APScheduler for another moment at the very time at which that one waits for it."""
    stopping, asked = threading.Event(), threading.Event()

    def next_due() -> datetime | None:
        asked.set()
        stopping.wait(PATIENCE)
        time_to_be_inside_shutdown.wait(0.3)
        return datetime.now(UTC) + timedelta(seconds=0.5)

    time_to_be_inside_shutdown = threading.Event()
    host = Host(SystemClock(), next_due)
    assert asked.wait(PATIENCE)
    thread = threading.Thread(target=host.daemon.shutdown, daemon=True)
    stopping.set()
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_moment_that_passed_while_the_clock_is_caught_up_with_is_no_error(
    hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(SystemClock(), lambda: None)
    hosts.append(host)
    passed = host.daemon._scheduler.add_job(int, "date", run_date=datetime.now(UTC) + timedelta(days=1))
    passed.remove()
    monkeypatch.setattr(host.daemon._scheduler, "get_jobs", lambda: [passed])
    host.daemon._catch_up_with_clock()
