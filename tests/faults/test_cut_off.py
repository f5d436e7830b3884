"""One of two nodes loses its way to the database, in each way that networks fail, for less than its lease: it starts
nothing, keeps what runs, says so, and goes on by itself; what is due meanwhile begins on the other node."""

from __future__ import annotations

import time

import pytest

from tests.chaos.proxy import Proxy
from tests.daemon.waiting import wait_for
from tests.faults.conftest import Start
from tests.faults.load import FaultJob, doubled, overlaps, unfinished
from tests.faults.punctual import BUSY, PERIODIC, held_by, latest
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]

LEASE = 30.0
CUT = 12.0 if LONG else 8.0
RED = 8.0
"""Seconds after which a node that cannot reach the database says so: it waits for a silent server for a while."""
GREEN = 8.0
ATTEMPTS = 2.0
"""Connections a second that a node tries to make at most, besides those that it had."""
LATE = 3.0
FAULTS = ("drop", "reset", "black_hole", "stall", "half_open", "half_open_requests", "slow")
LASTING = FaultJob("lasting", CUT + 8.0, None, overlap="queue")


@pytest.mark.parametrize("fault", FAULTS if LONG else ("black_hole",))
def test_the_other_node_does_what_is_due(start: Start, fault: str) -> None:
    nodes = start([*PERIODIC, LASTING], 2, SCHEDULER_LEASE=f"{LEASE:g}s")
    wait_for(lambda: len(nodes.stamps()) > 20, 30, "jobs run")
    run = nodes.run_now(nodes.nodes[0], LASTING.name)
    wait_for(lambda: nodes.begun(run) is not None, 10, "what lasts has begun")
    began = nodes.begun(run)
    assert began is not None
    victim = nodes.home_of(began)
    _cut(victim.proxy, fault)
    cut, accepted = time.time(), victim.proxy.accepted
    held = held_by(nodes, victim.ledger_id())
    # A slow network is no outage: the node may get through now and then.
    works = fault == "slow"
    if not works:
        wait_for(lambda: not victim.ready, RED, "the node says that it is not ready", step=0.1)
    red = time.time() - cut
    wait_for(lambda: time.time() > cut + CUT, 2 * CUT, "the network has been broken for a while")
    rate = (victim.proxy.accepted - accepted) / (time.time() - cut)
    victim.proxy.pass_through()
    healed = time.time()
    wait_for(lambda: victim.ready, 30, "the node is ready again")
    green = time.time() - healed
    wait_for(lambda: time.time() > healed + LATE + 1, 10, "what was due has begun")
    late, which = latest(nodes, {job.name for job in PERIODIC} - held, cut - 1, healed)
    stamps = nodes.stamps()
    fresh = [one for one in stamps if one.kind == "S" and nodes.home_of(one) is victim and cut + 1 < one.at < healed]
    print(f"{fault}: red after {red:.1f} s, green after {green:.1f} s, latest {late:.2f} s ({which}), {len(held)} held")
    print(f"{fault}: {rate:.1f} connections a second while it was cut off")
    assert works or rate <= ATTEMPTS
    assert works or not fresh, "it started what it could not have claimed"
    assert late <= LATE + BUSY
    assert green <= GREEN
    wait_for(lambda: not any(LASTING.name in one for one in unfinished(nodes.stamps())), CUT + 40, "what lasts ends")
    assert {one.attempt for one in stamps if one.run == run} == {1}, "its children live as long as its trust"
    assert overlaps(stamps) == []
    assert doubled(stamps) == []


def _cut(proxy: Proxy, fault: str) -> None:
    if fault == "half_open_requests":
        proxy.half_open("requests")
    elif fault == "slow":
        proxy.slow(1000)
    else:
        getattr(proxy, fault)()
