"""The sweep over the locks that runs wait for: a part at a time, and what moved at once."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update

from scheduler.core.model import WaitsFor
from scheduler.core.requests import Promoted
from scheduler.store import tables as t
from scheduler.store.promote import LOCKS
from scheduler.store.store import SqlStore
from tests.store.plans import statements_on
from tests.store.world import MINUTE, T0, add, get, new_run, set_up


def promoted(store: SqlStore, after: str | None, now: datetime = T0) -> Promoted:
    with store.begin() as tx:
        return tx.runs.promote(now, after)


def missed(store: SqlStore, count: int) -> list[str]:
    """So many runs that wait for a lock of their own, which nobody holds."""
    set_up(store)
    runs = [new_run("job", lock=f"lock:{number:05}") for number in range(count)]
    add(store, *runs)
    with store._database.writing() as connection:
        connection.execute(update(t.runs).values(waits_for=WaitsFor.LOCK.value))
    return [run.id for run in runs]


def test_many_locks_are_looked_at_in_parts(store: SqlStore) -> None:
    ids = missed(store, LOCKS + 2)
    first = promoted(store, "")
    assert (first.runs, first.after) == (LOCKS, f"lock:{LOCKS - 1:05}")
    assert [get(store, ids[number]).waits_for for number in (0, LOCKS)] == [None, WaitsFor.LOCK]
    assert promoted(store, None) == Promoted(0, "")
    assert promoted(store, first.after) == Promoted(2, "")
    assert get(store, ids[-1]).waits_for is None


def test_whose_time_or_pause_is_over_waits_for_no_sweep(store: SqlStore) -> None:
    set_up(store)
    later = new_run("job", lock="lock:z", not_before=T0 + MINUTE)
    add(store, later)
    assert promoted(store, None, T0 + MINUTE).runs == 2  # its time is over, and it is first in its line
    assert get(store, later.id).waits_for is None


def test_when_nothing_waits_it_asks_once(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))
    with store.begin() as tx, statements_on(store, ["runs", "locks", "queues"]) as asked:
        tx.runs.promote(T0, None)
    assert len(asked) == 1
