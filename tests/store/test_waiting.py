"""Runs that wait: insertion, cancelling, skipping, and the sweep that lets nothing wait for ever."""

from __future__ import annotations

from datetime import timedelta

from scheduler.core.model import Cause, Pause, Status, WaitsFor
from scheduler.core.requests import Leftover
from scheduler.store.store import SqlStore
from tests.store.world import (
    HOUR,
    MINUTE,
    T0,
    add,
    claim,
    get,
    new_run,
    occurrence,
    promote,
    set_up,
    settle,
    settlement,
)


def test_a_key_is_taken_once_per_job(store: SqlStore) -> None:
    set_up(store, ["a", "b"])
    first = new_run("a", key="api:1", payload=1)
    again = new_run("a", key="api:1", payload=2)
    other, fresh = new_run("b", key="api:1"), new_run("a", key="api:2", payload=3)
    assert add(store, first) == {first.id}
    assert add(store, again, other, fresh) == {other.id, fresh.id}
    with store.read() as tx:
        found = tx.runs.by_key("a", "api:1")
        assert tx.runs.by_key("a", "api:3") is None
        assert tx.runs.get("nothing") is None
    assert found is not None
    assert (found.id, found.payload) == (first.id, 1)
    assert get(store, fresh.id).payload == 3


def test_a_key_twice_in_one_batch(store: SqlStore) -> None:
    set_up(store)
    one, two = new_run("job", key="event:s:1"), new_run("job", key="event:s:1")
    assert add(store, one, two) == {one.id}


def test_an_empty_batch(store: SqlStore) -> None:
    set_up(store)
    assert add(store) == set()
    assert settle(store) == []
    with store.begin() as tx:
        tx.runs.skip([])
        tx.runs.put_output([])
        tx.runs.report([])
        assert tx.jobs.advance([]) == set()
        assert tx.runs.request_cancel([], "", T0) == set()


def test_a_new_run_waits_behind_a_holder_and_behind_others_in_line(store: SqlStore) -> None:
    set_up(store)
    first = new_run("job", lock="lock:x")
    add(store, first)
    second = new_run("job", lock="lock:x")
    add(store, second)
    assert get(store, second.id).waits_for is WaitsFor.LOCK
    claim(store)
    third = new_run("job", lock="lock:x")
    add(store, third)
    assert get(store, third.id).waits_for is WaitsFor.LOCK


def test_the_sweep_finds_a_free_lock_that_nobody_was_told_about(store: SqlStore) -> None:
    """As after a settle and an insert that did not see each other."""
    set_up(store)
    runs = [new_run("job", lock=f"lock:{name}") for name in "aabbc"]
    add(store, *runs)
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET waits_for = 'lock'")
    assert claim(store) == []
    assert promote(store) == 3
    assert promote(store) == 0
    assert [run.id for run in claim(store)] == [runs[index].id for index in (0, 2, 4)]


def test_a_retry_whose_time_has_come_takes_its_old_place_in_line(store: SqlStore) -> None:
    set_up(store)
    first, second, third = (new_run("job", lock="lock:x") for _ in range(3))
    add(store, first, second, third)
    (run,) = claim(store)
    settle(store, settlement(run, Status.PENDING, not_before=T0 + MINUTE))
    (run,) = claim(store)
    assert run.id == second.id
    promote(store, T0 + MINUTE)
    settle(store, settlement(run), now=T0 + MINUTE)
    assert [run.id for run in claim(store, T0 + MINUTE)] == [first.id]


def test_hasten(store: SqlStore) -> None:
    set_up(store)
    waiting = new_run("job", lock="lock:x", not_before=T0 + HOUR, note="first")
    ready = new_run("job")
    add(store, waiting, ready)
    with store.begin() as tx:
        assert tx.runs.hasten(waiting.id, "second", T0)
        assert not tx.runs.hasten(waiting.id, "third", T0)
        assert not tx.runs.hasten(ready.id, "fourth", T0)
        assert not tx.runs.hasten("nothing", "fifth", T0)
    claimed = claim(store)
    assert {run.id: run.note for run in claimed} == {waiting.id: "first; second; third", ready.id: "fourth"}
    with store.begin() as tx:
        assert not tx.runs.hasten(ready.id, "it runs", T0)
    assert get(store, ready.id).note == "fourth"


