"""Lines in an order of their own: of runs with a rank the smallest is next, whenever it came."""

from __future__ import annotations

import random

from sqlalchemy import select

from scheduler.core.job import Action, Job, Queue
from scheduler.core.model import Cause, NewRun, Pause, Run, Status, WaitsFor
from scheduler.store import tables as t
from scheduler.store.store import SqlStore
from tests.store.world import DAY, HOUR, MINUTE, T0, add, claim, get, new_run, promote, set_up, settle, settlement

LOCK = "event:job:order-7"


def ranked(rank: int, event: str = "", *, lock: str = LOCK, job: str = "job") -> NewRun:
    key = f"event:shop:{event or rank}"
    return new_run(job, key=key, cause=Cause.EVENT, lock=lock, rank=rank, payload={"rank": rank})


def one(store: SqlStore) -> Run:
    (run,) = claim(store)
    return run


def drain(store: SqlStore) -> list[str]:
    """Keys in the order in which they run; each settling wakes the next, without a sweep."""
    keys = []
    while runs := claim(store):
        assert len(runs) == 1
        keys.append(runs[0].key)
        settle(store, settlement(runs[0]))
    return keys


def test_the_smallest_rank_is_next_whenever_it_came(store: SqlStore) -> None:
    set_up(store)
    ranks = list(range(30))
    random.Random(7).shuffle(ranks)
    for rank in ranks:
        add(store, ranked(rank))
    assert drain(store) == [f"event:shop:{rank}" for rank in range(30)]


def test_of_one_instant_the_smallest_key_is_next(store: SqlStore) -> None:
    set_up(store)
    add(store, *[ranked(5, name) for name in ("c", "a", "d", "b")])
    assert drain(store) == [f"event:shop:{name}" for name in "abcd"]


def test_an_older_one_overtakes_what_is_ready_already(store: SqlStore) -> None:
    set_up(store)
    young = ranked(9)
    add(store, young)
    assert get(store, young.id).waits_for is None
    old = ranked(3)
    add(store, old)
    assert one(store).id == old.id
    assert get(store, young.id).waits_for is WaitsFor.LOCK
    assert claim(store) == []


def test_an_older_one_that_comes_while_another_runs_is_next(store: SqlStore) -> None:
    set_up(store)
    add(store, ranked(5), ranked(9))
    running = one(store)
    add(store, ranked(7), ranked(3))
    settle(store, settlement(running))
    assert drain(store) == ["event:shop:3", "event:shop:7", "event:shop:9"]


def test_a_failing_one_holds_the_others_through_its_retries(store: SqlStore) -> None:
    set_up(store)
    add(store, ranked(5), ranked(9))
    settle(store, settlement(one(store), Status.PENDING, not_before=T0 + MINUTE))
    assert promote(store) == 0
    add(store, ranked(7))
    assert claim(store) == []
    assert promote(store) == 0
    assert promote(store, T0 + MINUTE) >= 1
    (run,) = claim(store, T0 + MINUTE)
    assert (run.rank, run.attempt) == (5, 2)
    settle(store, settlement(run, Status.FAILED), now=T0 + MINUTE)
    assert drain(store) == ["event:shop:7", "event:shop:9"]


def test_an_older_one_need_not_wait_for_the_retries_of_a_younger(store: SqlStore) -> None:
    set_up(store)
    add(store, ranked(5), ranked(9))
    settle(store, settlement(one(store), Status.PENDING, not_before=T0 + HOUR))
    add(store, ranked(3))
    promote(store)
    run = one(store)
    assert run.rank == 3
    settle(store, settlement(run))
    assert claim(store) == []


def test_hastening_and_cancelling_the_one_that_waits(store: SqlStore) -> None:
    set_up(store)
    add(store, ranked(5), ranked(9), ranked(11))
    first = one(store)
    settle(store, settlement(first, Status.PENDING, not_before=T0 + HOUR))
    with store.begin() as tx:
        assert tx.runs.hasten(first.id, "", T0)
    assert one(store).id == first.id
    settle(store, settlement(get(store, first.id), Status.PENDING, not_before=T0 + HOUR))
    with store.begin() as tx:
        tx.runs.request_cancel([first.id], "", T0)
    assert drain(store) == ["event:shop:9", "event:shop:11"]


def test_a_pause_keeps_the_order(store: SqlStore) -> None:
    set_up(store)
    add(store, ranked(5))
    with store.begin() as tx:
        tx.jobs.pause([Pause("job", T0 - HOUR, T0 + HOUR, "", "")])
    add(store, ranked(3), ranked(9))
    assert claim(store) == []
    assert promote(store) == 0
    promote(store, T0 + HOUR)
    promote(store, T0 + HOUR)
    keys = []
    while runs := claim(store, T0 + HOUR):
        keys += [run.key for run in runs]
        settle(store, *[settlement(run) for run in runs], now=T0 + HOUR)
    assert keys == ["event:shop:3", "event:shop:5", "event:shop:9"]


