"""PostgreSQL is shut down as by a crash and comes back, again and again under load: nothing is lost."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.chaos.postgres import ControlledPostgres
from tests.daemon.waiting import wait_for
from tests.faults.conftest import Start
from tests.faults.load import FaultJob, doubled, overlaps
from tests.faults.nodes import FaultNode, FaultNodes
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]

TIMES = 20 if LONG else 2
JOBS = [
    FaultJob(f"job-{number:02d}", 0.1 if number % 4 else 2.5, overlap="queue" if number % 5 == 1 else "skip")
    for number in range(40)
]
ASKED = FaultJob("asked", 0.2, None, overlap="allow")


def _accepted(nodes: FaultNodes, node: FaultNode) -> str:
    """The first run that this node takes again."""
    taken: list[str] = []

    def ask() -> bool:
        run = nodes.ask_for(node, "asked")
        taken.extend([run] if run else [])
        return bool(run)

    wait_for(ask, 30, f"{node.name} takes a request")
    return taken[0]


def test_nothing_is_lost(start: Start, postgres: ControlledPostgres) -> None:
    """What was asked for and promised runs, every instant has one entry, no child was ended."""
    nodes = start([*JOBS, ASKED], 2)
    chance = random.SystemRandom()
    begun = time.time()
    wait_for(lambda: len(nodes.stamps()) > 2 * len(JOBS), 30, "jobs run")
    since, promised = int(time.time()), []
    for _ in range(TIMES):
        until = time.time() + chance.uniform(1.0, 4.0)
        while time.time() < until:
            promised.append(nodes.run_now(chance.choice(nodes.nodes), "asked"))
            threading.Event().wait(0.05)
        postgres.restart("immediate")
        # Ready is also who has not noticed yet; but whoever has taken a request has its database again.
        promised += [_accepted(nodes, node) for node in nodes.nodes]
    last = time.time()
    wait_for(lambda: time.time() > last + 5, 10, "some more instants are over")
    stop = int(time.time()) - 2
    wait_for(lambda: all(nodes.begun(run) for run in promised), 30, "all that was promised has begun")
    stamps = nodes.stamps()
    print(f"{TIMES} restarts, {len(promised)} promises, {len(stamps)} stamps")
    assert overlaps(stamps) == []
    assert doubled(stamps) == []
    assert nodes.uncovered(since, stop) == []
    assert [line for node in nodes.nodes for line in nodes.audit(node, begun - 60)] == []
    assert "lost" not in {row.reason for row in nodes.ledger()[0]}
