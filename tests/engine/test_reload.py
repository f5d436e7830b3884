"""Reload: one configuration for another, with no instant between them."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core import schedule
from scheduler.core.commands import Reloaded
from scheduler.core.errors import InvalidInput, Refused, Unavailable
from scheduler.core.model import Cause, Configuration, Status
from scheduler.engine import balance, swap
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
        tx.jobs.put([(swap.replace(state, pruned_before=at(8, 1)), {})])
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
    with pytest.raises(Refused, match=r"a \(1 waiting occurrence\(s\), 1 waiting payload run\(s\)\)"):
        rig.reload(jobs({"b": {}}))
    assert rig.state("a").removed_at is None
    preview = rig.reload(jobs({"b": {}}), dry_run=True)
    assert (preview.applied, preview.removed, preview.pending) == (False, ("a",), {"a": (1, 1)})
    assert rig.reloader.rejected is not None
    rig.reload(jobs({"b": {}}), drop_pending=True)
    assert rig.statuses("a") == ["RUNNING", "CANCELED", "FAILED"]
    assert rig.run(letter.id).reason == "job_removed"
    with rig.store.queries() as queries:
        assert [entry.run.id for entry in queries.dead_letters().entries if entry.run] == [letter.id]


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


def test_many_who_reload_at_once_share_a_load_that_began_after_they_asked(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.text = jobs({"a": MINUTELY, "b": {}})
    loads: list[int] = []
    load = rig.reloader._load
    gate = threading.Barrier(30)

    def counted() -> Configuration:
        loads.append(1)
        return load()

    rig.reloader._load = counted
    answers: list[Reloaded] = []

    def ask() -> None:
        gate.wait(20)
        answers.append(rig.desk.reload(author="me"))

    threads = [threading.Thread(target=ask) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 30
    assert {answer.generation for answer in answers} == {2}
    assert len(loads) < 30
    with rig.store.read() as tx:
        assert tx.generations.newest_id() == 2


def test_a_broken_database_leaves_the_old_configuration_in_force(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.store.broken_commits = 1
    with pytest.raises(Unavailable):
        rig.reload(jobs({"b": MINUTELY}))
    assert rig.in_force.job("a") is not None
    rig.tick(minutes=1)
    assert [run.job for run in rig.runs()] == ["a"]


def test_after_a_lost_answer_the_node_follows_what_it_put_in_force(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.store.lost_answers = 1
    with pytest.raises(Unavailable):
        rig.reload(jobs({"b": MINUTELY}))
    rig.tick(minutes=1)
    assert [run.job for run in rig.runs()] == ["b"]


def test_an_instant_planned_by_a_clock_ahead_of_the_reload_is_not_planned_again(store: SqlStore) -> None:
    """The planner may have read the clock later than the reload did, or the clock was set back in between."""
    rig = Rig(store, jobs({"a": {"schedule": "*/10 * * * *"}, "b": {"schedule": "*/10 * * * *"}}))
    rig.tick(minutes=10)
    rig.tick(minutes=10)
    rig.clock.step(minutes=-15)
    rig.reload(jobs({"a": {"schedule": "*/5 * * * *"}}), drop_pending=True)
    assert rig.state("a").next_due_at == at(8, 25)
    for _ in range(8):
        rig.tick(minutes=5)
    rig.turn(minutes=2)
    assert instants(rig.runs("a")) == [at(8, 10)]
    assert [(skip.first, skip.last, skip.count) for skip in rig.skips("a")] == [(at(8, 20), at(8, 45), 6)]
    assert rig.audit(START).clean


def test_waiting_runs_follow_the_new_definition(store: SqlStore) -> None:
    """An attempt starts under the definition in force then: its lock, its queue and its priority, too."""
    rig = Rig(store, jobs({"a": {}, "b": {"lock": "shared"}, "c": {"queue": "q"}}, queues={"q": {"concurrency": 1}}))
    rig.worker.accepting = False
    for number in range(5):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.reload(jobs({"a": {"lock": "shared", "priority": 7}, "b": {"lock": "shared"}}))
    assert {(run.queue, run.priority, run.lock) for run in rig.runs("a")} == {("default", 7, "lock:shared")}
    rig.worker.accepting = True
    rig.desk.run_now("b", author="me")
    for _ in range(3):
        rig.tick()
        assert len(rig.executor.live) == 1
        rig.executor.finish_all()
    rig.tick()
    rig.reload(jobs({"a": {"queue": "q"}, "b": {}}, queues={"q": {"concurrency": 1}}))
    assert [run.lock for run in rig.runs("a") if run.status is Status.PENDING] == [None]
    rig.tick()
    assert len(rig.executor.live) == 3
    rig.finish()
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED"] * 5
    assert rig.statuses("b") == ["COMPLETED"]


def test_runs_that_wait_for_time_or_pause_go_on_doing_so(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["1h"]}, "b": {}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish(failed())
    rig.desk.pause(["b"], until=None, reason="", author="me")
    rig.desk.run_now("b", author="me", cause=Cause.API)
    rig.tick()
    before = [run.waits_for for run in rig.runs()]
    rig.reload(jobs({"a": {"retries": ["1h"], "overlap": "queue"}, "b": {"overlap": "queue"}}))
    assert [run.waits_for for run in rig.runs()] == before
    rig.desk.resume(["b"], author="me")
    rig.tick(hours=2)
    assert len(rig.executor.live) == 2


@pytest.mark.parametrize("away", ["removed", "disabled"])
def test_a_job_that_comes_back_while_the_clock_is_set_back(store: SqlStore, away: str) -> None:
    """No two versions of its schedule rule at once."""
    entry = {"schedule": "* * * * *", "overlap": "allow"}
    rig = Rig(store, jobs({"a": entry}))
    for _ in range(5):
        rig.tick(minutes=1)
        rig.finish()
    rig.clock.step(minutes=-3)
    rig.reload(jobs({} if away == "removed" else {"a": {**entry, "enabled": False}}))
    rig.reload(jobs({"a": {**entry, "schedule": "*/2 * * * *"}}))
    assert rig.state("a").next_due_at == at(8, 6)
    for _ in range(6):
        rig.tick(minutes=1)
        rig.finish()
    rig.turn(minutes=1, seconds=30)
    assert instants(rig.runs("a")) == [at(8, minute) for minute in (1, 2, 3, 4, 5, 6, 8)]
    assert rig.audit(START).clean


def test_queues_are_part_of_the_configuration(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"queue": "q"}}, queues={"q": {"concurrency": 1}}))
    for number in range(4):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.tick()
    assert len(rig.executor.live) == 1
    rig.reload(jobs({"a": {"queue": "q"}}, queues={"q": {"concurrency": 3}}))
    rig.tick()
    assert len(rig.executor.live) == 3
    rig.reload(jobs({"a": {}}))
    rig.tick()
    assert len(rig.executor.live) == 4


# ------------------------------------------------------------ releases


def test_a_newer_zone_database_is_a_new_generation_that_moves_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *"}, "b": {}}))
    rig.tick(hours=1)
    rig.finish()
    rig.turn(hours=1, minutes=30)
    newer_release(monkeypatch)
    rig = Rig(store, rig.text, rig.clock)
    assert rig.in_force.current.generation == 2
    assert rig.state("a").next_due_at == at(10)
    rig.tick()
    assert instants(rig.runs("a")) == [at(9), at(10)]
    rig.tick(minutes=30)
    rig.turn(minutes=2)
    (one,) = rig.audit(START, "a").jobs
    assert one.clean
    assert one.expected == 2
    assert "other" not in one.not_recomputable[0]
    assert "planned with tzdata" in one.not_recomputable[0]
    assert Rig(store, rig.text, rig.clock).in_force.current.generation == 2


def newer_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduler.engine import reload
    from scheduler.store import generations

    for module in (swap, balance, reload, generations, schedule):
        monkeypatch.setattr(module, "TZDATA_VERSION", "2099z")


# ------------------------------------------------------------ starting and following


def second(store: SqlStore, first: Rig, text: str) -> Rig:
    rig = Rig(store, text, first.clock, start=False)
    rig.reloader.start(rig.load(), author="start", node=rig.node)
    rig.register()
    return rig


def test_the_first_node_puts_its_file_in_force_whatever_was_there(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": {**MINUTELY, "overlap": "queue"}}))
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    rig.desk.run_now("b", author="me", payload=1, has_payload=True)
    rig.turn(minutes=1)
    next_one = Rig(store, jobs({"a": MINUTELY}), rig.clock)
    assert next_one.in_force.current.generation == 2
    assert next_one.statuses("b")[1:] == ["CANCELED", "FAILED"]
    rig.turn(minutes=1)
    rollback = Rig(store, rig.text, rig.clock)
    assert rollback.in_force.job("b") is not None


def test_beside_other_nodes_a_file_that_removes_jobs_or_is_older_is_not_taken(store: SqlStore) -> None:
    one = Rig(store, jobs({"a": {}, "b": {}}))
    two = second(store, one, jobs({"a": {}}))
    assert two.in_force.job("b") is not None
    one.reload(jobs({"a": {}, "b": {}, "c": {}}))
    three = second(store, one, jobs({"a": {}, "b": {}}))
    assert three.in_force.job("c") is not None
    four = second(store, one, jobs({"a": {}, "b": {}, "c": {}, "d": {}}))
    assert four.in_force.current.generation == 3
    one.tick()
    assert one.in_force.job("d") is not None
    assert two.reload(jobs({"a": {}})).removed == ("b", "c", "d")


def test_a_node_counts_as_live_for_thirty_seconds(store: SqlStore) -> None:
    one = Rig(store, jobs({"a": {}, "b": {}}))
    one.turn(seconds=29)
    assert second(store, one, jobs({"a": {}})).in_force.job("b") is not None
    one.turn(seconds=31)
    assert second(store, one, jobs({"a": {}})).in_force.job("b") is None


def test_a_node_follows_what_another_put_in_force(store: SqlStore) -> None:
    one = Rig(store, jobs({"a": MINUTELY}))
    two = second(store, one, one.text)
    one.reload(jobs({"a": {**MINUTELY, "priority": 3}}))
    one.turn(minutes=1)
    two.planner.tick(two.store.now())
    assert two.runs("a") == [], "it must load the newer generation first"
    two.tick()
    assert two.in_force.current.generation == 2
    assert [run.priority for run in two.runs("a")] == [3]


def test_a_generation_that_cannot_be_loaded_makes_the_node_stand_aside(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    two = second(store, one, one.text)

    def cannot(files: object) -> None:
        raise InvalidInput("unknown key `steps`")

    load = two.reloader._load_texts
    two.reloader._load_texts = cannot  # type: ignore[assignment]
    one.reload(jobs({"a": MINUTELY, "b": {**MINUTELY, "priority": 3}}))
    two.tick(minutes=1)
    two.tick()
    assert two.in_force.behind == "generation 2 cannot be loaded here: unknown key `steps`"
    assert one.runs() == []
    assert two.worker.claim() is None
    one.tick()
    assert len(one.executor.live) == 2
    two.reloader._load_texts = load
    two.tick()
    assert two.in_force.behind is None
    one.finish()
    one.turn(minutes=1)
    two.tick()
    assert len(two.executor.live) == 2


# ------------------------------------------------------------ alarms


@pytest.mark.parametrize("change", ["same file", "other job"])
def test_a_job_with_an_alarm_gets_another_chance(store: SqlStore, change: str) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "catch_up": "all"}}))
    with rig.store.begin() as tx:
        tx.jobs.set_alarm("a", "planning failed", enabled=False)
    rig.tick(minutes=2)
    assert rig.runs("a") == []
    done = rig.reload(rig.text if change == "same file" else jobs({"a": {**MINUTELY, "catch_up": "all"}, "b": {}}))
    assert done.changed == ("a",)
    rig.tick()
    assert [(run.scheduled_for, run.cause) for run in rig.runs("a")] == [
        (at(8, 1), Cause.CATCH_UP),
        (at(8, 2), Cause.SCHEDULE),
    ]
    assert rig.state("a").alarm is None
    assert rig.state("a").enabled
    rig.turn(minutes=1, seconds=30)
    assert rig.audit(START).clean
    assert rig.audit(START).jobs[0].expected == 2 + int(rig.clock.now() - timedelta(minutes=1) >= at(8, 3))