def test_lines_do_not_meet(store: SqlStore) -> None:
    """One at a time of each subject; other subjects, other jobs and runs without an order go their own ways."""
    set_up(store, ["job", "other", "third"])
    add(
        store,
        *[ranked(rank, f"{subject}{rank}", lock=f"event:job:{subject}") for subject in "ab" for rank in (2, 1)],
        ranked(1, job="other", lock="event:other:a"),
        new_run("third", lock="lock:x"),
        new_run("third", lock="lock:x"),
        new_run("job"),
    )
    runs = claim(store)
    assert [run.rank for run in runs if run.lock is not None and run.lock != "lock:x"] == [1, 1, 1]
    assert [run.rank for run in runs if run.lock in (None, "lock:x")] == [None, None]


def _locks(store: SqlStore) -> set[str]:
    with store._database.reading() as connection:
        return set(connection.execute(select(t.locks.c.key)).scalars())


def test_the_lock_of_a_subject_goes_with_its_runs(store: SqlStore) -> None:
    set_up(store, ["job", "other"])
    names = ["done", "waited for", "running", "kept"]
    add(store, new_run("job", lock="lock:x"), *[ranked(1, name, lock=f"event:job:{name}") for name in names])
    runs = claim(store)
    settle(store, *[settlement(run, Status.CANCELED) for run in runs if run.lock != "event:job:kept"])
    settle(store, *[settlement(run, Status.FAILED, keeps_lock=True) for run in runs if run.lock == "event:job:kept"])
    later = ranked(2, "later", lock="event:job:waited for", job="other")
    add(store, ranked(2, "next", lock="event:job:running", job="other"))
    assert len(claim(store)) == 1
    add(store, later)

    def prune(days: int) -> None:
        with store.begin() as tx:
            tx.runs.prune("job", HOUR, HOUR, T0 + days * DAY, 100)

    everything = {"lock:x", *(f"event:job:{name}" for name in names)}
    assert _locks(store) == everything
    prune(1)
    assert _locks(store) == everything
    prune(3)
    assert _locks(store) == everything - {"event:job:done"}
    assert later.id in {run.id for run in claim(store, T0 + 3 * DAY)}


def test_a_subject_that_comes_back_has_a_greater_fence(store: SqlStore) -> None:
    set_up(store)
    add(store, ranked(1))
    first = one(store)
    settle(store, settlement(first, Status.CANCELED))
    with store.begin() as tx:
        tx.runs.prune("job", HOUR, HOUR, T0 + 3 * DAY, 100)
    assert _locks(store) == set()
    add(store, ranked(1))
    (again,) = claim(store, T0 + 3 * DAY)
    assert again.fence > first.fence


def test_a_definition_that_changes_leaves_the_line(store: SqlStore) -> None:
    set_up(store, queues=[Queue("default"), Queue("slow")])
    add(store, ranked(5), ranked(9), new_run("job"))
    settle(store, settlement(claim(store, limit=1)[0], Status.PENDING, not_before=T0 + HOUR))
    changed = Job("job", "{}", "print", Action("command", {}), queue="slow", priority=3, lock="job:job")
    with store.begin() as tx:
        assert tx.runs.redefine(changed) == 3
        assert tx.runs.redefine(changed) == 0
    (run,) = claim(store)
    assert (run.lock, run.queue, run.rank) == ("job:job", "slow", None)
    promote(store, T0 + HOUR)
    assert claim(store, T0 + HOUR) == [], "the job says by now that its runs do not overlap"
    settle(store, settlement(run), now=T0 + HOUR)
    promote(store, T0 + HOUR)
    (run,) = claim(store, T0 + HOUR)
    assert (run.lock, run.queue, run.priority, run.rank) == (LOCK, "slow", 3, 5)


def test_runs_of_other_releases_have_no_rank_and_no_event(store: SqlStore) -> None:
    set_up(store)
    run = new_run("job")
    add(store, run, new_run("job", event=7, rank=-5, lock=LOCK))
    assert (get(store, run.id).event, get(store, run.id).rank) == (None, None)
    assert [(one.event, one.rank) for one in claim(store)] == [(None, None), (7, -5)]


def test_a_long_line_is_served_from_its_index(store: SqlStore) -> None:
    set_up(store)
    ranks = list(range(5_000))
    random.Random(3).shuffle(ranks)
    add(store, *[ranked(rank) for rank in ranks])
    first = []
    for _ in range(20):
        run = one(store)
        first.append(run.rank)
        settle(store, settlement(run))
    assert first == list(range(20))
