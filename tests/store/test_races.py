"""Several at once: each run once, no error, fences in order."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from scheduler.core.job import Queue
from scheduler.core.model import Run, Status
from scheduler.core.requests import Claim
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.store.world import (
    HOUR,
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
    state,
)
from tests.until import until
from tests.waiting import waiting

CLAIMERS = ("n1", "n2", "n3", "n4")
RUNS = 3_000
KEYS = 500
BATCH = 100


def _prepare(store: SqlStore) -> None:
    """Runs of one lock lie next to each other, so that batches hold several of them."""
    jobs = [f"job-{key}" for key in range(KEYS)]
    set_up(store, jobs, nodes=CLAIMERS, queues=[Queue("default", concurrency=120), Queue("other")])
    runs = []
    for number in range(RUNS):
        key = number // (RUNS // KEYS)
        runs.append(new_run(jobs[key], lock=f"lock:{key}", queue="other" if key % 3 == 0 else "default"))
    add(store, *runs)
    # as if nobody had seen anybody while they were inserted
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET waits_for = NULL")


def _check(store: SqlStore, seen: list[tuple[str | None, str, int]]) -> None:
    times = Counter(run for _, run, _ in seen)
    assert len(times) == RUNS
    assert set(times.values()) == {1}
    fences: dict[str | None, list[tuple[int, str]]] = {}
    for lock, run, fence in seen:
        fences.setdefault(lock, []).append((fence, run))
    assert len(fences) == KEYS
    order = _order(store)
    for of_lock in fences.values():
        assert len({fence for fence, _ in of_lock}) == len(of_lock)
        by_fence = [order[run] for _, run in sorted(of_lock)]
        assert by_fence == sorted(by_fence), "the oldest waiter first"


def _order(store: SqlStore) -> dict[str, int]:
    with store._database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT id, seq, status, attempt FROM runs").all()
    assert {(row.status, row.attempt) for row in rows} == {("COMPLETED", 1)}
    return {row.id: row.seq for row in rows}


def test_four_claimers_in_threads(place: Place, store: SqlStore) -> None:
    _prepare(store)
    stores = [place.open() if store.kind == "postgresql" else store for _ in CLAIMERS]
    count, guard = [0], threading.Lock()

    def work(index: int) -> list[tuple[str | None, str, int]]:
        seen: list[tuple[str | None, str, int]] = []
        while count[0] < RUNS:
            runs = claim(stores[index], name=CLAIMERS[index], limit=BATCH)
            with guard:
                count[0] += len(runs)
            seen += [(run.lock, run.id, run.fence) for run in runs]
            settle(stores[index], *[settlement(run) for run in runs])
            if not runs:
                promote(stores[index])
        return seen

    with ThreadPoolExecutor(len(CLAIMERS)) as pool:
        seen = [one for part in pool.map(work, range(len(CLAIMERS))) for one in part]
    for one in stores:
        if one is not store:
            one.close()
    _check(store, seen)


def _process(place: Place, name: str, results: multiprocessing.SimpleQueue[object]) -> None:
    store = place.open()
    idle = 0
    seen: list[tuple[str | None, str, int]] = []
    # three looks in a row that find nothing to wait for: the others hold the rest
    while idle < 3:
        runs = claim(store, name=name, limit=BATCH)
        seen += [(run.lock, run.id, run.fence) for run in runs]
        settle(store, *[settlement(run) for run in runs])
        if runs:
            idle = 0
        elif promote(store) == 0:
            with store.queries() as queries:
                pending = sum(view.ready + sum(view.waiting.values()) for view in queries.queues())
            idle += pending == 0
    store.close()
    results.put(seen)


def test_four_claimers_in_processes(postgres_place: Place) -> None:
    store = postgres_place.open()
    _prepare(store)
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.SimpleQueue[list[tuple[str | None, str, int]]] = context.SimpleQueue()
    workers = [context.Process(target=_process, args=(postgres_place, name, results)) for name in CLAIMERS]
    for worker in workers:
        worker.start()
    seen = [one for _ in workers for one in results.get()]
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
        worker.close()
    results.close()
    _check(store, seen)
    store.close()


def test_a_batch_with_two_runs_of_one_lock(store: SqlStore) -> None:
    """One statement that makes both RUNNING would violate the index and claim nothing, for ever."""
    set_up(store)
    runs = [new_run("job", lock=f"lock:{number // 2}") for number in range(10)]
    add(store, *runs)
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET waits_for = NULL")
    assert [run.id for run in claim(store)] == [run.id for run in runs[::2]]


def test_no_two_nodes_count_the_same_place(postgres_place: Place) -> None:
    store = postgres_place.open()
    set_up(store, nodes=CLAIMERS, queues=[Queue("default", concurrency=4)])
    add(store, *[new_run("job") for _ in range(60)])
    barrier = threading.Barrier(len(CLAIMERS))
    finished: list[str] = []
    most: list[int] = []

    def work(name: str) -> None:
        barrier.wait(10)
        while len(finished) < 60:
            runs = claim(store, name=name, limit=2)
            with store.queries() as queries:
                most.append(queries.queues()[0].running)
            settle(store, *[settlement(run) for run in runs])
            finished.extend(run.id for run in runs)

    with ThreadPoolExecutor(len(CLAIMERS)) as pool:
        list(pool.map(work, CLAIMERS))
    assert max(most) == 4
    assert len(set(finished)) == 60
    store.close()


def test_a_node_that_is_declared_dead_while_it_claims(postgres_place: Place) -> None:
    """The claim holds the node's row: the declaration waits for it and finds its runs."""
    store = postgres_place.open()
    set_up(store)
    add(store, new_run("job", lock="lock:x"))
    dead = threading.Event()
    orphans: list[Run] = []

    def declare() -> None:
        with store.begin() as tx:
            assert tx.nodes.declare_dead("n1", 0, T0)
            orphans.extend(tx.runs.orphaned(10))
            tx.runs.settle([settlement(run, Status.FAILED, reason="lost") for run in orphans], T0, orphans=True)
        dead.set()

    with store.begin() as tx:
        runs = tx.runs.claim(Claim("n1", 1, 10), T0).runs
        thread = threading.Thread(target=declare)
        thread.start()
        assert not dead.wait(0.3)
    thread.join(10)
    assert dead.is_set()
    assert [run.id for run in orphans] == [run.id for run in runs]
    assert get(store, runs[0].id).status is Status.FAILED
    assert settle(store, settlement(runs[0])) == []
    assert claim(store) == []
    store.close()


