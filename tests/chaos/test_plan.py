"""The plan of a campaign: the same for the same seed, and never two faults of one lane at once."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from tests.chaos.plan import BY_NAME, KINDS, plan

NODES = ("n0", "n1", "n2")


def test_the_seed_says_it_all() -> None:
    assert plan(7, NODES, 600, 5.0) == plan(7, NODES, 600, 5.0)
    assert plan(7, NODES, 600, 5.0) != plan(8, NODES, 600, 5.0)


def test_another_process_makes_the_same_plan() -> None:
    """Hashes of texts differ from process to process."""
    command = [sys.executable, "-m", "tests.chaos", "--plan", "--seed", "7", "--minutes", "2", "--nodes", "2"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [str(fault) for fault in plan(7, ("n0", "n1"), 120, 5.0)] == told.splitlines()[1:]


@pytest.mark.parametrize("seed", range(20))
def test_a_lane_has_one_fault_at_a_time(seed: int) -> None:
    faults = plan(seed, NODES, 600, 5.0)
    for whom in {fault.whom for fault in faults}:
        own = [fault for fault in faults if fault.whom == whom]
        assert all(before.at + before.lasts < after.at for before, after in pairwise(own))
        assert own[-1].at + own[-1].lasts <= 600


def test_in_ten_minutes_each_node_suffers_everything() -> None:
    faults = plan(1, NODES, 600, 5.0)
    for node in NODES:
        assert {fault.kind for fault in faults if fault.whom == node} == {k.name for k in KINDS if k.target == "node"}
    assert {fault.kind for fault in faults} == set(BY_NAME)


def test_what_must_outlast_a_lease_does() -> None:
    assert all(fault.lasts > 5.0 for fault in plan(1, NODES, 600, 5.0) if BY_NAME[fault.kind].leased)


def test_only_what_was_asked_for() -> None:
    assert {fault.kind for fault in plan(1, NODES, 600, 5.0, ["kill-node", "reload"])} == {"kill-node", "reload"}
