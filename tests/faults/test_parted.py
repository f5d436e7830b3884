"""Two nodes, of which one is parted from the database by a black hole for twice the lease, in the midst of a run."""

from __future__ import annotations

import time

import pytest

from tests.daemon.waiting import wait_for
from tests.faults.conftest import Start
from tests.faults.load import FaultJob, overlaps
from tests.faults.nodes import FaultNodes
from tests.faults.punctual import BUSY
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]

LEASE = 4.0
"""Seconds; a busy machine can keep up no shorter one."""
TIMES = 20 if LONG else 1
GRACE = 2.0
"""Seconds after the end of the lease in which the other side runs the job."""


def test_nothing_overlaps_and_the_other_side_runs_the_job(start: Start) -> None:
    jobs = [FaultJob("long", 600.0, None, overlap="queue"), FaultJob("seconds", 0.1)]
    nodes = start(jobs, 2, SCHEDULER_LEASE=f"{LEASE:g}s")
    taken = [_part(nodes) for _ in range(TIMES)]
    print(f"taken over after {', '.join(f'{one:.2f}' for one in taken)} s of a lease of {LEASE:g} s")
    assert overlaps(nodes.stamps()) == []
    assert max(taken) <= LEASE + GRACE + BUSY


def _part(nodes: FaultNodes) -> float:
    """After how many seconds the run began on the other side."""
    run = nodes.run_now(nodes.nodes[0], "long")
    wait_for(lambda: nodes.begun(run) is not None, 20, "the run has begun")
    first = nodes.begun(run)
    assert first is not None
    home = nodes.home_of(first)
    (other,) = [node for node in nodes.nodes if node is not home]
    home.proxy.black_hole()
    cut = time.time()
    wait_for(lambda: nodes.begun(run, first.attempt) is not None, 4 * LEASE, "it runs on the other side", step=0.02)
    second = nodes.begun(run, first.attempt)
    assert second is not None
    assert nodes.home_of(second) is other
    assert second.fence > first.fence
    wait_for(lambda: time.time() - cut >= 2 * LEASE, 4 * LEASE, "twice the lease is over")
    home.proxy.pass_through()
    healed = time.monotonic()
    wait_for(lambda: home.ready, 20, "the node that was cut off is ready again")
    assert other.world.ask("POST", f"/v1/runs/{run}/cancel", {})[0] in (200, 202)
    wait_for(lambda: _settled(nodes, run), 20, "the run is over")
    print(f"ready {time.monotonic() - healed:.1f} s after the network works again")
    return second.at - cut


def _settled(nodes: FaultNodes, run: str) -> bool:
    return next(not row.unfinished for row in nodes.ledger()[0] if row.id == run)
