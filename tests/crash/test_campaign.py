"""Short campaigns, so that every run of the suite kills daemons for real; `python -m tests.crash` does it at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.campaign import campaign

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240), pytest.mark.xdist_group("load")]


@pytest.mark.parametrize(
    ("faults", "seed"),
    [
        pytest.param(["daemon", "daemon", "daemon", "daemon"], 11, id="daemon killed"),
        pytest.param(["supervisor", "stop-daemon", "supervisor"], 12, id="supervisor killed, daemon stopped"),
    ],
)
def test_nothing_is_lost_doubled_or_left(tmp_path: Path, faults: list[str], seed: int) -> None:
    verdict, _ = campaign(tmp_path, faults=faults, seed=seed, jobs=40, afterwards=34.0)
    assert verdict.problems == []
    assert verdict.figures["ran"] > 500
