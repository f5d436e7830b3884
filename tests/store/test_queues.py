"""What queues allow, over all nodes."""

from __future__ import annotations

from scheduler.core.job import Queue
from scheduler.store.store import SqlStore
from tests.store.world import HOUR, SECOND, T0, add, claim, get, new_run, promote, set_up, settle, settlement


def test_concurrency_counts_the_runs_of_all_nodes(store: SqlStore) -> None:
    set_up(store, nodes=["n1", "n2"], queues=[Queue("default", concurrency=3)])
    add(store, *[new_run("job") for _ in range(5)])
    assert len(claim(store, limit=2)) == 2
    (third,) = claim(store, name="n2")
    assert claim(store, name="n1") == []
    settle(store, settlement(third))
    assert len(claim(store, name="n1")) == 1


def test_a_full_queue_does_not_hold_up_another(store: SqlStore) -> None:
    set_up(store, queues=[Queue("default", concurrency=1), Queue("other")])
    add(store, *[new_run("job", priority=9) for _ in range(3)], new_run("job", queue="other"))
    assert sorted(run.queue for run in claim(store)) == ["default", "other"]


def test_queues_take_turns(store: SqlStore) -> None:
    set_up(store, queues=[Queue("a"), Queue("b")])
    add(store, *[new_run("job", queue="a") for _ in range(10)], *[new_run("job", queue="b") for _ in range(2)])
    assert [run.queue for run in claim(store, limit=5)] == ["a", "b", "a", "b", "a"]


def test_only_the_queues_that_are_asked_for(store: SqlStore) -> None:
    set_up(store, queues=[Queue("a"), Queue("b")])
    add(store, new_run("job", queue="a"), new_run("job", queue="b"))
    assert [run.queue for run in claim(store, queues=("b",))] == ["b"]
    assert claim(store, queues=("nothing",)) == []


def test_a_bucket_gives_what_was_refilled_and_never_more_than_its_burst(store: SqlStore) -> None:
    set_up(store, queues=[Queue("default", rate=0.5, burst=3)])
    add(store, *[new_run("job") for _ in range(20)])
    assert len(claim(store, T0)) == 3
    assert claim(store, T0 + SECOND) == []
    assert len(claim(store, T0 + 2 * SECOND)) == 1
    assert claim(store, T0 + 3 * SECOND) == []
    assert len(claim(store, T0 + 6 * SECOND)) == 2
    assert len(claim(store, T0 + HOUR)) == 3
    # time that goes backwards takes nothing away and gives nothing
    assert claim(store, T0) == []
    assert len(claim(store, T0 + HOUR + 2 * SECOND)) == 1


def test_only_claimed_runs_pay(store: SqlStore) -> None:
    set_up(store, queues=[Queue("default", rate=0.001, burst=2)])
    held, waiting, other = new_run("job", lock="lock:x"), new_run("job", lock="lock:x"), new_run("job")
    add(store, held, waiting, other)
    assert [run.id for run in claim(store)] == [held.id, other.id]
    assert claim(store) == []


def test_a_moved_clock_moves_the_refill(store: SqlStore) -> None:
    set_up(store, queues=[Queue("default", rate=1, burst=5)])
    add(store, *[new_run("job") for _ in range(9)])
    assert len(claim(store, T0)) == 5
    with store.begin() as tx:
        tx.runs.shift_clock(HOUR, T0 + HOUR)
    assert claim(store, T0 + HOUR) == []
    assert len(claim(store, T0 + HOUR + 2 * SECOND)) == 2


def test_a_changed_queue_keeps_its_tokens_up_to_the_new_burst(store: SqlStore) -> None:
    set_up(store, queues=[Queue("default", rate=0.001, burst=5)])
    add(store, *[new_run("job") for _ in range(9)])
    assert len(claim(store, limit=1)) == 1
    with store.begin() as tx:
        tx.generations.put_queues([Queue("default", rate=0.001, burst=2)], T0 + HOUR)
    assert len(claim(store)) == 2


def test_a_run_whose_queue_is_gone_is_served_by_the_default_one(store: SqlStore) -> None:
    set_up(store, queues=[Queue("gone"), Queue("default", concurrency=1)])
    early = new_run("job", queue="gone")
    add(store, early)
    with store.begin() as tx:
        tx.generations.put_queues([Queue("default", concurrency=1)], T0)
    late = new_run("job", queue="gone")
    add(store, late)
    assert get(store, late.id).queue == "default"
    promote(store)
    assert [run.id for run in claim(store)] == [early.id]
    assert get(store, early.id).queue == "default"


def test_default_and_scans_exist_without_being_named(store: SqlStore) -> None:
    set_up(store)
    with store.queries() as queries:
        assert [view.queue for view in queries.queues()] == [
            Queue("default", concurrency=64),
            Queue("scans", concurrency=4),
        ]
