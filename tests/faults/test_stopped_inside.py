"""A node that stops, dies or is cut off at any point of a transaction: the rows that it held hold up nobody else."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.daemon.waiting import wait_for
from tests.faults.conftest import Start
from tests.faults.load import doubled, overlaps
from tests.faults.nodes import FaultNode, FaultNodes
from tests.faults.punctual import BUSY, PERIODIC, held_by, latest
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900), pytest.mark.xdist_group("load")]

STOPPED = 5.0
"""Seconds for which a node is stopped: it wakes when the server has long taken its rows from it."""
KILL, STOP, HOLE = signal.SIGKILL, signal.SIGSTOP, 0
NAMES = {KILL: "kill", STOP: "stop", HOLE: "black hole"}
LATEST = {KILL: 1.0, STOP: 3.0, HOLE: 3.0}
"""Seconds by which an occurrence of another job may begin late."""
PASSED = 30.0
"""Seconds within which a node passes each point of its transactions, also if the other one is mostly faster."""
POINTS = (
    "after SELECT nodes FOR SHARE",
    "after UPDATE nodes",
    "after SELECT jobs FOR NO KEY UPDATE",
    "after SELECT jobs FOR KEY SHARE",
    "after UPDATE jobs",
    "after INSERT INTO runs",
    "after SELECT queues FOR UPDATE",
    "after SELECT locks FOR NO KEY UPDATE",
    "after UPDATE locks",
    "after SELECT runs FOR NO KEY UPDATE",
    "after SELECT runs FOR UPDATE",
    "after UPDATE runs",
    "after INSERT INTO attempts",
    "after UPDATE attempts",
    "after INSERT INTO outputs",
    "before COMMIT",
    "after COMMIT",
)
"""What planning, claiming, settling and beating pass."""
SHORT = {
    KILL: ("after UPDATE runs",),
    STOP: ("after INSERT INTO runs", "before COMMIT"),
    HOLE: ("after SELECT queues FOR UPDATE",),
}


@pytest.fixture
def nodes(start: Start) -> FaultNodes:
    """The first one stops where it is told to."""

    def prepare(nodes: FaultNodes) -> None:
        world = nodes.nodes[0].world
        world.program = ("tests.faults.stopping", str(world.folder))

    return start(PERIODIC, 2, prepare, SCHEDULER_LEASE="30s")


@pytest.mark.parametrize("number", [KILL, STOP, HOLE], ids=["kill", "stop", "hole"])
def test_others_are_on_time(nodes: FaultNodes, number: int) -> None:
    victim = nodes.nodes[0]
    wait_for(lambda: len(nodes.stamps()) > 20, 30, "jobs run")
    points = POINTS if LONG else SHORT[number]
    found: dict[str, tuple[float, str]] = {}
    for point in points:
        if (worst := _break(nodes, victim, point, number)) is not None:
            found[point] = worst
            print(f"{NAMES[number]} {point}: {worst[0]:.2f} s ({worst[1]})", flush=True)
    stamps = nodes.stamps()
    assert overlaps(stamps) == []
    assert doubled(stamps) == []
    assert len(found) >= 0.7 * len(points), f"never got to {set(points) - found.keys()}"
    assert {point: late for point, late in found.items() if late[0] > LATEST[number] + BUSY} == {}


def _break(nodes: FaultNodes, victim: FaultNode, point: str, number: int) -> tuple[float, str] | None:
    """By how much the latest occurrence of a job that the victim did not run began late; None: it never got there."""
    order, go = victim.world.folder / "stop", victim.world.folder / "go"
    identity = victim.ledger_id()
    go.unlink(missing_ok=True)
    order.with_suffix(".new").write_text(f"{point} {int(number)}")
    order.with_suffix(".new").rename(order)
    if not _within(PASSED, lambda: not order.exists()):
        order.unlink(missing_ok=True)
        if _runs(victim):
            return None
    if number == HOLE:
        victim.proxy.black_hole()
        go.touch()
    else:
        wait_for(lambda: not _runs(victim), 5, "it is stopped or dead")
    began = time.time()
    held = held_by(nodes, identity)
    others = {job.name for job in PERIODIC} - held
    assert len(others) > len(PERIODIC) / 3, f"it holds nearly everything: {held}"
    wait_for(lambda: time.time() > began + STOPPED, 2 * STOPPED, "it has been stopped for a while")
    _mend(victim, number)
    last = began + STOPPED - LATEST[number]
    wait_for(lambda: time.time() > last + LATEST[STOP] + 1, 30, "what was due has begun")
    wait_for(lambda: victim.ready, 30, "it is ready again")
    return latest(nodes, others, began - 1, last)


def _mend(victim: FaultNode, number: int) -> None:
    if number == STOP:
        victim.send(signal.SIGCONT)
    elif number == HOLE:
        victim.proxy.pass_through()
    else:
        assert victim.world.daemon is not None
        victim.world.daemon.wait(10)
        victim.world.start()


def _runs(node: FaultNode) -> bool:
    daemon = node.world.daemon
    assert daemon is not None
    if daemon.poll() is not None:
        return False
    return Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "Tt"


def _within(seconds: float, condition: object) -> bool:
    assert callable(condition)
    try:
        wait_for(condition, seconds, "", step=0.01)
    except AssertionError:
        return False
    return True
