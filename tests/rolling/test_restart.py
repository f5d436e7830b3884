"""A rolling restart: each of three nodes leaves and comes back while all work goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.databases import Place
from tests.long import LONG
from tests.rolling.fleet import NAMES, fleet

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600 if LONG else 120), pytest.mark.xdist_group("load")]


def test_nothing_is_lost_doubled_late_or_killed(fresh_postgres_place: Place, tmp_path: Path) -> None:
    with fleet(tmp_path, fresh_postgres_place.url, 100 if LONG else 20) as (nodes, pace):
        for _ in range(3 if LONG else 1):
            for name in NAMES:
                nodes.replace(name)
        first, last = nodes.quieten()
        assert nodes.problems(first, last, pace) == []
        assert last - first > 5
        waited = [line for name in NAMES for line in nodes.lines(name, "drain_started")]
        # Whoever left waited for something, and says for what.
        assert any(one.startswith("load-") for line in waited for one in line["waiting_for"])
        assert not any(nodes.lines(name, "drain_ends_runs") for name in NAMES)
        # Who is the first to plan a second takes what is due in it; one of three may be later for a few seconds.
        assert len(nodes.ran_on()) >= 2
