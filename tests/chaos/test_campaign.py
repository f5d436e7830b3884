"""A short campaign, so that every run of the suite breaks several nodes for real; `python -m tests.chaos` does it at
length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.campaign import campaign
from tests.chaos.plan import plan
from tests.chaos.report import report
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900), pytest.mark.xdist_group("load")]

NODES, SECONDS, JOBS, LEASE = (("n0", "n1", "n2"), 240.0, 40, 5.0) if LONG else (("n0", "n1"), 14.0, 12, 3.0)
SEEDS = (1, 2, 3) if LONG else (152,)
SHORT = (
    *("kill-daemon", "kill-node", "kill-supervisor", "freeze-node", "cut-reset", "cut-black-hole"),
    *("restart-immediate", "reload", "pause", "run-now"),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_doubled_or_left(tmp_path: Path, seed: int) -> None:
    faults = plan(seed, NODES, SECONDS, LEASE, () if LONG else SHORT)
    verdict, history = campaign(tmp_path, faults, nodes=list(NODES), seconds=SECONDS, seed=seed, lease=LEASE, jobs=JOBS)
    assert verdict.clean, "\n".join(report(history, verdict))
    assert verdict.figures["ran"] > 2 * SECONDS
    assert len(history.log.troubles) >= 3