def test_a_moved_clock_moves_what_waits_for_a_time(store: SqlStore) -> None:
    set_up(store)
    run = new_run("job", not_before=T0 + MINUTE)
    add(store, run)
    with store.begin() as tx:
        tx.runs.shift_clock(HOUR, T0 + HOUR)
    assert get(store, run.id).not_before == T0 + MINUTE + HOUR
    assert promote(store, T0 + HOUR) == 0


def test_cancel(store: SqlStore) -> None:
    set_up(store)
    running, waiting, late = (new_run("job", lock="lock:x") for _ in range(3))
    add(store, running, waiting, late)
    claim(store)
    with store.begin() as tx:
        assert tx.runs.cancel_requests("n1") == {}
        asked = tx.runs.request_cancel([running.id, waiting.id, "nothing"], "enough", T0)
        assert asked == {running.id, waiting.id}
        assert tx.runs.request_cancel([running.id], "again", T0) == {running.id}
        assert tx.runs.cancel_requests("n1") == {running.id: "enough"}
        assert tx.runs.cancel_requests("n2") == {}
    done = get(store, waiting.id)
    assert (done.status, done.cancel, done.finished_at, done.waits_for) == (Status.CANCELED, "enough", T0, None)
    settle(store, settlement(get(store, running.id), Status.CANCELED))
    assert [run.id for run in claim(store)] == [late.id]
    with store.begin() as tx:
        assert tx.runs.request_cancel([running.id, waiting.id], "late", T0) == set()


def test_the_first_in_line_leaves_and_the_next_moves_up(store: SqlStore) -> None:
    set_up(store)
    first, second, third = (new_run("job", lock="lock:x") for _ in range(3))
    add(store, first, second, third)
    with store.begin() as tx:
        tx.runs.request_cancel([first.id], "", T0)
    assert get(store, second.id).waits_for is None
    with store.begin() as tx:
        assert tx.runs.skip_waiting([second.id], "lock", T0) == {second.id}
    assert [run.id for run in claim(store)] == [third.id]


def test_only_what_never_started_is_skipped(store: SqlStore) -> None:
    set_up(store)
    fresh, tried, running = new_run("job"), new_run("job"), new_run("job")
    add(store, tried, running)
    runs = {run.id: run for run in claim(store)}
    settle(store, settlement(runs[tried.id], Status.PENDING, not_before=T0))
    add(store, fresh)
    with store.begin() as tx:
        assert tx.runs.skip_waiting([fresh.id, tried.id, running.id], "lock", T0) == {fresh.id}
    found = get(store, fresh.id)
    assert (found.status, found.reason, found.finished_at) == (Status.SKIPPED, "lock", T0)


def test_unfinished_as_policies_see_it(store: SqlStore) -> None:
    set_up(store, ["a", "b"])
    holder = new_run("b", lock="lock:x")
    due = occurrence("a", T0, lock="lock:x")
    payloads = [new_run("a", payload=number) for number in range(5)]
    add(store, holder, due, *payloads)
    claim(store, limit=1)
    with store.read() as tx:
        found = tx.runs.unfinished(["a"])
        assert [(one.run, one.status, one.cause, one.foreign_holder) for one in found] == [
            (due.id, Status.PENDING, "schedule", holder.id),
            (payloads[0].id, Status.PENDING, "api", None),
        ]
        assert [(one.run, one.foreign_holder) for one in tx.runs.unfinished(["b"])] == [(holder.id, None)]
        assert tx.runs.pending_counts(["a", "b"]) == {"a": Leftover(occurrences=1, payload_runs=5)}
    claim(store, limit=3)
    with store.read() as tx:
        found = tx.runs.unfinished(["a", "b"])
        assert [one.run for one in found] == [holder.id, due.id, *(run.id for run in payloads[:4])]
        assert [one.attempt for one in found] == [1, 0, 1, 1, 1, 0]
        assert found == sorted(found, key=lambda one: one.seq)


