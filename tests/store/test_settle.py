"""RUNNING → what follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event

from scheduler.core import lifecycle
from scheduler.core.job import Action, Job, Retries
from scheduler.core.model import FailReason, Status, WaitsFor
from scheduler.core.outcome import Failed, GivenBack, Outcome, Snoozed
from scheduler.core.requests import Claim, Report
from scheduler.store.store import SqlStore
from tests.store.world import (
    HOUR,
    MINUTE,
    SECOND,
    T0,
    add,
    attempts,
    claim,
    get,
    job_state,
    new_run,
    occurrence,
    promote,
    set_up,
    settle,
    settlement,
)

END = T0 + SECOND


def test_a_completed_run(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))
    (run,) = claim(store)
    (after,) = settle(store, settlement(run, result={"pages": 470}, exit_code=0, left=2))
    assert (after.status, after.finished_at, after.result, after.exit_code) == (
        Status.COMPLETED,
        END,
        {"pages": 470},
        0,
    )
    assert get(store, run.id) == after
    (attempt,) = attempts(store, run.id)
    assert (attempt.outcome, attempt.finished_at, attempt.exit_code, attempt.left) == ("completed", END, 0, 2)


def test_a_failed_run_says_why(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))
    (run,) = claim(store)
    (after,) = settle(
        store,
        settlement(run, Status.FAILED, reason="signal", error="killed \x00 by 9", signal=9, failures=1, lost=2),
    )
    assert (after.status, after.reason, after.signal, after.failures, after.lost) == (Status.FAILED, "signal", 9, 1, 2)
    assert get(store, run.id).error == "killed \ufffd by 9"


def test_a_further_attempt_waits_for_its_time_and_holds_no_lock(store: SqlStore) -> None:
    set_up(store)
    first, second = new_run("job", lock="lock:x"), new_run("job", lock="lock:x")
    add(store, first, second)
    (run,) = claim(store)
    (after,) = settle(
        store, settlement(run, Status.PENDING, reason="exit", not_before=T0 + MINUTE, failures=1, error="exit 1")
    )
    assert (after.status, after.waits_for, after.not_before) == (Status.PENDING, WaitsFor.TIME, T0 + MINUTE)
    assert (after.node, after.finished_at, after.failures, after.attempt) == (None, None, 1, 1)
    (other,) = claim(store, END)
    assert other.id == second.id
    assert promote(store, T0 + MINUTE) == 1
    assert claim(store, T0 + MINUTE) == []
    settle(store, settlement(other), now=T0 + MINUTE)
    (again,) = claim(store, T0 + MINUTE)
    assert (again.id, again.attempt, again.started_at) == (first.id, 2, T0)
    assert again.fence > other.fence > run.fence
    assert [(one.number, one.outcome) for one in attempts(store, first.id)] == [(1, "exit"), (2, None)]


def test_a_further_attempt_at_once_is_the_first_in_line_again(store: SqlStore) -> None:
    set_up(store)
    first, second = new_run("job", lock="lock:x"), new_run("job", lock="lock:x")
    add(store, first, second)
    (run,) = claim(store)
    (after,) = settle(store, settlement(run, Status.PENDING, not_before=END))
    assert after == get(store, first.id)
    assert after.waits_for is None
    assert [one.id for one in claim(store, END)] == [first.id]


def test_an_attempt_that_is_given_back_never_was(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job", lock="lock:x"))
    (run,) = claim(store)
    (after,) = settle(store, settlement(run, Status.PENDING, attempt_outcome=None, not_before=END))
    assert (after.attempt, after.started_at, after.failures, after.lost) == (0, None, 0, 0)
    assert attempts(store, run.id) == ()
    (again,) = claim(store, END)
    assert again.attempt == 1
    assert again.fence > run.fence


def test_a_stale_fence_changes_nothing(store: SqlStore) -> None:
    set_up(store, nodes=["n1", "n2"])
    add(store, new_run("job", lock="lock:x"))
    (first,) = claim(store)
    settle(store, settlement(first, Status.PENDING, not_before=END))
    (second,) = claim(store, END, "n2")
    before = get(store, second.id)
    for stale in (
        settlement(first),
        settlement(second, fence=second.fence + 1),
        settlement(second, node="n1"),
        replace(settlement(second), run="unknown"),
    ):
        assert settle(store, stale) == []
    assert get(store, second.id) == before
    assert job_state(store).last_success_at is None
    (done,) = settle(store, settlement(second))
    assert settle(store, settlement(second, Status.FAILED)) == []
    assert get(store, second.id) == done


def test_a_stale_one_spoils_no_batch(store: SqlStore) -> None:
    set_up(store)
    add(store, *[new_run("job") for _ in range(3)])
    one, two, three = claim(store)
    after = settle(store, settlement(three), settlement(two, fence=1), settlement(one, Status.CANCELED))
    assert [(run.id, run.status) for run in after] == [(three.id, Status.COMPLETED), (one.id, Status.CANCELED)]


def test_a_dead_node_settles_nothing_and_others_settle_for_it(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))
    (run,) = claim(store)
    lost = settlement(run, Status.PENDING, attempt_outcome="lost", lost=1, not_before=END)
    assert settle(store, lost, orphans=True) == []
    with store.begin() as tx:
        assert tx.runs.orphaned(10) == []
        assert tx.nodes.declare_dead("n1", 0, T0)
        assert [one.id for one in tx.runs.orphaned(10)] == [run.id]
    assert settle(store, settlement(run)) == []
    (after,) = settle(store, lost, orphans=True)
    assert (after.status, after.lost) == (Status.PENDING, 1)
    assert [one.outcome for one in attempts(store, run.id)] == ["lost"]


def test_runs_of_a_node_that_is_forgotten_are_orphans(store: SqlStore) -> None:
    set_up(store, nodes=["n1", "n2"])
    add(store, *[new_run("job") for _ in range(3)])
    mine, gone = claim(store, limit=1)[0], claim(store, name="n2")
    with store._database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM nodes WHERE id = 'n2'")
    with store.read() as tx:
        assert [run.id for run in tx.runs.orphaned(10)] == [run.id for run in gone]
        assert [run.id for run in tx.runs.orphaned(1)] == [gone[0].id]
        assert [run.id for run in tx.runs.running("n1")] == [mine.id]
    assert len(settle(store, *[settlement(run, Status.FAILED) for run in gone], orphans=True)) == 2


def test_the_next_in_line_is_the_oldest(store: SqlStore) -> None:
    set_up(store, ["a", "b", "c"])
    runs = [new_run(job, lock="lock:x", priority=priority) for job, priority in (("a", 0), ("b", 0), ("c", 9))]
    add(store, *runs)
    for expected in runs:
        (run,) = claim(store)
        assert run.id == expected.id
        settle(store, settlement(run))


def test_what_a_success_tells_about_its_job(store: SqlStore) -> None:
    set_up(store)
    add(store, occurrence("job", T0 - HOUR))
    (run,) = claim(store)
    settle(store, settlement(run))
    state = job_state(store)
    assert (state.last_success_at, state.settled_until) == (END, T0 - HOUR)
    # a run by hand settles what was due when it started
    add(store, new_run("job"))
    (run,) = claim(store, T0 + MINUTE)
    settle(store, settlement(run), now=T0 + HOUR)
    state = job_state(store)
    assert (state.last_success_at, state.settled_until) == (T0 + HOUR, T0 + MINUTE)
    # an older instant settles nothing new
    add(store, occurrence("job", T0 - 2 * HOUR))
    (run,) = claim(store, T0 + HOUR)
    settle(store, settlement(run), now=T0 + 2 * HOUR)
    assert job_state(store) == replace(state, last_success_at=T0 + 2 * HOUR)


def test_failures_are_counted_until_a_success(store: SqlStore) -> None:
    set_up(store)
    statuses = (Status.FAILED, Status.FAILED, Status.CANCELED, Status.PENDING)
    add(store, *[new_run("job") for _ in statuses])
    runs = claim(store)
    settle(store, *[settlement(run, status, not_before=T0 + HOUR) for run, status in zip(runs, statuses, strict=True)])
    state = job_state(store)
    assert (state.consecutive_failures, state.last_failure_at, state.last_success_at) == (2, END, None)
    add(store, new_run("job"))
    (run,) = claim(store)
    settle(store, settlement(run))
    state = job_state(store)
    assert (state.consecutive_failures, state.last_failure_at, state.last_success_at) == (0, END, END)


def test_what_a_run_reported_is_kept_unless_it_ends_with_something_else(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"), new_run("job"))
    one, two = claim(store)
    with store.begin() as tx:
        tx.runs.report(
            [
                Report(one.id, one.fence, progress=40.0, message="half", result={"a": 1}, checkpoint={"page": 7}),
                Report(two.id, two.fence, result={"a": 1}),
                Report(one.id, one.fence - 1, progress=99.0),
            ]
        )
        tx.runs.report([Report(one.id, one.fence, message="more")])
    found = get(store, one.id)
    assert (found.progress, found.message, found.result, found.checkpoint) == (40.0, "more", {"a": 1}, {"page": 7})
    after = settle(store, settlement(one), settlement(two, result={"b": 2}))
    assert [run.result for run in after] == [{"a": 1}, {"b": 2}]
    with store.begin() as tx:
        tx.runs.report([Report(one.id, one.fence, progress=100.0)])
    assert get(store, one.id).progress == 40.0


def test_the_checkpoint_is_there_for_the_next_attempt(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))
    (run,) = claim(store)
    with store.begin() as tx:
        tx.runs.report([Report(run.id, run.fence, progress=10.0, checkpoint=[1])])
    settle(store, settlement(run, Status.PENDING, not_before=END))
    (again,) = claim(store, END)
    assert (again.checkpoint, again.progress) == ([1], None)


@pytest.mark.parametrize(
    "outcome",
    [
        Failed(FailReason.EXIT, "exit 1", exit_code=1, left=2),
        Failed(FailReason.LOST, "its supervisor died"),
        Snoozed(HOUR, "not yet"),
        GivenBack(started=False),
    ],
)
def test_a_request_to_cancel_that_came_after_the_decision_counts_as_if_it_had_been_seen(
    store: SqlStore, outcome: Outcome
) -> None:
    definition = Job("job", "{}", "", Action("", {}), retries=Retries(limit=3))
    set_up(store)
    add(store, new_run("job", lock="lock:a"), new_run("job", lock="lock:b"), new_run("job", lock="lock:a"))
    unseen, seen = claim(store)
    with store.begin() as tx:
        tx.runs.request_cancel([unseen.id, seen.id], "canceled by me", T0)
    decided = lifecycle.settle(unseen, outcome, definition, END, 0.0)
    assert decided.status is Status.PENDING
    settle(store, decided, lifecycle.settle(get(store, seen.id), outcome, definition, END, 0.0))
    after, expected = get(store, unseen.id), get(store, seen.id)
    assert (after.status, after.reason, after.finished_at) == (Status.CANCELED, "canceled by me", END)
    assert after == replace(expected, id=after.id, key=after.key, seq=after.seq, lock=after.lock, fence=after.fence)
    (attempt,), (like,) = attempts(store, unseen.id), attempts(store, seen.id)
    assert attempt == replace(like, run=attempt.run, fence=attempt.fence)
    assert len(claim(store, END)) == 1, "its lock is free"


def test_a_request_to_cancel_undoes_no_end(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"), new_run("job"))
    completed, failed = claim(store)
    with store.begin() as tx:
        tx.runs.request_cancel([completed.id, failed.id], "canceled by me", T0)
    after = settle(store, settlement(completed), settlement(failed, Status.FAILED, reason="exit"))
    assert [(run.status, run.reason) for run in after] == [(Status.COMPLETED, None), (Status.FAILED, "exit")]


def test_a_turn_of_a_crowd_takes_few_statements(store: SqlStore) -> None:
    """Each costs half a millisecond: of a node that carries out a thousand calls a second, a hundredth."""
    set_up(store, ["job"])
    add(store, *(new_run("job", payload=number) for number in range(60)))
    ended = claim(store, limit=30)
    asked: list[str] = []

    def note(*told: Any) -> None:
        asked.append(told[2])

    event.listen(store._database.engine, "before_cursor_execute", note)
    with store.begin() as tx:
        settled = tx.runs.settle([settlement(run) for run in ended], T0 + SECOND)
        claimed = tx.runs.claim(Claim("n1", 1, 30, held="n1" in settled.live), T0 + SECOND)
    event.remove(store._database.engine, "before_cursor_execute", note)
    assert (len(settled.runs), len(claimed.runs)) == (30, 30)
    assert len(asked) <= (10 if store.kind == "postgresql" else 13), "\n\n".join(asked)
