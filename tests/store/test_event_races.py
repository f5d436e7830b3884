"""Several at once: an event is new once, a line by rank keeps its order, and no lock goes while somebody comes."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TypeVar

from scheduler.core.errors import DatabaseAway
from scheduler.core.event import NewEvent, Via
from scheduler.core.model import Cause, NewRun, Status
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.store.world import DAY, HOUR, SECOND, T0, add, claim, new_run, promote, set_up, settle, settlement

NODES = ("n1", "n2", "n3", "n4")
Result = TypeVar("Result")


@contextmanager
def _stores(place: Place, store: SqlStore) -> Iterator[list[SqlStore]]:
    """One for each node: processes of their own on PostgreSQL, threads of one on SQLite."""
    with ExitStack() as stack:
        if store.kind == "sqlite":
            yield [store] * len(NODES)
        else:
            yield [stack.enter_context(place.opened_hastily()) for _ in NODES]


def _at_once(stores: list[SqlStore], work: Callable[[SqlStore, int], Result]) -> list[Result]:
    start = threading.Barrier(len(stores))

    def begin(number: int) -> Result:
        start.wait(10)
        return work(stores[number], number)

    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(begin, range(len(stores))))


def _stubborn(work: Callable[[], Result]) -> Result:
    """As the daemon does where the machine stood still for longer than a transaction may."""
    for _ in range(5):
        try:
            return work()
        except DatabaseAway:
            continue
    return work()


def test_an_event_is_new_once_whoever_tells_it_first(place: Place, store: SqlStore) -> None:
    ids = [f"evt_{number}" for number in range(400)]

    def tell(one: SqlStore, number: int) -> Counter[str]:
        mine = ids.copy()
        random.Random(number).shuffle(mine)
        new: Counter[str] = Counter()
        for first in range(0, len(mine), 40):
            told = [NewEvent("shop", event, Via.WEBHOOK, T0, event.encode()) for event in mine[first : first + 40]]
            with one.begin() as tx:
                answer = tx.events.add(told)
            new.update(event for (_, event), (_, fresh) in answer.items() if fresh)
        return new

    with _stores(place, store) as stores:
        new = sum(_at_once(stores, tell), Counter[str]())
    assert new == Counter(ids)
    with store.read() as tx:
        events = [tx.events.get("shop", event) for event in ids]
    assert [(one.body, one.duplicates) for one in events if one is not None] == [(one.encode(), 3) for one in ids]


LINES, LENGTH = 30, 20


def _ranked(line: int, rank: int) -> NewRun:
    lock = f"event:job:{line}"
    return new_run("job", key=f"event:shop:{line}-{rank}", cause=Cause.EVENT, lock=lock, rank=rank, payload=rank)


def test_lines_keep_their_order_whoever_claims(place: Place, store: SqlStore) -> None:
    """Also where nobody saw anybody while the runs were inserted, and some fail once."""
    set_up(store, nodes=NODES)
    runs = [_ranked(line, rank) for line in range(LINES) for rank in range(LENGTH)]
    random.Random(5).shuffle(runs)
    add(store, *runs)
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET waits_for = NULL")
    done: list[int] = []

    def work(one: SqlStore, number: int) -> list[tuple[str, int, int, int]]:
        seen = []
        while len(done) < len(runs):
            claimed = _stubborn(lambda: claim(one, name=NODES[number], limit=20))
            for run in claimed:
                assert run.lock is not None
                assert run.rank is not None
                seen.append((run.lock, run.fence, run.rank, run.attempt))
            again = [run for run in claimed if run.attempt == 1 and run.rank is not None and run.rank % 4 == 0]
            ended = [run for run in claimed if run not in again]
            settlements = [settlement(run, Status.PENDING, not_before=T0 + HOUR) for run in again]
            settlements += [settlement(run) for run in ended]
            _stubborn(partial(settle, one, *settlements))
            done.extend(run.seq for run in ended)
            if not claimed:
                _stubborn(lambda: promote(one, T0 + HOUR))
        return seen

    with _stores(place, store) as stores:
        seen = sorted(one for part in _at_once(stores, work) for one in part)
    expected = [(rank, attempt) for rank in range(LENGTH) for attempt in ((1, 2) if rank % 4 == 0 else (1,))]
    for line in range(LINES):
        assert [one[2:] for one in seen if one[0] == f"event:job:{line}"] == expected


def test_no_lock_goes_while_a_run_comes(place: Place, store: SqlStore) -> None:
    set_up(store, nodes=NODES)
    count = 60
    over = threading.Event()

    def prune(one: SqlStore) -> int:
        removed = 0
        while not over.is_set():
            with one.begin() as tx:
                removed += tx.runs.prune("job", SECOND, SECOND, T0 + 5 * DAY, 50)
        return removed

    def come_and_go(one: SqlStore) -> int:
        ran = 0
        for rank in range(count):
            add(one, _ranked(0, rank), _ranked(1, rank))
            for _ in range(5):
                claimed = claim(one)
                settle(one, *[settlement(run, Status.CANCELED) for run in claimed])
                ran += len(claimed)
                if ran == 2 * (rank + 1):
                    break
                promote(one)
        over.set()
        return ran

    with _stores(place, store) as stores:
        ran, *removed = _at_once(stores, lambda one, number: prune(one) if number else come_and_go(one))
    assert ran == 2 * count
    assert sum(removed) > count