def test_every_waiting_run_of_a_removed_job_counts(store: SqlStore) -> None:
    """Whatever dropping would end is counted first, whoever wanted it."""
    set_up(store)
    for number, cause in enumerate(Cause):
        instant = T0 + timedelta(minutes=2 * number)
        add(store, occurrence("job", instant, cause=cause))
        add(store, occurrence("job", instant + timedelta(minutes=1), cause=cause, payload=1))
        add(store, new_run("job", cause=cause), new_run("job", cause=cause, payload=1))
    each = len(Cause)
    with store.begin() as tx:
        assert tx.runs.pending_counts(["job"]) == {"job": Leftover(each, 2 * each, each)}
        assert tx.runs.drop_pending("job", T0) == (2 * each, 2 * each)
        assert tx.runs.pending_counts(["job"]) == {}


def test_what_a_removed_job_leaves(store: SqlStore) -> None:
    set_up(store)
    running, due, manual = new_run("job"), occurrence("job", T0), new_run("job", cause=Cause.MANUAL)
    carrying = [new_run("job", payload=number) for number in range(3)]
    add(store, running, due, manual, *carrying)
    claim(store, limit=1)
    with store.begin() as tx:
        assert tx.runs.drop_pending("job", T0) == (2, 3)
        assert tx.runs.drop_pending("job", T0) == (0, 0)
    assert get(store, running.id).status is Status.RUNNING
    assert {get(store, run.id).status for run in (due, manual)} == {Status.CANCELED}
    assert {(get(store, run.id).status, get(store, run.id).reason) for run in carrying} == {
        (Status.FAILED, "job_removed")
    }


def test_dead_letters_until_retried_or_discarded(store: SqlStore) -> None:
    set_up(store)
    carrying, empty = [new_run("job", payload=number) for number in range(3)], new_run("job")
    add(store, *carrying, empty)
    settle(store, *[settlement(run, Status.FAILED) for run in claim(store)])

    def letters() -> list[str]:
        with store.queries() as queries:
            return [entry.run.id for entry in queries.dead_letters("job").entries if entry.run is not None]

    assert letters() == [carrying[2].id, carrying[1].id, carrying[0].id]
    add(store, new_run("job", cause=Cause.RETRY, retry_of=carrying[1].id))
    with store.begin() as tx:
        assert tx.runs.discard([carrying[0].id, empty.id, "nothing"], T0) == {carrying[0].id}
        assert tx.runs.discard([carrying[0].id], T0) == set()
    assert letters() == [carrying[2].id]


def test_pauses_end_and_start(store: SqlStore) -> None:
    set_up(store, ["a", "b"])
    current = Pause("a", T0 - HOUR, None, "why", "me")
    later = Pause("a", T0 + HOUR, T0 + 2 * HOUR, "", "")
    past = Pause("b", T0 - HOUR, T0 - MINUTE, "", "")
    with store.begin() as tx:
        tx.jobs.pause([later, current, past])
        assert tx.jobs.pauses(None, T0) == [current, later]
        assert tx.jobs.pauses(["b"], T0 - HOUR) == [past]
        assert tx.jobs.resume(["a", "b"], T0) == {"a"}
        assert tx.jobs.resume(["a", "b"], T0) == set()
        assert tx.jobs.pauses(["a"], T0) == []
        (ended,) = tx.jobs.pauses(["a"], T0 - MINUTE)
    assert ended == Pause("a", T0 - HOUR, T0, "why", "me")