def test_a_planner_passes_over_a_queue_that_somebody_holds(postgres_place: Place) -> None:
    store = postgres_place.open()
    set_up(store, nodes=["n1", "n2"], queues=[Queue("other")])
    add(store, new_run("job"))
    with store.begin() as slow:
        assert len(slow.runs.claim(Claim("n1", 1, 10), T0).runs) == 1
        add(store, new_run("job"), new_run("job", queue="other"))
        assert [run.queue for run in claim(store, name="n2", skip_busy_queues=True)] == ["other"]
    assert len(claim(store, name="n2", skip_busy_queues=True)) == 1
    store.close()


def test_planners_pass_over_jobs_that_somebody_plans(postgres_place: Place) -> None:
    store = postgres_place.open()
    set_up(store, [state("a", next_due_at=T0), state("b", next_due_at=T0)])
    with store.begin() as one:
        (first,) = one.jobs.due(T0, 1, 1)
        with store.begin() as other:
            (second,) = other.jobs.due(T0, 1, 10)
        assert {first.state.name, second.state.name} == {"a", "b"}
    store.close()


def test_an_instant_is_inserted_once_by_two_planners(postgres_place: Place) -> None:
    store = postgres_place.open()
    set_up(store)
    barrier = threading.Barrier(4)

    def plan(_: int) -> int:
        new = 0
        for second in range(20):
            barrier.wait(10)
            new += len(add(store, occurrence("job", T0.replace(second=second))))
        return new

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(plan, range(4))) == 20
    store.close()


def test_settling_and_claiming_of_one_job_do_not_wait_for_each_other(postgres_place: Place) -> None:
    store = postgres_place.open()
    set_up(store)
    add(store, new_run("job"), new_run("job"))
    (run,) = claim(store, limit=1)
    with store.begin() as tx:
        assert tx.runs.settle([settlement(run)], T0).runs
        assert len(claim(store)) == 1
    store.close()


def test_runs_whose_locks_somebody_is_changing_hide_no_others(postgres_place: Place) -> None:
    """They cannot step aside, and there may be more of them than a claim wants."""
    store = postgres_place.open()
    set_up(store)
    other = new_run("job")
    add(store, *[new_run("job", lock=f"lock:{number}") for number in range(5)], other)
    with store._database.writing() as connection:
        connection.exec_driver_sql("SELECT key FROM locks FOR UPDATE")
        assert [run.id for run in claim(store, limit=1)] == [other.id]
    store.close()


def test_writers_in_threads_wait_for_each_other(store: SqlStore) -> None:
    set_up(store)

    def write(index: int) -> None:
        for number in range(25):
            add(store, new_run("job", key=f"api:{index}:{number}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with store.queries() as queries:
        assert queries.queues()[0].ready == 100


def test_what_is_in_force_stays_it_while_many_hold_it(postgres_place: Place) -> None:
    store = postgres_place.open()
    added = threading.Event()

    def add_one() -> None:
        with store.begin() as tx:
            tx.generations.add("other", {}, T0, "test")
        added.set()

    with store.begin() as one:
        held = one.generations.hold()
        with store.begin() as other:
            assert other.generations.hold() == held, "those who hold it do not wait for each other"
        thread = threading.Thread(target=add_one)
        thread.start()
        assert not added.wait(0.3)
        assert one.generations.newest_id() == held
    thread.join(10)
    assert added.is_set()
    with store.begin() as tx:
        assert tx.generations.hold() == held + 1
    store.close()


def test_a_step_of_the_clock_does_not_meet_a_reload(postgres_place: Place) -> None:
    """Which holds the queues, and then asks for runs that wait."""
    store = postgres_place.open()
    set_up(store)
    run = new_run("job", not_before=T0 + HOUR)
    add(store, run)

    def shift() -> None:
        with store.begin() as tx:
            tx.runs.shift_clock(HOUR, T0)

    with ThreadPoolExecutor(1) as pool:
        with store.begin() as tx:
            tx.generations.put_queues([], T0)
            shifting = pool.submit(shift)
            until(lambda: waiting(postgres_place) == 1)
            assert tx.runs.hasten(run.id, "at once", T0)
        shifting.result(20)
    assert get(store, run.id).not_before == T0
    store.close()


def test_what_is_in_force_is_held_at_once_or_not_at_all(postgres_place: Place) -> None:
    store = postgres_place.open()
    with store.begin() as one, store.begin() as other:
        held = one.generations.hold()
        assert other.generations.hold_at_once() == held
    with store.begin() as one:
        one.generations.newest(lock=True)
        with store.begin() as other:
            assert other.generations.hold_at_once() is None
        one.generations.add("other", {}, T0, "test")
    with store.begin() as one:
        assert one.generations.hold_at_once() == held + 1
    store.close()
