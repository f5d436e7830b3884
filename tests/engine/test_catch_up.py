"""What becomes of instants that nobody was there for."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from scheduler.core.model import Cause, Status
from scheduler.engine import planner
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.rig import START, Rig, at, instants, jobs

MINUTELY = "* * * * *"


def restarted(rig: Rig) -> Rig:
    """The next daemon on the same database, after however long."""
    return Rig(rig.store._store, rig.text, rig.clock)


@pytest.mark.parametrize(
    ("catch_up", "ran", "skipped"),
    [
        ("latest", [at(13)], [("missed", at(8, 1), at(12, 59), 299)]),
        ("none", [at(13)], [("missed", at(8, 1), at(12, 59), 299)]),
        ("all", None, [("missed", at(8, 1), at(11, 19), 199)]),
    ],
)
def test_five_hours_of_downtime(sqlite: SqlStore, catch_up: str, ran: object, skipped: object) -> None:
    """C04: no manual step, whatever the number of missed instants; the newest one is merely late here."""
    rig = Rig(sqlite, jobs({"a": {"schedule": MINUTELY, "catch_up": catch_up}}))
    rig.turn(hours=5, seconds=30)
    rig = restarted(rig)
    rig.tick()
    if catch_up == "all":
        ran = [at(11, 20) + timedelta(minutes=m) for m in range(101)]
    assert instants(rig.runs("a")) == ran
    assert rig.skipped("a") == skipped
    assert list(faults(rig.store, "a", MINUTELY, START, rig.clock.now())) == []
    while rig.executor.live:
        rig.finish()
    rig.tick(minutes=1)
    assert rig.runs("a")[-1].scheduled_for == at(13, 1)


@pytest.mark.parametrize(("catch_up", "runs"), [("latest", 1), ("all", 1), ("none", 0)])
def test_a_machine_that_was_asleep_over_the_slot(store: SqlStore, catch_up: str, runs: int) -> None:
    """C02: asleep from two to nine over a slot at three."""
    rig = Rig(store, jobs({"a": {"schedule": "0 3 * * *", "catch_up": catch_up}}))
    rig.turn(hours=18)
    rig.tick()
    rig.clock.suspend(hours=7)
    rig.tick()
    found = rig.runs("a")
    assert [(run.scheduled_for, run.cause) for run in found] == [(at(3, day=3), Cause.CATCH_UP)] * runs
    assert rig.skipped("a") == ([] if runs else [("missed", at(3, day=3), at(3, day=3), 1)])
    assert rig.state("a").next_due_at == at(3, day=4)


@pytest.mark.parametrize(("catch_up", "most"), [("latest", 1), ("all", 4)])
def test_a_job_that_is_always_late_makes_no_endless_line(store: SqlStore, catch_up: str, most: int) -> None:
    """Every evaluation comes minutes late, and the first run takes all that time."""
    job = {"schedule": "*/5 * * * *", "catch_up": catch_up} | ({"catch_up_max": most} if catch_up == "all" else {})
    rig = Rig(store, jobs({"a": job}))
    rig.turn(minutes=2)
    for _ in range(12):
        rig.tick(minutes=5)
    statuses = rig.statuses("a")
    assert statuses == ["RUNNING"] + ["PENDING"] * most
    while rig.executor.live:
        rig.finish()
    assert list(faults(rig.store, "a", "*/5 * * * *", START, rig.clock.now())) == []
    rig.turn(minutes=2)
    assert rig.audit(START).clean


def test_an_outage_of_a_minute_and_a_second_costs_nothing(sqlite: SqlStore) -> None:
    """C25, C19: what is owed is looked up from the stored instant, however long nobody looked."""
    rig = Rig(sqlite, jobs({"a": {"schedule": "5 8 * * *"}}))
    rig.tick(minutes=4, seconds=30)
    rig.tick(seconds=91)
    assert [(run.scheduled_for, run.cause) for run in rig.runs("a")] == [(at(8, 5), Cause.CATCH_UP)]


def test_what_is_older_than_its_window_is_missed(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "0 9 * * 1", "catch_up_window": "1d"}}))
    rig.tick(days=2, hours=2)
    assert rig.runs("a") == []
    assert rig.skipped("a") == [("missed", at(9), at(9), 1)]


def test_catch_up_all_runs_in_order_one_after_the_other(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *", "catch_up": "all", "catch_up_window": "12h"}}))
    rig.turn(hours=8, minutes=5)
    rig.tick()
    while rig.executor.live:
        assert len(rig.executor.live) == 1
        rig.finish()
    started = [launch.run.scheduled_for for launch in rig.executor.started]
    assert started == [at(hour) for hour in range(9, 17)]
    assert rig.statuses("a") == ["COMPLETED"] * 8


def test_thirty_days_of_downtime_of_a_thousand_jobs(sqlite: SqlStore) -> None:
    """C05: bounded planning, a hundred runs in order, the rest in ranges, and the audit balances."""
    entries: dict[str, dict[str, object]] = {"every": {"schedule": MINUTELY, "catch_up": "all"}}
    entries |= {f"daily-{n}": {"schedule": f"{n % 60} {n % 24} * * *"} for n in range(500)}
    entries |= {f"hourly-{n}": {"schedule": f"{n % 60} * * * *"} for n in range(400)}
    entries |= {f"five-{n}": {"schedule": "*/5 * * * *"} for n in range(99)}
    rig = Rig(sqlite, jobs(entries), slots=200)
    rig.turn(days=30, seconds=90)
    began = time.thread_time()
    planned = rig.plan()
    spent = time.thread_time() - began
    assert planned == 1000
    assert spent < 10.0, "as much as for each instant"
    rows = len(rig.runs())
    every = rig.runs("every")
    assert len(every) == 101
    assert rows == 1000 + 100
    skips = [rig.skips(name) for name in entries]
    assert max(len(one) for one in skips) == 1
    assert rig.skips("every")[0].count == 30 * 1440 + 1 - 101
    report = rig.audit(START)
    assert report.clean
    assert sum(job.expected for job in report.jobs) == sum(job.ran + sum(job.skipped.values()) for job in report.jobs)
    for _ in range(101):
        rig.worker.tick(rig.store.now())
        rig.executor.finish_all()
    rig.worker.tick(rig.store.now())
    assert [run.scheduled_for for run in sorted(rig.runs("every"), key=lambda run: run.fence)] == instants(every)
    assert {run.status for run in rig.runs()} == {Status.COMPLETED}


def test_a_job_every_second_after_thirty_days(sqlite: SqlStore) -> None:
    """C05: the number of entries counts, not that of instants."""
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * * *"}}))
    rig.turn(days=30)
    began = time.thread_time()
    rig.plan()
    assert time.thread_time() - began < 3.0, "as much as for each instant"
    assert rig.skips("a")[0].count == 30 * 86400 - 1


def test_more_jobs_than_one_batch(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "BATCH", 3)
    rig = Rig(sqlite, jobs({f"j{n}": {"schedule": MINUTELY} for n in range(10)}))
    rig.turn(minutes=1)
    assert rig.plan() == 10
    assert rig.statuses() == ["RUNNING"] * 10


def test_each_skipped_instant_leaves_a_trace(sqlite: SqlStore) -> None:
    """C26: overlap, window, pause, blackout, lock held elsewhere: an entry in the ledger and a notice."""
    blackout = {"from": "2026-03-02 08:00", "to": "2026-03-02 08:30", "reason": "backup"}
    entries = {
        "overlap": {"schedule": MINUTELY},
        "missed": {"schedule": "3 8 * * *", "catch_up": "none"},
        "paused": {"schedule": MINUTELY},
        "blackout": {"schedule": MINUTELY, "blackouts": [blackout]},
        "holder": {"schedule": "1 8 * * *", "lock": "shared"},
        "lock": {"schedule": "1-3 8 * * *", "lock": "shared", "priority": -1},
    }
    rig = Rig(sqlite, jobs(entries))
    rig.desk.pause(["paused"], until=None, reason="holiday", author="me")
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    rig.tick(minutes=3)
    for name in ("overlap", "missed", "paused", "blackout", "lock"):
        assert {skip.reason for skip in rig.skips(name)} >= {name}, name
        assert {notice["job"] for notice in rig.named("run.skipped") if notice["reason"] == name} >= {name}
        expression = str(entries[name]["schedule"])
        assert list(faults(rig.store, name, expression, START, rig.clock.now())) == []
