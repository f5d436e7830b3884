"""What queues allow, over all nodes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from scheduler.core.job import Queue
from scheduler.store.store import SqlStore
from tests.store.world import HOUR, SECOND, T0, add, claim, get, new_run, promote, set_up, settle, settlement

Taker = Callable[[SqlStore, datetime], bool]


def _claim_one(store: SqlStore, now: datetime) -> bool:
    return len(claim(store, now, limit=1)) == 1


def _take_one(store: SqlStore, now: datetime) -> bool:
    with store.begin() as tx:
        return tx.queues.take("default", now) is None


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


def test_queues_take_turns_from_claim_to_claim(store: SqlStore) -> None:
    """Places become free one at a time: whose name comes first must not get them all."""
    set_up(store, queues=[Queue("a"), Queue("b"), Queue("c")])
    add(store, *[new_run("job", queue=name) for name in "aaaabbbbcc"])
    served: tuple[str, ...] = ()
    for expected in "abcabcabab":
        (run,) = claim(store, limit=1, served=served)
        assert run.queue == expected
        served = (*served, run.queue)


def test_who_was_served_longest_ago_is_first(store: SqlStore) -> None:
    set_up(store, queues=[Queue("a"), Queue("b"), Queue("c")])
    add(store, *[new_run("job", queue=name) for name in "aabbcc"])
    assert [run.queue for run in claim(store, limit=4, served=("b", "gone", "a"))] == ["c", "b", "a", "c"]


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
    assert claim(store, T0 + HOUR - 10 * SECOND) == []
    assert len(claim(store, T0 + HOUR + 2 * SECOND)) == 1


@pytest.mark.parametrize("first", [_claim_one, _take_one])
@pytest.mark.parametrize("then", [_claim_one, _take_one])
def test_no_time_is_refilled_twice(store: SqlStore, first: Taker, then: Taker) -> None:
    """A tick works with one instant: others may have read the clock later and been here before."""
    set_up(store, queues=[Queue("default", rate=1, burst=10)])
    add(store, *[new_run("job") for _ in range(30)])
    assert len(claim(store, T0)) == 10
    assert first(store, T0 + 6 * SECOND)
    assert then(store, T0 + 2 * SECOND)
    assert len(claim(store, T0 + 6 * SECOND)) == 4
    assert len(claim(store, T0 + 8 * SECOND)) == 2


@pytest.mark.parametrize("take", [_claim_one, _take_one])
def test_a_queue_does_not_wait_for_a_clock_that_was_set_back(store: SqlStore, take: Taker) -> None:
    """Nor is anything given twice: it goes on as if no time had passed."""
    set_up(store, queues=[Queue("default", rate=0.5, burst=3)])
    add(store, *[new_run("job") for _ in range(30)])
    assert len(claim(store, T0)) == 3
    back = T0 - HOUR
    assert not take(store, back)
    assert not take(store, back + SECOND)
    assert take(store, back + 2 * SECOND)
    assert not take(store, back + 3 * SECOND)
    assert [len(claim(store, back + second * SECOND)) for second in range(4, 13, 4)] == [1, 2, 2]


def test_what_a_token_is_waited_for_with_a_clock_that_was_set_back(store: SqlStore) -> None:
    set_up(store, queues=[Queue("default", rate=0.5)])
    with store.begin() as tx:
        assert tx.queues.take("default", T0) is None
        assert tx.queues.take("default", T0 + SECOND) == 1.0
        # of somebody who read the clock before
        assert tx.queues.take("default", T0 - 10 * SECOND) == 12.0
        assert tx.queues.take("default", T0 - HOUR) == 2.0
        assert tx.queues.take("default", T0 - HOUR + SECOND) == 1.0


def test_when_the_next_token_comes_for_which_a_run_waits(store: SqlStore) -> None:
    queues = [Queue("fast", rate=4), Queue("slow", rate=0.5, burst=2), Queue("free"), Queue("narrow", 1, rate=1)]
    set_up(store, queues=queues)

    def waits(seconds: float = 0.0, queues: tuple[str, ...] | None = None) -> float | None:
        with store.read() as tx:
            return tx.queues.next_token(queues, T0 + seconds * SECOND)

    add(store, *[new_run("job", queue=queue.name, lock="lock:x") for queue in queues])
    add(store, new_run("job", queue="free"))
    assert waits() is None  # there are tokens
    claim(store)
    add(store, *[new_run("job", queue="fast", lock="lock:x") for _ in range(2)])
    assert waits() is None  # they wait for the lock
    add(store, *[new_run("job", queue="slow") for _ in range(4)])
    assert len(claim(store)) == 2
    assert waits() == 2.0
    assert waits(0.5) == 1.5
    assert waits(queues=("fast", "free")) is None
    add(store, *[new_run("job", queue="fast") for _ in range(2)])
    assert waits() == 0.25
    assert waits(queues=("slow",)) == 2.0
    assert waits(0.25) == 1.75  # what has a token waits for something else
    assert waits(2.0) is None


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


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_moved_clock_gives_nothing_to_a_queue_that_was_served_since(store: SqlStore, step: timedelta) -> None:
    """By whoever was faster than the one who moves what is stored in clock time."""
    set_up(store, queues=[Queue("default", rate=1, burst=5)])
    add(store, *[new_run("job") for _ in range(30)])
    assert len(claim(store, T0)) == 5
    assert len(claim(store, T0 + step)) == (5 if step == HOUR else 0)  # forward: all that time has passed
    with store.begin() as tx:
        tx.runs.shift_clock(step, T0 + step + SECOND)
    assert len(claim(store, T0 + step + SECOND)) <= 1
    assert len(claim(store, T0 + step + 3 * SECOND)) == 2


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
