"""PostgreSQL is away for a while, at default settings and under load: no child is killed, no occurrence is lost or
doubled, and soon after it takes connections again all is as before. Nodes say meanwhile that they are not ready."""

from __future__ import annotations

import json
import time

import pytest

from tests.chaos.postgres import ControlledPostgres
from tests.daemon.waiting import wait_for
from tests.faults.conftest import Start
from tests.faults.load import FaultJob, doubled, overlaps, unfinished
from tests.faults.nodes import FaultNodes
from tests.faults.punctual import BUSY
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]

AWAY = 90.0 if LONG else 12.0
NORMAL = 3.0
"""Seconds after the server takes connections in which jobs are on time again."""
SECONDS = 40
LONG_ONES = [FaultJob(f"long-{number}", AWAY + 8.0, None, overlap="allow") for number in range(5)]
JOBS = [FaultJob(f"job-{number:02d}", 0.1 if number % 4 else 3.0) for number in range(SECONDS)] + LONG_ONES


@pytest.mark.parametrize("how", ["stopped", "hung"] if LONG else ["stopped"])
def test_nothing_is_killed_lost_or_doubled(start: Start, postgres: ControlledPostgres, how: str) -> None:
    nodes = start(JOBS, 2)
    begun = time.time()
    runs = [nodes.run_now(nodes.nodes[number % 2], job.name) for number, job in enumerate(LONG_ONES)]
    wait_for(lambda: all(nodes.begun(run) for run in runs), 20, "what takes long has begun")
    wait_for(lambda: len(nodes.stamps()) > 4 * SECONDS, 30, "jobs run")
    since = int(time.time())
    postgres.freeze() if how == "hung" else postgres.stop("fast")
    away = time.time()
    wait_for(lambda: not any(node.ready for node in nodes.nodes), 10, "no node is ready")
    red = time.time() - away
    reasons = [json.loads(node.why_not_ready()) for node in nodes.nodes]
    wait_for(lambda: time.time() > away + AWAY, 2 * AWAY, "it has been away for long enough")
    waiting = [node.events("loop_waits") for node in nodes.nodes]
    postgres.thaw() if how == "hung" else postgres.start()
    back = time.time()
    wait_for(lambda: all(node.ready for node in nodes.nodes), 20, "all nodes are ready")
    green = time.time() - back
    wait_for(lambda: time.time() > back + NORMAL + 6, 20, "jobs run again")
    stop = int(time.time()) - 2
    normal = _on_time_from(nodes, back, stop)
    wait_for(lambda: len(unfinished(nodes.stamps())) <= SECONDS, AWAY + 30, "what takes long has ended")
    print(f"{how}: red after {red:.1f} s, green after {green:.1f} s, on time after {normal:.2f} s")
    print(f"the log says why {[len(one) for one in waiting]} times; /readyz says {reasons[0]}")
    stamps = nodes.stamps()
    assert {one.attempt for one in stamps} == {1}
    assert not any(one.startswith("long") for one in unfinished(stamps))
    assert overlaps(stamps) == []
    assert doubled(stamps) == []
    assert nodes.uncovered(since, stop) == []
    assert [line for node in nodes.nodes for line in nodes.audit(node, begun - 60)] == []
    assert "lost" not in {row.reason for row in nodes.ledger()[0]}
    assert normal <= NORMAL + BUSY
    assert all(len(one) <= 12 for one in waiting), "the log is not flooded"


def _on_time_from(nodes: FaultNodes, back: float, until: int) -> float:
    """Seconds after `back` from which on all short jobs began within a second of every instant."""
    short = [job.name for job in JOBS if job.schedule is not None and job.seconds < 1]
    begun = {(one.job, one.instant): one.at for one in reversed(nodes.stamps()) if one.kind == "S"}
    late = [
        at for at in range(int(back), until) if any(begun.get((job, at), float("inf")) - at > 1 + BUSY for job in short)
    ]
    return max(late, default=int(back)) + 1 - back
