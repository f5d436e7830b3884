"""Short campaigns, so that every run of the suite kills daemons for real; `python -m tests.crash` does it at length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.campaign import campaign
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    ("faults", "seed"),
    # In short all faults come in one campaign.
    [
        pytest.param(["daemon"] * 9, 11, id="daemon killed"),
        pytest.param(["supervisor", "stop-daemon"] * 3, 12, id="supervisor killed, daemon stopped"),
    ]
    if LONG
    else [pytest.param(["daemon", "supervisor", "daemon", "stop-daemon"], 513, id="every fault")],
)
def test_nothing_is_lost_doubled_or_left(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, faults: list[str], seed: int
) -> None:
    """The seed of the short campaign stops the daemon for 5.1 s, longer than its lease."""
    url = request.getfixturevalue("fresh_postgres_place").url if database == "postgresql" else ""
    settings = {"SCHEDULER_LEASE": "5s"} if url else {}
    # A run that was lost twice waits 30 s, and its job must be seen to go on: too long for a short campaign.
    how: dict[str, Any] = (
        {"jobs": 100 if url else 200} if LONG else {"jobs": 30, "quiet": (0.5, 2.5), "afterwards": 4.0, "retry": False}
    )
    verdict, _ = campaign(tmp_path, faults=faults, seed=seed, url=url, **how, **settings)
    assert verdict.problems == []
    assert verdict.figures["ran"] > 150
