"""Short campaigns, so that every run of the suite kills daemons for real; `python -m tests.crash` does it at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.campaign import campaign
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    ("faults", "seed"),
    [
        pytest.param(["daemon"] * 3, 11, id="daemon killed"),
        pytest.param(["supervisor", "stop-daemon"], 12, id="supervisor killed, daemon stopped"),
    ],
)
def test_nothing_is_lost_doubled_or_left(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, faults: list[str], seed: int
) -> None:
    url = request.getfixturevalue("fresh_postgres_place").url if database == "postgresql" else ""
    settings = {"SCHEDULER_LEASE": "5s"} if url else {}
    # A run that was lost twice waits 30 s, and its job must be seen to go on: too long for a short campaign.
    how = {"jobs": 100 if url else 200, "afterwards": 40.0} if LONG else {"jobs": 30, "afterwards": 4.0, "retry": False}
    verdict, _ = campaign(tmp_path, faults=faults * (3 if LONG else 1), seed=seed, url=url, **how, **settings)
    assert verdict.problems == []
    assert verdict.figures["ran"] > 150
