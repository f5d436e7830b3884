"""Reload: one configuration for another, with no instant between them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduler.core.commands import IfBusy
from scheduler.core.errors import InvalidInput, Refused, Unavailable
from scheduler.core.model import Status
from scheduler.core.requests import Leftover
from scheduler.engine import swap
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.doubles import TurnedClock
from tests.engine.rig import START, Rig, at, failed, instants, jobs

MINUTELY = {"schedule": "* * * * *"}


def test_added_changed_removed_and_unchanged(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY, "c": MINUTELY}))
    rig.turn(seconds=30)
    done = rig.reload(jobs({"a": MINUTELY, "b": {**MINUTELY, "timeout": "1m"}, "d": MINUTELY}))
    assert (done.added, done.changed, done.removed, done.unchanged) == (("d",), ("b",), ("c",), 1)
    assert done.applied
    assert rig.reloader.rejected is None
    rig.tick(seconds=30)
    assert sorted(run.job for run in rig.runs()) == ["a", "b", "d"]


def test_unchanged_jobs_keep_their_next_instant(store: SqlStore) -> None:
    """E20: also when it is owed already, and however often somebody reloads."""
    rig = Rig(store, jobs({"a": {"schedule": "0 */2 * * *"}}))
    for minutes in range(4):
        rig.turn(minutes=30)
        rig.reload(jobs({"a": {"schedule": "0 */2 * * *"}, f"x{minutes}": {}}))
        assert rig.state("a").next_due_at == at(10)
    rig.tick(minutes=1)
    assert instants(rig.runs("a")) == [at(10)]


def test_what_a_changed_job_owes_is_judged_under_its_old_definition(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "catch_up": "all", "overlap": "allow"}}))
    rig.turn(minutes=3, seconds=30)
    rig.reload(jobs({"a": {"schedule": "0 * * * *", "catch_up": "none"}}))
    assert instants(rig.runs("a")) == [at(8, 1), at(8, 2), at(8, 3)]
    assert rig.state("a").next_due_at == at(9)
    rig.turn(minutes=3)
    assert rig.audit(START).clean


def test_what_a_reload_plans_and_skips_is_told_after_its_commit(store: SqlStore) -> None:
    """As when the planner does it: metrics and streams know what the ledger knows."""
    entries = {"a": MINUTELY, "b": MINUTELY, "gone": MINUTELY}
    rig = Rig(store, jobs(entries))
    rig.tick(minutes=1)
    rig.finish()
    rig.desk.run_now("b", author="me", if_busy=IfBusy.QUEUE)
    rig.tick()
    rig.notices.clear()
    rig.turn(minutes=1)
    rig.store.broken_commits = 1
    changed = jobs({"a": {**MINUTELY, "priority": 1}, "b": {**MINUTELY, "priority": 1}})
    with pytest.raises(Unavailable):
        rig.reload(changed)
    assert rig.named("run.skipped") == rig.named("run.planned") == []
    rig.reload(changed, drop_pending=True)
    told = [(one["job"], one["reason"], one["first"]) for one in rig.named("run.skipped")]
    assert told == [("b", "overlap", at(8, 2))]
    assert {(one["job"], one["scheduled_for"]) for one in rig.named("run.planned")} == {
        ("a", at(8, 2)),
        ("gone", at(8, 2)),
    }
    rig.tick()
    assert len(rig.named("run.skipped")) == 1


def test_what_a_removed_job_owes_is_judged_before_it_goes(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": {}}))
    rig.turn(minutes=3)
    done = rig.reload(jobs({"b": {}}), drop_pending=True)
    assert done.removed == ("a",)
    assert rig.statuses("a") == ["CANCELED"]
    assert rig.skipped("a") == [("missed", at(8, 1), at(8, 2), 2)]
    rig.turn(minutes=3)
    assert list(faults(rig.store, "a", "* * * * *", START, at(8, 3))) == []
    assert rig.audit(START).clean


def test_a_schedule_that_is_changed_at_the_moment_of_an_instant(store: SqlStore) -> None:
    """The instant belongs to the old version, also if the new one has it too: it runs once."""
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *"}, "b": {"schedule": "0 * * * *"}}))
    rig.turn(hours=1)
    rig.reload(jobs({"a": {"schedule": "*/30 * * * *"}, "b": {"schedule": "30 * * * *"}}))
    assert (rig.state("a").next_due_at, rig.state("b").next_due_at) == (at(9, 30), at(9, 30))
    rig.tick()
    assert instants(rig.runs("a")) == instants(rig.runs("b")) == [at(9)]


def test_a_new_schedule_owes_nothing_before_it_was_loaded(store: SqlStore) -> None:
    """C14, E19: no catch-up over instants that only the new schedule has, nothing of the old one any more."""
    rig = Rig(store, jobs({"a": {"schedule": "0 9 * * *", "catch_up": "all"}}))
    rig.tick(hours=1)
    rig.finish()
    rig.turn(hours=1, minutes=30)
    rig.reload(jobs({"a": {"schedule": "0 10 * * *", "catch_up": "all"}}))
    rig.tick()
    assert instants(rig.runs("a")) == [at(9)]
    assert rig.state("a").next_due_at == at(10, day=3)
    rig.reload(jobs({"a": {"schedule": "0 7 * * 6"}}))
    rig.turn(days=4)
    rig.tick()
    assert instants(rig.runs("a")) == [at(9)]
    assert rig.state("a").next_due_at == at(7, day=7)


def test_a_zone_that_is_changed_sends_nothing(sqlite: SqlStore) -> None:
    """C16"""
    clock = TurnedClock(datetime(2017, 9, 13, 12, tzinfo=UTC))
    rig = Rig(sqlite, jobs({"a": {"schedule": "30 16 * * *", "catch_up": "all"}}), clock)
    rig.tick(hours=4, minutes=30)
    rig.finish()
    rig.turn(hours=4, minutes=20)
    rig.reload(jobs({"a": {"schedule": "30 16 * * *", "catch_up": "all", "timezone": "America/New_York"}}))
    rig.tick()
    assert len(rig.runs("a")) == 1
    assert rig.state("a").next_due_at == datetime(2017, 9, 14, 20, 30, tzinfo=UTC)


def test_a_new_job_owes_nothing(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    rig.turn(days=10, minutes=30)
    rig.reload(jobs({"a": {"schedule": "0 * * * *", "catch_up": "all"}}))
    rig.tick()
    assert rig.runs("a") == []
    assert rig.skips("a") == []


def test_a_renamed_job_is_a_new_one(sqlite: SqlStore) -> None:
    """E26: the history of the old name stays."""
    rig = Rig(sqlite, jobs({"old": MINUTELY}))
    rig.tick(minutes=1)
    rig.finish()
    done = rig.reload(jobs({"new": MINUTELY}))
    assert (done.added, done.removed) == (("new",), ("old",))
    rig.tick(minutes=1)
    assert instants(rig.runs("old")) == [at(8, 1)]
    assert instants(rig.runs("new")) == [at(8, 2)]


def test_a_job_that_comes_back_starts_anew(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.finish()
    with rig.store.begin() as tx:
        state = tx.jobs.states(["a"])["a"]
        tx.jobs.put([(swap.replace(state, pruned_before=at(8, 1)), "{}")])
    rig.reload(jobs())
    rig.turn(hours=1)
    rig.reload(jobs({"a": {**MINUTELY, "catch_up": "all"}}))
    rig.tick(minutes=1)
    assert instants(rig.runs("a")) == [at(8, 1), at(9, 2)]
    state = rig.state("a")
    assert (state.removed_at, state.since, state.pruned_before) == (None, at(9, 1), at(8, 1))
    rig.turn(minutes=2)
    assert rig.audit(START).clean is False  # 9:03 is owed and nobody planned it yet
    rig.tick()
    assert rig.audit(START).clean


def test_removing_a_job_with_waiting_runs_needs_a_word(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "overlap": "queue"}, "b": {}}))
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    letter, _ = rig.desk.run_now("a", author="me", payload={"n": 1}, has_payload=True)
    with pytest.raises(Refused, match=r"waiting runs: a \(1 occurrence, 1 run with a payload\)"):
        rig.reload(jobs({"b": {}}))
    assert rig.state("a").removed_at is None
    preview = rig.reload(jobs({"b": {}}), dry_run=True)
    assert (preview.applied, preview.removed, preview.pending) == (False, ("a",), {"a": Leftover(1, 1)})
    assert rig.reloader.rejected is not None
    rig.reload(jobs({"b": {}}), drop_pending=True)
    assert rig.statuses("a") == ["RUNNING", "CANCELED", "FAILED"]
    assert rig.run(letter.id).reason == "job_removed"
    with rig.store.queries() as queries:
        assert [entry.run.id for entry in queries.dead_letters().entries if entry.run] == [letter.id]


def test_a_run_that_somebody_asked_for_is_not_dropped_without_a_word(store: SqlStore) -> None:
    """Also one without a payload."""
    rig = Rig(store, jobs({"a": {}, "b": {}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    waiting, _ = rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    with pytest.raises(Refused, match=r"waiting runs: a \(1 other run\)"):
        rig.reload(jobs({"b": {}}))
    assert rig.run(waiting.id).status is Status.PENDING
    assert rig.reload(jobs({"b": {}}), dry_run=True).pending == {"a": Leftover(other_runs=1)}
    rig.reload(jobs({"b": {}}), drop_pending=True)
    gone = rig.run(waiting.id)
    assert (gone.status, gone.cancel) == (Status.CANCELED, "its job was removed")


def test_a_job_removed_while_it_runs_is_seen_to_its_end(store: SqlStore) -> None:
    """E25: output and exit code recorded, lock released."""
    rig = Rig(store, jobs({"a": {**MINUTELY, "lock": "shared", "retries": 3}, "b": {"lock": "shared"}}))
    rig.tick(minutes=1)
    rig.reload(jobs({"b": {"lock": "shared"}}))
    rig.desk.run_now("b", author="me")
    rig.tick()
    assert rig.executor.ended == []
    rig.executor.finish_all(failed())
    rig.tick()
    (run,) = rig.runs("a")
    assert (run.status, run.exit_code) == (Status.FAILED, 1)
    assert rig.executor.of("b")


def test_running_attempts_finish_as_they_started_and_the_next_one_is_new(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "retries": ["1s"], "timeout": "1h"}}))
    rig.tick(minutes=1)
    rig.reload(jobs({"a": {**MINUTELY, "retries": ["1s"], "timeout": "30s"}}))
    rig.tick(seconds=31)
    assert rig.executor.ended == []
    rig.finish(failed())
    rig.tick(seconds=2)
    rig.tick(seconds=31)
    assert [why for _, why in rig.executor.ended] == ["timeout"]
    first, second = rig.detail(rig.runs("a")[0].id).attempts
    assert first.fingerprint != second.fingerprint


def test_an_invalid_file_changes_nothing_and_is_told(store: SqlStore) -> None:
    """E11, E17, C23: one bad job among fifty, dates that never come, an empty file, a file without jobs."""
    entries = {f"j{number}": {"schedule": "0 * * * *"} for number in range(50)}
    rig = Rig(store, jobs(entries))
    bad = [jobs({**entries, "j7": {"schedule": text}}) for text in ("61 * * * *", "0 0 30 2 *")]
    for broken in (*bad, "", "# all out\n", "---\n", "jobs:\n\tx: 1"):
        with pytest.raises(InvalidInput):
            rig.reload(broken)
        assert rig.reloader.rejected
    assert len(rig.named("config.rejected")) == 6
    with rig.store.read() as tx:
        assert tx.generations.newest_id() == 1
    rig.turn(hours=1)
    rig.tick()
    assert len(rig.runs()) == 50
    rig.reload(jobs(entries))
    assert rig.reloader.rejected is None


def test_if_hash_is_what_was_looked_at(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    rig.text = jobs({"a": {}})
    seen = rig.desk.reload(author="me", dry_run=True)
    assert not seen.applied
    with pytest.raises(Refused, match="the file's hash is"):
        rig.reload(jobs({"b": {}}), if_hash=seen.hash[:12])
    assert rig.reload(jobs({"a": {}}), if_hash=seen.hash[:12]).added == ("a",)


def test_a_dry_run_changes_nothing(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {}}))
    preview = rig.reload(jobs({"b": {}}), dry_run=True)
    assert (preview.added, preview.removed, preview.generation) == (("b",), ("a",), 1)
    assert rig.in_force.job("b") is None
    with pytest.raises(InvalidInput):
        rig.reload("jobs: 7", dry_run=True)


def test_the_same_file_is_no_new_generation(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    done = rig.reload(rig.text)
    assert (done.applied, done.generation, done.unchanged) == (True, 1, 1)
    assert rig.reload(jobs({"a": MINUTELY, "b": {}})).generation == 2
    assert rig.reload(jobs({"a": MINUTELY})).generation == 3


def test_a_daemon_that_was_killed_a_moment_ago_does_not_keep_the_next_one_from_its_file(sqlite: SqlStore) -> None:
    """Its beat is young; but whoever holds the lock of the database knows that it is gone."""
    rig = Rig(sqlite, jobs({"a": MINUTELY, "b": MINUTELY}))
    rig.tick(seconds=5)
    again = Rig(rig.store._store, jobs({"a": MINUTELY}), rig.clock)
    assert list(again.in_force.current.configuration.jobs) == ["a"]
    assert again.reloader.not_taken is None


def test_what_is_new_or_other_is_warned_of(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(store, jobs({"same": {}, "other": {}, "gone": {}}))
    monkeypatch.setattr(rig.reloader, "_warn", lambda file, names: tuple(sorted(names)))
    rig.text = jobs({"same": {}, "other": {"retries": 7}, "new": {}})
    assert rig.reloader.reload(author="me").warnings == ("new", "other")
    assert rig.reloader.reload(author="me").warnings == ()
