"""The audit finds what was planted, and nothing else; the engine's own writes it down and starts nothing."""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from scheduler.core.errors import InvalidInput
from scheduler.core.ids import new_id
from scheduler.core.model import Cause, NewRun
from scheduler.core.stamp import to_text
from scheduler.engine import balance, swap
from scheduler.store import tables as t
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.rig import START, Rig, at, jobs

MINUTELY = {"schedule": "* * * * *"}


def sql(store: SqlStore, statement: object) -> int:
    """Behind everybody's back."""
    with store.begin() as tx:
        return int(tx.runs.session.write(statement))  # type: ignore[attr-defined]


def told(rig: Rig, job: str = "a", since: datetime = START) -> tuple[int, int, dict[str, int], int, int]:
    (one,) = rig.audit(since, job).jobs
    assert one.expected == one.ran + sum(one.skipped.values()) + one.unaccounted_count
    return one.expected, one.ran, dict(one.skipped), one.unaccounted_count, len(one.surplus)


def busy_rig(store: SqlStore) -> Rig:
    """Instants 8:01 to 8:10: runs at 8:01, 8:04, 8:07, 8:10, in between skipped by overlap; looked at at 8:11:30."""
    rig = Rig(store, jobs({"a": MINUTELY}))
    for minute in range(1, 11):
        rig.tick(minutes=1)
        if minute % 3 == 0:
            rig.finish()
    rig.finish()
    return rig


def test_a_clean_ledger_balances(store: SqlStore) -> None:
    rig = busy_rig(store)
    rig.tick(minutes=1)
    rig.turn(seconds=30)
    assert told(rig) == (10, 4, {"overlap": 6}, 0, 0)
    assert rig.audit(START).clean


def test_a_deleted_run_is_missed(store: SqlStore) -> None:
    rig = busy_rig(store)
    sql(store, delete(t.runs).where(t.runs.c.scheduled_for == at(8, 4)))
    rig.turn(minutes=1)
    (one,) = rig.audit(START).jobs
    assert one.unaccounted == (at(8, 4),)
    assert not rig.audit(START).clean


def test_a_deleted_skip_is_missed_with_all_its_instants(store: SqlStore) -> None:
    rig = busy_rig(store)
    sql(store, delete(t.skips).where(t.skips.c.first == at(8, 5)))
    rig.turn(minutes=1)
    (one,) = rig.audit(START).jobs
    assert one.unaccounted == (at(8, 5), at(8, 6))


def test_a_skip_that_counts_wrongly_is_seen(sqlite: SqlStore) -> None:
    rig = busy_rig(sqlite)
    sql(sqlite, update(t.skips).where(t.skips.c.first == at(8, 5)).values(count=3))
    rig.turn(minutes=1)
    assert rig.audit(START).jobs[0].surplus == (at(8, 5),)


def test_a_run_that_the_schedule_does_not_have_is_surplus(store: SqlStore) -> None:
    rig = busy_rig(store)
    add_run(rig, at(8, 7, 30))
    rig.turn(minutes=1)
    assert rig.audit(START).jobs[0].surplus == (at(8, 7, 30),)


def test_an_instant_with_a_run_and_a_skip_is_surplus(store: SqlStore) -> None:
    rig = busy_rig(store)
    add_run(rig, at(8, 5))
    rig.turn(minutes=1)
    assert rig.audit(START).jobs[0].surplus == (at(8, 5),)
    assert told(rig) == (10, 5, {"overlap": 5}, 0, 1)


def test_two_skips_of_one_instant_are_surplus(sqlite: SqlStore) -> None:
    rig = busy_rig(sqlite)
    again = {"job": "a", "reason": "missed", "first": at(8, 6), "last": at(8, 6), "count": 1, "detail": ""}
    sql(sqlite, insert(t.skips).values(again))
    rig.turn(minutes=1)
    assert rig.audit(START).jobs[0].surplus == (at(8, 6),)
    told(rig)


