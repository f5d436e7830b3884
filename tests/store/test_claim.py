"""PENDING → RUNNING: what is claimed, in which order, and what is not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.job import Queue
from scheduler.core.model import Cause, Pause, Status, WaitsFor
from scheduler.core.requests import Advance, Claim
from scheduler.store.store import SqlStore
from tests.store.world import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    T0,
    add,
    attempts,
    claim,
    get,
    new_run,
    occurrence,
    promote,
    set_up,
    settle,
    settlement,
    state,
)


def test_a_claimed_run_carries_what_it_needs(store: SqlStore) -> None:
    set_up(store)
    run = new_run("job", payload={"n": [1, "zwölf \u0000"]}, note="by hand", author="me", priority=3, lock="lock:x")
    assert add(store, run) == {run.id}
    (mine,) = claim(store, T0 + SECOND)
    assert (mine.id, mine.key, mine.cause, mine.status) == (run.id, run.id, Cause.API, Status.RUNNING)
    assert (mine.node, mine.attempt, mine.started_at, mine.waits_for) == ("n1", 1, T0 + SECOND, None)
    assert (mine.payload, mine.has_payload) == ({"n": [1, "zwölf \u0000"]}, True)
    assert (mine.note, mine.author, mine.priority, mine.lock) == ("by hand", "me", 3, "lock:x")
    (attempt,) = attempts(store, run.id)
    assert (attempt.number, attempt.node, attempt.fence) == (1, "n1", mine.fence)
    assert (attempt.fingerprint, attempt.started_at, attempt.outcome) == ("print of job", T0 + SECOND, None)
    assert get(store, run.id) == mine


def test_a_run_is_claimed_once(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))
    assert len(claim(store)) == 1
    assert claim(store) == []


def test_by_priority_then_age(store: SqlStore) -> None:
    set_up(store)
    runs = [new_run("job", priority=priority) for priority in (0, 5, -1, 5, 0)]
    add(store, *runs)
    assert [run.id for run in claim(store)] == [runs[index].id for index in (1, 3, 0, 4, 2)]


def test_age_is_the_order_of_insertion_not_of_ids(store: SqlStore) -> None:
    set_up(store)
    first, second = new_run("job", id="z"), new_run("job", id="a")
    add(store, first, second)
    assert [run.id for run in claim(store)] == ["z", "a"]


def test_never_more_than_the_limit(store: SqlStore) -> None:
    set_up(store)
    add(store, *[new_run("job") for _ in range(5)])
    assert len(claim(store, limit=3)) == 3
    assert claim(store, limit=0) == []
    assert len(claim(store, limit=3)) == 2


def test_one_run_per_lock_the_oldest(store: SqlStore) -> None:
    set_up(store)
    first, second, third = (new_run("job", lock="lock:x") for _ in range(3))
    add(store, first, second, third)
    assert [run.id for run in claim(store)] == [first.id]
    assert get(store, second.id).waits_for is WaitsFor.LOCK
    settle(store, settlement(get(store, first.id)))
    assert [run.id for run in claim(store)] == [second.id]
    settle(store, settlement(get(store, second.id)))
    assert [run.id for run in claim(store)] == [third.id]


def test_two_transactions_that_put_one_lock_in_line_cost_no_claim(store: SqlStore) -> None:
    """Both runs are ready, as after two inserts that did not see each other: the second steps aside by itself."""
    set_up(store)
    first, second = new_run("job", lock="lock:x"), new_run("job", lock="lock:x")
    add(store, first, second)
    _make_ready(store, second.id)
    assert [run.id for run in claim(store)] == [first.id]
    assert get(store, second.id).waits_for is WaitsFor.LOCK
    _make_ready(store, second.id)
    assert claim(store) == []
    assert get(store, second.id).waits_for is WaitsFor.LOCK


def test_runs_that_wait_for_a_lock_hide_no_others(store: SqlStore) -> None:
    """More ready runs of a held lock than a claim looks at: it goes on looking."""
    set_up(store)
    stuck = [new_run("job", lock="lock:x") for _ in range(250)]
    other = new_run("job")
    add(store, *stuck, other)
    _make_ready(store, *(run.id for run in stuck))
    assert [run.id for run in claim(store, limit=2)] == [stuck[0].id, other.id]


def test_fences_grow_per_lock(store: SqlStore) -> None:
    set_up(store)
    add(store, *[new_run("job", lock="lock:x") for _ in range(3)])
    fences = []
    # the clock stands still, then goes back
    for now in (T0, T0, T0 - DAY):
        (run,) = claim(store, now)
        fences.append(run.fence)
        settle(store, settlement(run))
    assert fences[0] == int(T0.timestamp() * 1000)
    assert fences == sorted(set(fences))


def test_fences_of_a_run_without_a_lock_grow_from_attempt_to_attempt(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))
    (first,) = claim(store)
    settle(store, settlement(first, Status.PENDING, not_before=T0), now=T0)
    (second,) = claim(store)
    assert second.id == first.id
    assert second.attempt == 2
    assert second.fence > first.fence


def test_a_fence_holds_the_time(store: SqlStore) -> None:
    """So that fences grow also after an older backup was restored."""
    set_up(store)
    add(store, new_run("job", lock="lock:x"), new_run("job"))
    now = T0 + DAY
    assert {run.fence for run in claim(store, now)} == {int(now.timestamp() * 1000)}


@pytest.mark.parametrize("word", ["stopping", "stopped", "dead", None])
def test_only_a_live_node_claims(store: SqlStore, word: str | None) -> None:
    set_up(store)
    add(store, new_run("job"))
    with store.begin() as tx:
        if word == "dead":
            assert tx.nodes.declare_dead("n1", 0, T0)
        elif word is not None:
            assert tx.nodes.mark("n1", word, T0)
    assert claim(store, name="nobody" if word is None else "n1") == []


def test_jobs_that_changed_after_what_the_node_has_loaded_are_left(store: SqlStore) -> None:
    set_up(store, ["old", state("new", generation=2)])
    newer = [new_run("new") for _ in range(250)]
    old = new_run("old")
    add(store, *newer, old)
    assert [run.id for run in claim(store, generation=1)] == [old.id]
    assert [run.id for run in claim(store, generation=2, limit=2)] == [run.id for run in newer[:2]]


def test_of_a_paused_job_only_manual_runs(store: SqlStore) -> None:
    set_up(store, ["job", "other"])
    before = new_run("job")
    add(store, before)
    with store.begin() as tx:
        tx.jobs.pause([Pause("job", T0, T0 + HOUR, "maintenance", "me")])
    after, manual, other = new_run("job"), new_run("job", cause=Cause.MANUAL), new_run("other")
    add(store, after, manual, other)
    assert [run.id for run in claim(store, T0 + MINUTE)] == [manual.id, other.id]
    assert {get(store, run.id).waits_for for run in (before, after)} == {WaitsFor.PAUSE}
    assert promote(store, T0 + MINUTE) == 0
    assert promote(store, T0 + HOUR) == 2
    assert [run.id for run in claim(store, T0 + HOUR)] == [before.id, after.id]


def test_a_pause_that_is_to_come_or_over_holds_nothing(store: SqlStore) -> None:
    set_up(store)
    with store.begin() as tx:
        tx.jobs.pause([Pause("job", T0 - HOUR, T0, "", ""), Pause("job", T0 + SECOND, None, "", "")])
    add(store, new_run("job"))
    assert len(claim(store)) == 1


@pytest.mark.parametrize("change", [{"enabled": False}, {"removed_at": T0}])
def test_of_a_job_that_is_off_only_manual_runs(store: SqlStore, change: dict[str, object]) -> None:
    set_up(store)
    early = new_run("job")
    add(store, early)
    with store.begin() as tx:
        tx.jobs.put([(state("job", **change), "{}")])
    late, manual = new_run("job"), new_run("job", cause=Cause.MANUAL)
    add(store, late, manual)
    assert [run.id for run in claim(store)] == [manual.id]
    assert promote(store) == 0
    with store.begin() as tx:
        tx.jobs.put([(state("job"), "{}")])
    assert promote(store) == 2
    assert [run.id for run in claim(store)] == [early.id, late.id]


def test_a_paused_run_lets_others_pass_in_the_line_of_a_shared_lock(store: SqlStore) -> None:
    set_up(store, ["a", "b"])
    paused, other = new_run("a", lock="lock:x"), new_run("b", lock="lock:x")
    add(store, paused, other)
    with store.begin() as tx:
        tx.jobs.pause([Pause("a", T0, None, "", "")])
    assert [run.id for run in claim(store)] == [other.id]


def test_a_run_that_is_found_paused_when_it_is_taken_costs_the_others_neither_a_token_nor_a_place(
    store: SqlStore,
) -> None:
    set_up(store, ["a", "b"], queues=[Queue("narrow", concurrency=1, rate=0.001, burst=1)])
    paused, other = new_run("a", queue="narrow"), new_run("b", queue="narrow")
    add(store, paused, other)
    with store.begin() as tx:
        tx.jobs.pause([Pause("a", T0, None, "", "")])
    assert [run.id for run in claim(store)] == [other.id]
    assert get(store, paused.id).waits_for is WaitsFor.PAUSE


def test_a_run_by_hand_is_claimed_though_its_job_is_paused(store: SqlStore) -> None:
    set_up(store, ["a"])
    waiting, by_hand = new_run("a"), new_run("a", cause=Cause.MANUAL)
    add(store, waiting, by_hand)
    with store.begin() as tx:
        tx.jobs.pause([Pause("a", T0, None, "", "")])
    assert [run.id for run in claim(store)] == [by_hand.id]


def test_runs_of_jobs_that_this_node_has_not_loaded_hide_nobody_else(store: SqlStore) -> None:
    set_up(store, [state("new", generation=2), state("old")])
    add(store, *(new_run("new") for _ in range(300)), new_run("old"))
    assert [run.job for run in claim(store, limit=5)] == ["old"]


def test_a_run_is_not_claimed_before_its_time(store: SqlStore) -> None:
    set_up(store)
    later = new_run("job", not_before=T0 + MINUTE)
    add(store, later)
    assert get(store, later.id).waits_for is WaitsFor.TIME
    assert promote(store, T0 + MINUTE - timedelta(microseconds=1)) == 0
    assert claim(store, T0 + MINUTE) == []
    assert promote(store, T0 + MINUTE) == 1
    (run,) = claim(store, T0 + MINUTE)
    assert run.not_before is None


def test_planned_and_claimed_in_one_transaction(store: SqlStore) -> None:
    set_up(store, [state("job", next_due_at=T0)])
    with store.begin() as tx:
        assert tx.runs.insert([occurrence("job", T0)])
        assert tx.jobs.advance([Advance("job", T0, T0 + MINUTE)]) == {"job"}
        (run,) = tx.runs.claim(Claim("n1", 1, 10, skip_busy_queues=True), T0).runs
    assert run.scheduled_for == T0


def test_a_claim_that_is_rolled_back_holds_nothing(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job", lock="lock:x"))

    def claim_and_fail() -> None:
        with store.begin() as tx:
            assert tx.runs.claim(Claim("n1", 1, 10), T0).runs
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        claim_and_fail()
    assert len(claim(store)) == 1


def _make_ready(store: SqlStore, *runs: str) -> None:
    with store._database.writing() as connection:
        for run in runs:
            connection.exec_driver_sql(f"UPDATE runs SET waits_for = NULL WHERE id = '{run}'")
