"""What is done to a running daemon, and for how long it then may excuse itself."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable

from tests.crash.world import World

Outage = tuple[float, float]


def kill_daemon(world: World, chance: random.Random) -> Outage:
    """kill -9 of the daemon, restarted at once."""
    began = time.time()
    world.kill()
    world.start()
    return began, time.time()


def kill_supervisor(world: World, chance: random.Random) -> Outage:
    """kill -9 of the supervisor; the daemon ends what it left and starts another."""
    began = time.time()
    victim = world.supervisor()
    if victim is not None:
        os.kill(victim, signal.SIGKILL)
        _wait(lambda: world.supervisor() not in (None, victim), 30)
    return began, time.time()


def stop_supervisor(world: World, chance: random.Random) -> Outage:
    """SIGSTOP of the supervisor: after some silence the daemon kills it and starts another."""
    began = time.time()
    victim = world.supervisor()
    if victim is not None:
        os.kill(victim, signal.SIGSTOP)
        _wait(lambda: world.supervisor() not in (None, victim), 60)
    return began, time.time()


def stop_daemon(world: World, chance: random.Random) -> Outage:
    """SIGSTOP of the daemon for a while, then SIGCONT."""
    assert world.daemon is not None
    began = time.time()
    world.daemon.send_signal(signal.SIGSTOP)
    threading.Event().wait(chance.uniform(1.0, 8.0))
    world.daemon.send_signal(signal.SIGCONT)
    world.wait_ready()
    return began, time.time()


FAULTS: dict[str, Callable[[World, random.Random], Outage]] = {
    "daemon": kill_daemon,
    "supervisor": kill_supervisor,
    "stop-supervisor": stop_supervisor,
    "stop-daemon": stop_daemon,
}


def _wait(condition: Callable[[], bool], timeout: float) -> None:
    until = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("the daemon did not get over it in time")
        threading.Event().wait(0.05)
