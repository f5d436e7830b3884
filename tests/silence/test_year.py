"""No false alarm and no miss overheard in a simulated year."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

import pytest

from scheduler.core.state import State, Why
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.long import LONG
from tests.silence.instants import Timing
from tests.silence.oracle import Record, Span, misses
from tests.silence.year import HOUR, Year, begin


@pytest.fixture
def sqlite(sqlite_place: Place) -> Iterator[SqlStore]:
    with sqlite_place.opened_hastily() as store:
        yield store


def judge(year: Year) -> Counter[str]:
    """Compares what the engine stored with what the oracle says of the same world."""
    told: set[tuple[str, datetime]] = set()
    expected: dict[tuple[str, datetime], bool] = {}
    counts: Counter[str] = Counter()
    for name, record in year.records.items():
        flips = year.flips(name)
        missed = [flip for flip in flips if flip.new is State.MISSED]
        found = [flip.at for flip in missed]
        assert len(found) == len(set(found)), f"{name}: one miss was stored twice"
        told |= {(name, at) for at in found}
        expected |= {(name, at): disturbed for at, disturbed in misses(record, year.outages, year.clock.now())}
        for before, after in pairwise(flips):
            assert before.new is after.old, (name, before, after)
        recovered = [flip for flip in flips if flip.new is State.UP and flip.why is Why.SUCCESS]
        bad = [flip for flip in flips if flip.old is State.UP]
        assert len(recovered) in (len(bad), len(bad) - 1), "one recovery for each failure"
    false, silent = sorted(told - expected.keys()), sorted(expected.keys() - told)
    assert not false, f"false alarms: {false[:9]}"
    assert not silent, f"nobody heard: {silent[:9]}"
    planted = {(one.job, one.covers + HOUR) for one in year.planted}
    for job, deadline in planted:
        assert (job, deadline) in told, f"planted and not told: {job} {deadline}"
    undisturbed = [one for one in told - planted if not expected[one]]
    assert not undisturbed, f"nothing was wrong with {undisturbed[:9]}"
    counts["planted"], counts["told"], counts["runs"] = len(planted), len(told), sum(map(_runs, year.records.values()))
    counts["events"], counts["disturbed"] = year.events, sum(expected[one] for one in told - planted)
    return counts


def _runs(record: Record) -> int:
    return len(record.runs)


@pytest.mark.parametrize(("month", "day"), [(3, 5), (10, 22)])
def test_weeks_in_which_clocks_are_set(sqlite: SqlStore, month: int, day: int) -> None:
    start = begin(2026, month, day)
    year = Year(
        sqlite, start, start + 12 * 24 * HOUR, jobs=40, misses=12, seed=month, restarts=4, pauses=6, edits=5, removals=3
    )
    year.run()
    counts = judge(year)
    assert counts["planted"] == 12


PARTS = 10


@pytest.mark.load
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not LONG, reason="a year takes minutes (TESTS_LONG=1)")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_year(sqlite: SqlStore, part: int) -> None:
    """Two hundred jobs in twenty zones, all of them healthy but for 500 planted misses, and for what a restart cut
    short. In ten parts, so that they can run beside each other."""
    began = time.monotonic()
    start, length = begin(2026, 1, 1), 365 * 24 * HOUR / PARTS
    year = Year(
        sqlite,
        start + part * length,
        start + (part + 1) * length,
        jobs=200,
        misses=500 // PARTS,
        seed=part,
        restarts=12,
        pauses=15,
        edits=10,
        removals=5,
        hourly=False,
    )
    year.run()
    counts = judge(year)
    print(f"part {part}: {dict(counts)} in {time.monotonic() - began:.0f} s")
    assert counts["planted"] == 500 // PARTS


def test_the_oracle_sees_what_was_missed() -> None:
    start = begin(2026, 1, 1)
    daily = Timing("UTC", 0, (6,))
    day = 24 * HOUR
    due = [start + 6 * HOUR + number * day for number in range(4)]
    runs = {
        "good": Span(due[0], due[0], due[0] + HOUR / 2, succeeded=True),
        "failed": Span(due[1], due[1], due[1] + HOUR / 2),
        "slow": Span(due[2], due[2], due[2] + 2 * HOUR, succeeded=True),
    }
    record = Record([(start, daily)], runs=runs)
    assert misses(record, [], start + 4 * day) == [(due[1] + HOUR, False), (due[3] + HOUR, False)]
    runs["failed"].succeeded = True
    assert misses(record, [], start + 3 * day) == [(due[2] + HOUR, True)], "a run that hung was in the way"
    away = [(due[2] - HOUR, due[2] + HOUR + HOUR / 2)]
    assert misses(record, away, start + 3 * day) == []
