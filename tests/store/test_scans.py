"""What scans leave in the store: where they stand, reports, holes, items that nobody could read."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.compensator import Undecodable, Window
from scheduler.core.scan import Counts, Hole, ScanReport, ScanState
from scheduler.core.scan_queries import Aside
from scheduler.store import scans as scans_module
from scheduler.store.store import SqlStore
from tests.store.world import DAY, HOUR, MINUTE, SECOND, T0

COUNTS = Counts(10, 5, 3, 1, 1, 2, 1, 4, 5, 1, timedelta(hours=2, microseconds=1))
FULL = ScanState(
    job="scan",
    source="shop",
    watermark=T0,
    window=Window(T0 - HOUR, T0 + HOUR),
    cursor={"after": ["evt_1", 2, None]},
    counts=COUNTS,
    began_at=T0 + MINUTE,
    set_back_at=T0 - DAY,
    query="abc",
    run="run-1",
)


def save(store: SqlStore, *states: ScanState) -> None:
    with store.begin() as tx:
        for one in states:
            tx.scans.save(one)


def test_where_a_scan_stands(store: SqlStore) -> None:
    fresh = ScanState("new", "other")
    save(store, FULL, fresh)
    with store.begin() as tx:
        assert tx.scans.state("scan", lock=True) == FULL
        assert tx.scans.state("new") == fresh
        assert tx.scans.state("nobody", lock=True) is None
        assert tx.scans.states() == [fresh, FULL]
    ended = replace(FULL, watermark=T0 + HOUR, window=None, cursor=None, counts=Counts(), began_at=None, run="run-2")
    save(store, ended)
    with store.begin() as tx:
        assert tx.scans.states() == [fresh, ended]


def test_what_a_newer_release_counts_is_left_alone(store: SqlStore) -> None:
    save(store, FULL)
    with store._database.writing() as connection:
        connection.exec_driver_sql(
            'UPDATE scan_states SET counts = \'{"listed": 2, "guessed": 3, "oldest_unseen": null}\''
        )
    with store.read() as tx:
        state = tx.scans.state("scan")
    assert state is not None
    assert state.counts == Counts(listed=2)


def hole(start: int, end: int, **changes: Any) -> Hole:
    """Of hours after T0."""
    fields: dict[str, Any] = {
        "job": "scan",
        "source": "shop",
        "start": T0 + start * HOUR,
        "end": T0 + end * HOUR,
        "why": "the provider lists 24 hours",
        "found_at": T0 + DAY,
    }
    return Hole(**{**fields, **changes})


def report(number: int = 0, **changes: Any) -> ScanReport:
    fields: dict[str, Any] = {
        "job": "scan",
        "source": "shop",
        "run": f"run-{number}",
        "window": Window(T0, T0 + HOUR),
        "counts": COUNTS,
        "began_at": T0 + HOUR,
        "ended_at": T0 + HOUR + SECOND,
        "complete": True,
    }
    return ScanReport(**{**fields, **changes})


def keep(store: SqlStore, *reports: ScanReport) -> None:
    with store.begin() as tx:
        for one in reports:
            tx.scans.report(one)


def test_reports_come_back_newest_first(store: SqlStore) -> None:
    full = report(
        1,
        complete=False,
        why="throttled",
        holes=(hole(0, 1), hole(3, 4)),
        unlisted=200,
        unlisted_ids=("a", "ü"),
        lag=timedelta(hours=1),
        dry_run=True,
    )
    other = report(2, job="nightly")
    keep(store, report(0), full, other)
    with store.read() as tx:
        assert tx.scans.reports(None, 10) == [other, full, report(0)]
        assert tx.scans.reports("scan", 10) == [full, report(0)]
        assert tx.scans.reports("scan", 1) == [full]


def test_the_newest_reports_of_a_job_are_kept(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans_module, "REPORTS", 3)
    keep(store, report(0, job="other"), *[report(number) for number in range(5)])
    with store.read() as tx:
        assert [one.run for one in tx.scans.reports("scan", 10)] == ["run-4", "run-3", "run-2"]
        assert len(tx.scans.reports("other", 10)) == 1


def test_holes_that_meet_are_one(store: SqlStore) -> None:
    first = hole(0, 2)
    keep(store, report(0, holes=(first,)))
    keep(store, report(1, holes=(replace(hole(2, 3), found_at=T0 + 2 * DAY),)))
    keep(store, report(2, holes=(hole(1, 3),)))
    with store.read() as tx:
        assert tx.scans.holes() == [hole(0, 3)]
    apart = [
        hole(4, 5),
        hole(3, 4, why="the hook is inactive"),
        hole(3, 4, job="nightly"),
        hole(3, 4, source="other"),
    ]
    keep(store, report(3, holes=tuple(apart)))
    with store.read() as tx:
        found = tx.scans.holes()
        assert len(found) == 5
        assert set(found) == {hole(0, 3), *apart}
        assert found == sorted(found, key=lambda one: one.start)
        assert tx.scans.holes("other") == [apart[3]]
        assert tx.scans.holes(since=T0 + 4 * HOUR) == [apart[0]]
    # between two of them: the later one grows
    keep(store, report(4, holes=(hole(3, 4),)))
    with store.read() as tx:
        assert hole(3, 5) in tx.scans.holes()


def test_items_that_nobody_could_read_are_kept_once(store: SqlStore) -> None:
    def put(job: str, *items: Undecodable, hours: int = 0) -> None:
        with store.begin() as tx:
            tx.scans.put_aside(job, "shop", items, T0 + hours * HOUR, 3)

    one, two = Undecodable("{]", "no JSON", T0 - DAY), Undecodable("\x00\ud800", "no text")
    put("scan", one, two, one)
    put("scan", one, hours=1)
    put("nightly", one, hours=2)
    put("scan")
    stored = replace(two, raw="\ufffd" * 4)
    with store.read() as tx:
        assert tx.scans.aside("shop", 10) == [
            ("nightly", T0 + 2 * HOUR, one),
            ("scan", T0, stored),
            ("scan", T0, one),
        ]
        assert tx.scans.aside("other", 10) == []
    with store.queries() as queries:
        first = Aside("nightly", "shop", T0 + 2 * HOUR, T0 - DAY, "no JSON", "{", 2)
        assert queries.scan_asides(None, 1, 1) == [first]
        assert queries.scan_asides("nightly", 9, 1) == [first]
        assert [(one.job, one.length) for one in queries.scan_asides("scan", 9, 1)] == [("scan", 4), ("scan", 2)]
    put("scan", *[Undecodable(str(number), "no event") for number in range(4)], hours=3)
    with store.read() as tx:
        kept = [item.raw for job, _, item in tx.scans.aside("shop", 10) if job == "scan"]
    assert kept == ["3", "2", "1"]