def test_next_due_moved_ahead_leaves_instants_unaccounted(store: SqlStore) -> None:
    rig = busy_rig(store)
    sql(store, update(t.jobs).values(next_due_at=at(8, 30)))
    rig.tick(minutes=20)
    (one,) = rig.audit(START).jobs
    assert (one.unaccounted_count, one.unaccounted[0], one.unaccounted[-1]) == (19, at(8, 11), at(8, 29))


def test_a_planner_that_stands_still_is_seen(sqlite: SqlStore) -> None:
    rig = busy_rig(sqlite)
    rig.turn(minutes=5)
    assert rig.audit(START).jobs[0].unaccounted == tuple(at(8, minute) for minute in range(11, 15))


def test_more_than_are_named_are_counted(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    sql(sqlite, update(t.jobs).values(next_due_at=at(18)))
    rig.tick(hours=10)
    (one,) = rig.audit(START).jobs
    assert (len(one.unaccounted), one.unaccounted_count) == (balance.NAMED, 599)


def test_the_instant_of_a_reload_belongs_to_the_old_version(store: SqlStore) -> None:
    """Valid from: not including, valid to: including."""
    rig = Rig(store, jobs({"a": {"schedule": "0,30 * * * *"}}))
    rig.turn(hours=1)
    rig.reload(jobs({"a": {"schedule": "0,20 * * * *"}}))
    rig.tick()
    rig.tick(minutes=20)
    rig.tick(minutes=40)
    rig.finish()
    rig.turn(minutes=2)
    assert [run.scheduled_for for run in rig.runs("a")] == [at(9)]
    assert rig.skipped("a")[0][:2] == ("missed", at(8, 30))
    assert told(rig) == (4, 1, {"missed": 1, "overlap": 2}, 0, 0)


def test_removed_and_disabled_jobs_owe_what_they_owed_until_then(store: SqlStore) -> None:
    entries = {"a": MINUTELY, "b": MINUTELY, "c": {}}
    rig = Rig(store, jobs(entries))
    for _ in range(5):
        rig.tick(minutes=1)
        rig.finish()
    rig.reload(jobs({"b": {**MINUTELY, "enabled": False}, "c": {}}))
    for _ in range(5):
        rig.tick(minutes=1)
    assert told(rig, "a") == told(rig, "b") == (5, 5, {}, 0, 0)
    sql(store, delete(t.runs).where(t.runs.c.scheduled_for == at(8, 2)))
    assert told(rig, "a") == told(rig, "b") == (5, 4, {}, 1, 0)
    rig.reload(jobs(entries))
    rig.tick(minutes=1)
    rig.tick(minutes=2)
    assert told(rig, "a")[0] == 7


def test_what_another_release_planned_is_not_recomputable(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = busy_rig(store)
    for module in (swap, balance):
        monkeypatch.setattr(module, "TZDATA_VERSION", "2099z")
    rig.turn(minutes=1)
    (one,) = rig.audit(START).jobs
    assert (one.expected, one.unaccounted_count) == (0, 0)
    assert "2099z" in one.not_recomputable[0]


def test_instants_that_were_pruned_are_not_asked_for(sqlite: SqlStore) -> None:
    rig = busy_rig(sqlite)
    sql(sqlite, delete(t.runs).where(t.runs.c.scheduled_for < at(8, 7)))
    sql(sqlite, delete(t.skips).where(t.skips.c.last < at(8, 7)))
    sql(sqlite, update(t.jobs).values(pruned_before=at(8, 6) + timedelta(microseconds=1)))
    rig.turn(minutes=1)
    assert told(rig) == (4, 2, {"overlap": 2}, 0, 0)


# ------------------------------------------------------------ the engine's own


def test_once_an_hour_the_engine_writes_down_what_was_lost_and_starts_nothing(store: SqlStore) -> None:
    rig = busy_rig(store)
    rig.auditor.tick(rig.store.now() - timedelta(hours=2))
    sql(store, delete(t.runs).where(t.runs.c.scheduled_for.in_([at(8, 4), at(8, 7)])))
    rig.tick(minutes=1)
    rig.finish()
    started = len(rig.executor.started)
    assert rig.auditor.tick(rig.store.now()) == 2
    assert rig.auditor.tick(rig.store.now()) == 0
    rig.tick()
    assert len(rig.executor.started) == started
    assert [skip[:3] for skip in rig.skipped("a") if skip[0] == "missed"] == [
        ("missed", at(8, 4), at(8, 4)),
        ("missed", at(8, 7), at(8, 7)),
    ]
    (notice,) = rig.named("audit.finished")
    assert notice["unaccounted"] == 2
    for _ in range(3):
        rig.tick(minutes=2)  # What is skipped from now on does not grow into what was found.
    assert list(faults(rig.store, "a", "* * * * *", START, rig.clock.now())) == []


def test_everything_that_was_lost_is_written_down_not_only_what_is_named(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.auditor.tick(rig.store.now())
    sql(sqlite, update(t.jobs).values(next_due_at=at(18)))
    rig.tick(hours=10)
    assert rig.auditor.tick(rig.store.now()) == 599
    assert rig.skipped("a") == [("missed", at(8, 1), at(17, 59), 599)]
    assert rig.audit(START).clean


def test_what_a_starting_planner_will_judge_is_not_lost(store: SqlStore) -> None:
    """After five hours of downtime the audit may come first; what is owed is not its business."""
    rig = Rig(store, jobs({"a": {**MINUTELY, "catch_up": "all"}}))
    rig.auditor.tick(rig.store.now())
    rig.turn(hours=5)
    assert rig.auditor.tick(rig.store.now()) == 0
    rig.tick()
    assert len(rig.runs("a")) == 101
    assert list(faults(rig.store, "a", "* * * * *", START, rig.clock.now())) == []


def test_two_nodes_that_audit_at_once_write_one_entry(store: SqlStore) -> None:
    one = busy_rig(store)
    two = Rig(store, one.text, one.clock, start=False)
    two.reloader.start(two.load(), author="start", node=two.node)
    two.register()
    one.auditor.tick(one.store.now() - timedelta(hours=2))
    sql(store, delete(t.runs).where(t.runs.c.scheduled_for == at(8, 4)))
    one.tick(minutes=1)
    entered = one.auditor._record

    def both(*found: object) -> int:
        one.auditor._record = entered  # type: ignore[method-assign]
        two.auditor.tick(two.store.now())
        return entered(*found)  # type: ignore[arg-type]

    one.auditor._record = both  # type: ignore[method-assign]
    one.auditor.tick(one.store.now())
    assert list(faults(one.store, "a", "* * * * *", START, one.clock.now())) == []


def test_a_clock_that_was_far_ahead_does_not_stop_the_audits(sqlite: SqlStore) -> None:
    rig = busy_rig(sqlite)
    rig.auditor.tick(rig.clock.step(days=400))
    rig.clock.step(days=-400)
    rig.auditor.tick(rig.clock.now())
    assert rig.auditor.tick(rig.turn(hours=2)) == 0
    assert len(rig.named("audit.finished")) == 1


def add_run(rig: Rig, instant: datetime) -> None:
    run = NewRun(
        id=new_id(),
        job="a",
        key=f"at:{to_text(instant)}",
        cause=Cause.SCHEDULE,
        created_at=rig.store.now(),
        queue="default",
        scheduled_for=instant,
    )
    with rig.store.begin() as tx:
        assert tx.runs.insert([run]) == {run.id}


def test_what_is_only_owed_raises_no_alarm(sqlite: SqlStore, logs: list[MutableMapping[str, Any]]) -> None:
    """The clock was set an hour ahead, and the hourly audit looks before the planner has got there."""
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.auditor.tick(rig.clock.now())
    rig.clock.step(hours=1, minutes=5)
    assert rig.auditor.tick(rig.clock.now()) == 0
    assert [entry for entry in logs if entry["event"] == "instants_unaccounted"] == []


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=1), timedelta(seconds=-59)])
def test_a_window_that_is_empty_is_refused(sqlite: SqlStore, ahead: timedelta) -> None:
    """It would be clean whatever is missing."""
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    with pytest.raises(InvalidInput, match="`since` is too late"):
        rig.desk.audit(since=rig.clock.now() + ahead)
    assert rig.desk.audit(since=rig.clock.now() - timedelta(seconds=61)).clean
