"""The first start on a restored ledger: what it does not know about does not run a second time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.errors import StartError
from scheduler.core.hindrances import RESTORED
from scheduler.engine.recovery import predecessors
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.doubles import TurnedClock
from tests.engine.rig import START, Rig, at, failed, instants, jobs

MINUTELY = {"schedule": "* * * * *"}


def restored(rig: Rig, text: str | None = None) -> Rig:
    """The first daemon on a backup of this ledger."""
    again = Rig(rig.store._store, text or rig.text, rig.clock, start=False)
    gone = predecessors(again.store, None)
    again.reloader.start(again.load(), author="start", node=again.node, gone=gone, after_restore=True)
    again.register()
    return again


@pytest.mark.parametrize("catch_up", ["latest", "all", "none"])
@pytest.mark.parametrize("overlap", ["skip", "queue", "replace", "allow"])
def test_nothing_that_is_owed_runs_whatever_the_policies_say(store: SqlStore, catch_up: str, overlap: str) -> None:
    """Not the newest either: that it is less than a minute late says nothing about whether it ran."""
    rig = Rig(store, jobs({"a": {**MINUTELY, "catch_up": catch_up, "overlap": overlap}}))
    rig.turn(hours=5, seconds=30)
    rig = restored(rig)
    rig.tick()
    assert rig.runs("a") == []
    assert rig.skipped("a") == [("missed", at(8, 1), at(13), 300)]
    assert {skip.detail for skip in rig.skips("a")} == {RESTORED}
    assert list(faults(rig.store, "a", "* * * * *", START, rig.clock.now())) == []
    assert rig.audit().clean
    rig.tick(minutes=1)
    assert instants(rig.runs("a")) == [at(13, 1)]


def test_without_the_flag_the_newest_would_run_again(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.turn(hours=5, seconds=30)
    again = Rig(rig.store._store, rig.text, rig.clock)
    again.tick()
    assert instants(again.runs("a")) == [at(13)]


def test_a_pause_stays_the_reason_for_what_lies_in_it(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *"}}))
    rig.desk.pause(["a"], until=at(10, 30), reason="moving", author="ana")
    rig.turn(hours=5)
    rig = restored(rig)
    assert rig.skipped("a") == [("paused", at(9), at(10), 2), ("missed", at(11), at(13), 3)]


def test_a_schedule_that_changed_since_owes_what_it_owed_as_it_was(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    rig.turn(minutes=3, seconds=30)
    rig = restored(rig, jobs({"a": {"schedule": "0 * * * *", "catch_up": "all"}, "c": MINUTELY}))
    assert rig.runs() == []
    assert rig.skipped("a") == rig.skipped("b") == [("missed", at(8, 1), at(8, 3), 3)]
    assert rig.skipped("c") == []
    rig.tick(hours=1)
    assert instants(rig.runs("a")) == [at(9)]
    assert rig.audit(START).clean


def test_what_was_accepted_and_waits_goes_on(store: SqlStore) -> None:
    """At least once, under the same key: nothing that somebody was promised is dropped."""
    rig = Rig(store, jobs({"a": {**MINUTELY, "retries": ["1h"]}, "b": {}}))
    rig.tick(minutes=1)
    rig.finish(failed())
    run, _ = rig.desk.run_now("b", author="ana", payload=1, has_payload=True)
    rig.turn(hours=3)
    rig = restored(rig)
    rig.tick()
    rig.finish()
    assert rig.run(run.id).status == "COMPLETED"
    assert rig.statuses("a") == ["COMPLETED"]


def test_the_deadline_knows_that_nobody_has_seen_a_success(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *", "grace": "10m"}}))
    rig.turn(hours=5)
    rig = restored(rig)
    assert rig.state("a").deadline_at == at(9, 10)


def test_beside_other_nodes_it_is_refused_and_changes_nothing(postgres: SqlStore) -> None:
    database = TurnedClock()
    first = Rig(postgres, jobs({"a": MINUTELY}), database=database, lease=timedelta(seconds=30))
    first.tick()
    database.turn(seconds=15)
    second = Rig(postgres, first.text, database=database, lease=timedelta(seconds=30), start=False)
    with pytest.raises(StartError, match="other nodes live"):
        second.reloader.start(second.load(), author="start", node=second.node, after_restore=True)
    assert first.skipped("a") == []


def test_a_ledger_that_is_new_has_nothing_to_write_off(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}), start=False)
    rig.reloader.start(rig.load(), author="start", node=rig.node, after_restore=True)
    rig.register()
    rig.tick(minutes=1)
    assert instants(rig.runs("a")) == [at(8, 1)]
